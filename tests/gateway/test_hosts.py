"""Names that a web page points at this machine (DNS rebinding) open nothing."""

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from support.gateway_server import running, upstreams
from thoughtline.gateway.hosts import AllowedHosts, hostname
from thoughtline.gateway.settings import load
from thoughtline.testing import serving

ASKED = {"model": "deepseek-chat", "messages": [{"role": "user", "content": "hi"}]}
FOREIGN = ["evil.test", "evil.test:7337", "127.0.0.1.evil.test", "localhost.evil.test", "10.0.0.7"]
FOREIGN += ["[::ffff:10.0.0.7]", "localhost.localdomain.evil.test", "127.0.0.1:1@evil.test"]
LOCAL = [
    "localhost",
    "127.0.0.1:1",
    "127.8.8.8",
    "[::1]:7337",
    "[::1]",
    "LOCALHOST:99",
    "a.localhost",
    "host.docker.internal:7337",
    "host.containers.internal",
    "0.0.0.0:7337",
    "[::]:7337",
    "[::ffff:127.0.0.1]:7337",
    "ip6-localhost",
    "localhost.localdomain:7337",
]


@pytest.fixture(scope="module")
def gateway():
    with serving("deepseek", "openai") as sims:  # noqa: SIM117
        with running(upstreams(sims, "deepseek", "openai", key="sk-ours")) as gateway:
            gateway.sims = sims
            yield gateway


def _all(gateway, host):
    said = {"host": host}
    return [
        httpx2.post(
            f"{gateway.url}/u/deepseek/v1/chat/completions", json=ASKED, headers=said
        ).status_code,
        httpx2.get(f"{gateway.url}/u/openai/v1/files", headers=said).status_code,
        httpx2.get(f"{gateway.url}/metrics", headers=said).status_code,
        httpx2.get(f"{gateway.url}/v1/models", headers=said).status_code,
    ]


@pytest.mark.parametrize("host", FOREIGN)
def test_a_foreign_name_opens_no_route(gateway, host):
    before = len(gateway.sims["deepseek"].requests) + len(gateway.sims["openai"].requests)
    assert _all(gateway, host) == [403, 403, 403, 403]
    refused = httpx2.get(f"{gateway.url}/u/openai/v1/files", headers={"host": host})
    assert refused.json()["error"]["code"] == "host_not_allowed"
    assert refused.headers["x-thoughtline-replay"] == "refused=host_not_allowed"
    assert "access.hosts" in refused.json()["error"]["message"]
    assert len(gateway.sims["deepseek"].requests) + len(gateway.sims["openai"].requests) == before


@pytest.mark.parametrize("host", LOCAL)
def test_names_of_this_machine_open_them(gateway, host):
    assert 403 not in _all(gateway, host)


async def test_nor_does_it_open_a_socket(gateway):
    url = f"ws://127.0.0.1:{gateway.port}/u/openai/v1/responses"
    with pytest.raises(InvalidStatus) as refused:
        async with connect(url.replace("127.0.0.1", "evil.test"), host="127.0.0.1"):
            pass
    assert refused.value.response.status_code == 403
    told = refused.value.response.headers["x-thoughtline-replay"]
    assert told == "refused=host_not_allowed"
    async with connect(url):
        pass


def test_with_client_keys_every_name_will_do():
    with (
        serving("deepseek") as sims,
        running(upstreams(sims, "deepseek", key="sk-ours"), clients={"me": "k"}) as gateway,
    ):
        url = f"{gateway.url}/u/deepseek/v1/chat/completions"
        said = {"host": "gateway.example.com", "authorization": "Bearer k"}
        assert httpx2.post(url, json=ASKED, headers=said).status_code == 200


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("gateway.lan", True),
        ("GATEWAY.lan.", True),
        ("a.example.com", True),
        ("example.com", False),
        ("evil.test", False),
    ],
)
def test_more_names_are_a_setting(host, allowed, tmp_path):
    (tmp_path / "thoughtline.toml").write_text(
        '[access]\nhosts = ["gateway.lan", "*.example.com"]\n'
    )
    hosts = load({}, {}, tmp_path).access.hosts
    assert AllowedHosts(hosts).allows(host) is allowed
    assert AllowedHosts(["*"]).allows(host)


@pytest.mark.parametrize("host", ["192.168.1.5", "fd00::1", "thoughtline"])
def test_a_gateway_that_others_may_reach_answers_to_addresses_and_service_names(host):
    """None of these can be a web page's own name."""
    assert AllowedHosts(listening="0.0.0.0").allows(host)
    assert AllowedHosts(listening="192.168.1.9").allows(host)
    assert not AllowedHosts(listening="0.0.0.0").allows("evil.test")
    assert not AllowedHosts().allows(host)
    assert AllowedHosts(listening="gateway.lan").allows("gateway.lan")


def test_the_port_is_no_part_of_a_name():
    assert [hostname(one) for one in ("a", "a:1", "[::1]", "[::1]:7")] == [
        "a",
        "a",
        "[::1]",
        "[::1]",
    ]


def test_what_is_remembered_is_bounded():
    hosts = AllowedHosts(["*"])
    for number in range(1000):
        assert hosts.refusal([(b"host", b"h%d" % number)]) is None
    assert len(hosts._allowed) <= 256
