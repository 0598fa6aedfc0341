"""The engine without a server: what callers of the transports get, and what becomes of the rest."""

import json
import logging

import httpx2
import pytest

from support.transports import (
    KEY,
    URL,
    Stream,
    Upstream,
    asked,
    body,
    client,
    events,
    grown,
    only_turn,
    talk,
)
from thoughtline.errors import Unavailable
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import serving
from thoughtline.transports import AsyncTransport, Transport

# -- thoughts come back ----------------------------------------------------------------------------


def test_without_us_it_is_refused_and_with_us_it_is_not(sims, tmp_path):
    url = sims.url("deepseek") + "/chat/completions"
    with httpx2.Client() as bare:
        assert talk(bare, url, 6, opening="alone")[-1].status_code == 400
    mount = Transport(f"sqlite:///{tmp_path}/thoughts.db", policy="deepseek")
    with httpx2.Client(transport=mount) as kept:
        replies = talk(kept, url, 8)
    assert [reply.status_code for reply in replies] == [200] * 8
    assert replies[-1].headers["x-sim-thoughts"].startswith("exact=7; altered=0; missing=0")
    assert replies[-1].headers["x-thoughtline-replay"].startswith("restored=7; missed=0")


def test_another_process_goes_on_where_this_one_ended(sims, tmp_path):
    """Same file, same secret beside it: the same tenant, and its thoughts."""
    url, messages = sims.url("deepseek") + "/chat/completions", [{"role": "user", "content": "on"}]
    for number in range(4):
        mount = Transport(f"sqlite:///{tmp_path}/thoughts.db", policy="deepseek")
        with httpx2.Client(transport=mount) as restarted:
            reply = restarted.post(url, json=body(messages), headers=KEY)
        assert reply.headers["x-sim-thoughts"].startswith(f"exact={number}; altered=0; missing=0")
        messages = grown(messages, reply)


async def test_the_policy_is_the_hosts():
    inner = Upstream(Stream(events()))
    store = MemoryStore()
    async with client(inner, store) as kept:
        await kept.post(URL, **asked(stream=True))
    turn = await only_turn(store)
    assert (turn.target.provider, turn.target.endpoint) == ("deepseek", "https://api.deepseek.com")


def test_a_policy_that_is_none_is_said_at_once():
    with pytest.raises(ValueError, match="did you mean 'deepseek'"):
        Transport("memory://", policy="deepsek")


async def test_two_credentials_share_nothing_unless_they_are_one_account(sims):
    url = sims.url("deepseek") + "/chat/completions"
    for account, restored in (("", "restored=0"), ("me", "restored=1")):
        mount = AsyncTransport("memory://", policy="deepseek", account=account)
        async with httpx2.AsyncClient(transport=mount) as kept:
            messages = [{"role": "user", "content": f"who {account}"}]
            first = await kept.post(url, json=body(messages), headers=KEY)
            second = await kept.post(
                url,
                json=body(grown(messages, first)),
                headers={"authorization": "Bearer another-key"},
            )
        assert second.headers["x-thoughtline-replay"].startswith(restored)


@pytest.mark.parametrize("limit", [{"keep_last": 1}, {"keep_last": 0}, {"loop_only": True}])
def test_thoughts_that_nobody_demands_can_be_limited(limit):
    restored = {}
    with serving("vllm") as sims:
        url = sims.url("vllm") + "/chat/completions"
        for options in ({}, limit):
            mount = Transport("memory://", policy="vllm", **options)
            with httpx2.Client(transport=mount) as kept:
                replies = talk(kept, url, 7, opening=f"limited {bool(options)}")
            assert [reply.status_code for reply in replies] == [200] * 7
            audit = sims["vllm"].requests[-1].audit
            assert (audit.misplaced, audit.foreign) == (0, 0)
            restored[bool(options)] = audit.exact
    assert restored[True] < restored[False]


async def test_strict_is_an_error_instead_of_a_placeholder():
    inner = Upstream(Stream(events()))
    unknown = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    async with client(inner, strict=True) as kept:
        reply = await kept.post(
            URL, json=body([*unknown, {"role": "user", "content": "c"}]), headers=KEY
        )
    assert reply.status_code == 409 and not inner.requests


async def test_a_refused_thought_gets_one_correction():
    """The recovery of the gateway: the provider's words, one change, one retry."""
    words = "Missing `reasoning_content` field in the assistant message at message index 1."
    refusal = httpx2.Response(400, json={"error": {"message": words}})
    inner = Upstream(refusal, Stream(events()))
    unknown = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    sent = body([*unknown, {"role": "user", "content": "c"}])
    async with client(inner, policy="generic") as kept:
        reply = await kept.post("http://127.0.0.1/v1/chat/completions", json=sent, headers=KEY)
    assert reply.status_code == 200
    first, second = (json.loads(request.content)["messages"][1] for request in inner.requests)
    assert "reasoning_content" not in first and "reasoning_content" in second


# -- bytes -----------------------------------------------------------------------------------------


async def test_a_request_that_needs_nothing_goes_on_as_it_is():
    odd = b'{ "model":"deepseek-v4-pro",\n "messages" : [ {"role":"user","content":"1.10"} ] }'
    inner = Upstream(Stream(events()))
    async with client(inner) as kept:
        await kept.post(
            URL + "?a=%2F&b", content=odd, headers={**KEY, "x-own": "kept"}, timeout=7.5
        )
    (sent,) = inner.requests
    assert sent.content == odd
    assert str(sent.url) == URL + "?a=%2F&b"
    assert (sent.headers["x-own"], sent.headers["host"]) == ("kept", "api.deepseek.com")
    assert sent.headers["content-length"] == str(len(odd))
    assert sent.extensions["timeout"]["read"] == 7.5


# -- errors, and callers who leave -----------------------------------------------------------------


async def test_a_refusal_passes_unchanged():
    refusal = httpx2.Response(
        429, json={"error": {"message": "slow"}}, headers={"retry-after": "9"}
    )
    async with client(Upstream(refusal)) as kept:
        reply = await kept.post(URL, **asked())
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "9")
    assert reply.content == refusal.content


async def test_a_dead_store_takes_nothing_down(caplog):
    class Dead(MemoryStore):
        async def append(self, batch):
            raise Unavailable("the disk is full")

        async def find(self, tenant, names):
            raise Unavailable("the disk is full")

    async with client(Upstream(Stream(events())), Dead()) as kept:
        with caplog.at_level(logging.WARNING, "thoughtline"):
            reply = await kept.post(URL, **asked(stream=True))
    assert reply.content == b"".join(events())
    assert "the disk is full" in caplog.text


# -- what has no history ---------------------------------------------------------------------------


def test_everything_else_goes_straight_on():
    """Also a body that is made while it is sent, and one that no dialect can read."""
    seen = []

    def answer(request):
        seen.append((request.method, request.url.path, request.read()))
        return httpx2.Response(200, text="fine")

    mount = Transport("memory://", inner=httpx2.MockTransport(answer))
    with httpx2.Client(transport=mount, base_url="https://api.openai.com") as kept:
        assert kept.get("/v1/models").text == "fine"
        assert kept.post("/v1/files", content=iter([b"a", b"b"])).text == "fine"
        assert kept.post("/v1/chat/completions", content=b'{"model":').text == "fine"
    assert seen == [
        ("GET", "/v1/models", b""),
        ("POST", "/v1/files", b"ab"),
        ("POST", "/v1/chat/completions", b'{"model":'),
    ]
