"""A plain thought stays at the endpoint that made it, unless two endpoints are one provider.

Hosts that merely share a policy row are strangers: two unknown ones, two servers of one engine, a
mirror under the name of the original. The hosts of one company are not, and the user may say of
any two upstreams that they are one (`same_as`).
"""

import json
from urllib.parse import urlsplit

import pytest

from support.gateway import Answer, InProcessGateway, TurnClient
from thoughtline.engine.endpoints import Directory
from thoughtline.errors import SettingsError
from thoughtline.gateway.build import make_directory
from thoughtline.gateway.settings import load
from thoughtline.testing import Request, simulator

ONE, TWO = "http://one.example/v1", "http://two.example/v1"


class HostsWire:
    """Hosts that are all the same simulated provider, so that each reads what the other made."""

    def __init__(self, name):
        self.sim = simulator(name)
        self.sent = []

    def send(self, request):
        self.sent.append(request)
        head = {name.lower(): value for name, value in request.headers}
        path = urlsplit(request.url).path
        reply = self.sim.answer(Request("POST", path, head, request.body))
        return _Answered(Answer(reply.status, reply.body, reply.headers))

    async def close(self):
        pass


class _Answered:
    def __init__(self, answer):
        self.answer = answer

    async def __aenter__(self):
        return self.answer

    async def __aexit__(self, *_):
        return None


def gateway_for(tmp_path, sim, **upstreams):
    lines = [
        f"[upstreams.{name}]\n" + "\n".join(f"{key} = {json.dumps(v)}" for key, v in fields.items())
        for name, fields in upstreams.items()
    ]
    place = tmp_path / "thoughtline.toml"
    place.write_text("\n".join(lines))
    settings = load({}, {}, tmp_path)
    gateway = InProcessGateway(HostsWire(sim))
    gateway.proxy.directory = make_directory(settings)
    return gateway


class TravellingClient(TurnClient):
    """Says which upstream it asks in its path."""

    upstream = ""

    @property
    def path(self):
        return f"/u/{self.upstream}" + super().path


async def travel(gateway, sim, first, second, *, keep=False):
    """Two exchanges at one upstream, one at the other; the last body as the other got it."""
    client = TravellingClient(gateway, "chat", gateway.wire.sim.models()[0], keep=keep)
    for client.upstream in (first, first, second):
        answer = await client.say(*client.next())
        assert answer.status == 200, answer.body
    return gateway.wire.sent[-1].body, answer.header("x-thoughtline-replay")


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("policy", ["generic", "vllm"])
async def test_two_hosts_with_one_policy_are_strangers(tmp_path, policy, keep):
    up = {
        "one": {"base_url": ONE, "policy": policy},
        "two": {"base_url": TWO, "policy": policy},
    }
    gateway = gateway_for(tmp_path, "vllm", **up)
    body, told = await travel(gateway, "vllm", "one", "two", keep=keep)
    assert b'"reasoning' not in body
    assert "dropped=2" in told


@pytest.mark.parametrize("policy", ["generic", "vllm"])
@pytest.mark.parametrize("says", ["one", "two"])
async def test_the_user_says_that_two_are_one(tmp_path, policy, says):
    up = {
        "one": {"base_url": ONE, "policy": policy},
        "two": {"base_url": TWO, "policy": policy},
    }
    up[says]["same_as"] = "two" if says == "one" else "one"
    gateway = gateway_for(tmp_path, "vllm", **up)
    body, told = await travel(gateway, "vllm", "one", "two")
    assert b'"reasoning' in body
    assert "restored=2" in told


async def test_three_that_are_one(tmp_path):
    up = {name: {"base_url": f"http://{name}.example/v1", "policy": "vllm"} for name in "abc"}
    up["b"]["same_as"] = up["c"]["same_as"] = "a"
    gateway = gateway_for(tmp_path, "vllm", **up)
    _, told = await travel(gateway, "vllm", "b", "c")
    assert "restored=2" in told


async def test_a_mirror_under_the_name_of_the_original_is_another_endpoint(tmp_path):
    up = {"mirror": {"base_url": ONE, "policy": "glm"}, "glm": {}}
    gateway = gateway_for(tmp_path, "glm", **up)
    body, told = await travel(gateway, "glm", "mirror", "glm")
    assert b'"reasoning_content"' not in body
    assert "dropped=2" in told


async def test_the_hosts_of_one_company_are_one_provider(tmp_path):
    up = {"china": {"base_url": "https://open.bigmodel.cn/api/paas/v4"}, "glm": {}}
    gateway = gateway_for(tmp_path, "glm", **up)
    _, told = await travel(gateway, "glm", "china", "glm")
    assert "restored=2" in told


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"same_as": "ones"}, "is not the name of an upstream; did you mean 'one'?"),
        ({"same_as": "two"}, "names itself"),
        ({"same_as": "one", "policy": "sglang"}, "has the policy"),
    ],
)
def test_mistakes_in_same_as(tmp_path, fields, words):
    up = {"one": {"base_url": ONE, "policy": "vllm"}}
    up["two"] = {"base_url": TWO, "policy": "vllm", **fields}
    with pytest.raises(SettingsError, match="same_as") as error:
        gateway_for(tmp_path, "vllm", **up)
    assert words in str(error.value)


def test_an_upstream_whose_dialects_live_apart_is_one(tmp_path):
    up = {"one": {"base_url": ONE, "policy": "vllm", "endpoints.messages": TWO}}
    made: Directory = gateway_for(tmp_path, "vllm", **up).proxy.directory
    target = made.pick("one", "m").target(dialect="chat", model="m", account="")
    assert {ONE, TWO} <= target.same_endpoints
