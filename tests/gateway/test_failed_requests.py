"""Requests that fail leave a trace: headers, a log line, and an event that the API answers with."""

import json

import pytest

from support.built_gateway import BuiltGateway, converse
from support.gateway import Answer, InProcessGateway, ScriptedWire
from support.telemetry import chatty
from thoughtline.clock import SystemClock
from thoughtline.errors import WireError
from thoughtline.gateway import failed_requests as failures
from thoughtline.gateway.failed_requests import (
    MAX_UNWRITTEN,
    FailedLog,
    FailedRequests,
    erase_failed_requests,
    failed_requests,
    refusal_words,
)
from thoughtline.log.events import RequestFailed
from thoughtline.stores import open_store
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.memory import MemoryStore

PATH = "/v1/chat/completions"
ASKED = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "hi"}]}
REFUSAL = {"error": {"message": "You exceeded your current quota", "code": "quota"}}
SAID = {"choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}


def gone(_):
    raise WireError("cannot reach http://sim: refused")


async def kept(gateway):
    await gateway.proxy.failed.settled()
    return [body for _, body in await failed_requests(gateway.store)]


@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
async def test_a_providers_refusal_is_kept_with_its_own_words(status):
    gateway = InProcessGateway(ScriptedWire(Answer(status, REFUSAL)))
    answer = await gateway.post(PATH, ASKED)
    assert (answer.status, answer.json) == (status, REFUSAL)
    (failed,) = await kept(gateway)
    assert (failed.status, failed.reason) == (status, "You exceeded your current quota")
    assert (failed.upstream, failed.path, failed.code) == ("up", PATH, "")
    (event, _), *_ = await failed_requests(gateway.store)
    assert answer.header("x-thoughtline-request") == event.id
    assert answer.header("x-thoughtline-replay").startswith("restored=0; missed=0; ")
    assert answer.header("x-thoughtline-turn") is None  # there is none


async def test_it_names_its_conversation_and_is_no_part_of_it():
    answers = [Answer(200, SAID), Answer(400, REFUSAL), Answer(200, SAID)]
    gateway = InProcessGateway(ScriptedWire(*answers))
    first = await gateway.post(PATH, ASKED)
    said = [*ASKED["messages"], SAID["choices"][0]["message"], {"role": "user", "content": "on"}]
    second = await gateway.post(PATH, {**ASKED, "messages": said})
    third = await gateway.post(PATH, {**ASKED, "messages": said})
    session = first.header("x-thoughtline-session")
    assert [one.header("x-thoughtline-session") for one in (second, third)] == [session] * 2
    (failed,) = await kept(gateway)
    assert (failed.session, failed.turn) == (session, first.header("x-thoughtline-turn"))
    types = [event.type for event in await gateway.store.read(session)]
    assert types.count("turn_started") == 2 and "request_failed" not in types
    assert len([one for one in await gateway.facts("turn_started") if one.target]) == 2


async def test_what_passes_through_and_fails_is_kept_too():
    gateway = InProcessGateway(ScriptedWire(Answer(404, b"no such page")))
    answer = await gateway.post("/v1/embedding", ASKED)
    (failed,) = await kept(gateway)
    assert (failed.path, failed.reason) == ("/v1/embedding", "no such page")
    assert answer.header("x-thoughtline-replay") == "passed=no_history"
    assert answer.header("x-thoughtline-request")


@pytest.mark.parametrize("path", ["/u/up/", "/u/up/api/hello", "/u/nobody/"])
async def test_who_asks_whether_somebody_is_there_has_not_failed(path):
    gateway = InProcessGateway(ScriptedWire(Answer(404, {})))
    head = {"authorization": "Bearer a-key"}
    answer = await gateway._ask("HEAD", path, b"", head)
    assert answer.status == 404
    assert answer.header("x-thoughtline-request") is None
    assert await kept(gateway) == [] and not gateway.proxy.failed.unwritten


async def test_the_gateways_own_refusals():
    gateway = InProcessGateway(ScriptedWire(gone))
    answers = [await gateway.post(PATH, ASKED), await gateway.post(f"/u/nobody{PATH}", ASKED)]
    assert [answer.status for answer in answers] == [502, 404]
    unknown, unreachable = await kept(gateway)
    assert (unreachable.code, unknown.code) == ("upstream_unreachable", "unknown_upstream")
    assert "cannot reach" in unreachable.reason and "nobody" in unknown.reason
    said = [answer.header("x-thoughtline-replay") for answer in answers]
    assert said[0].startswith("restored=0; ") and said[0].endswith("; refused=upstream_unreachable")
    assert said[1] == "refused=unknown_upstream"


async def test_words_are_not_kept_where_nothing_is_that_was_said():
    gateway = InProcessGateway(ScriptedWire(Answer(400, REFUSAL)), records_all=False)
    await gateway.post(PATH, ASKED)
    (failed,) = await kept(gateway)
    assert (failed.status, failed.reason) == (400, "")


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_only_the_last_ones_are_kept(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(failures, "MAX_EVENTS", 5)
    store = open_store("memory://" if kind == "memory" else f"sqlite:///{tmp_path}/t.db")
    gateway = InProcessGateway(ScriptedWire(Answer(400, REFUSAL)), store=store)
    ids = []
    for _ in range(23):
        answer = await gateway.post(PATH, ASKED)
        await gateway.proxy.failed.settled()
        ids.append(answer.header("x-thoughtline-request"))
    found = [event.id for event, _ in await failed_requests(store)]
    assert 5 <= len(found) <= 10
    assert sorted(found) == sorted(ids[-len(found) :])
    other = InProcessGateway(ScriptedWire(Answer(400, REFUSAL)), store=store)  # after a restart
    await other.post(PATH, ASKED)
    assert len(await kept(other)) in (len(found) + 1, 6)
    await store.close()


async def test_a_flood_of_them_is_not_written():
    gateway = InProcessGateway(ScriptedWire(Answer(400, REFUSAL)))
    gateway.proxy.failed._writes.update(range(failures.MAX_WRITING))
    answer = await gateway.post(PATH, ASKED)
    assert answer.header("x-thoughtline-request") is None
    assert answer.header("x-thoughtline-replay").startswith("restored=0")
    gateway.proxy.failed._writes.clear()
    assert await kept(gateway) == []


def test_a_conversation_goes_on_after_a_refusal():
    built = BuiltGateway(chatty(level="info"))
    with built.client() as client:
        assert converse(client, 3)[-1].headers["x-thoughtline-replay"].startswith("restored=2")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (REFUSAL, "You exceeded your current quota"),
        ([{"error": {"message": "INVALID_ARGUMENT"}}], "INVALID_ARGUMENT"),
        ({"error": "model not found"}, "model not found"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"message": "no"}, "no"),
        ({"a": 1}, '{"a": 1}'),
        ([], "[]"),
        ("text", "text"),
    ],
)
def test_words(body, words):
    assert refusal_words(json.dumps(body).encode()) == words


def test_words_that_are_not_json():
    assert refusal_words(b"<html>Bad gateway</html>") == "<html>Bad gateway</html>"
    assert len(refusal_words(b"x" * 100_000)) == failures.MAX_WORDS
    assert refusal_words(b"\xff") == "\ufffd"
    assert refusal_words(b"") == ""


async def test_while_the_store_is_down_only_turns_wait_for_it():
    store = CachedStore(MemoryStore())
    gateway = InProcessGateway(ScriptedWire(Answer(400, REFUSAL)), store=store)
    store.corrupt = "the disk is gone"
    answer = await gateway.post(PATH, ASKED)
    assert answer.header("x-thoughtline-request") is None
    assert (store.backlog, await kept(gateway)) == (0, [])


async def test_the_log_is_read_again_only_when_there_is_something_else():
    store = MemoryStore()
    failed, log = FailedRequests(store, SystemClock()), FailedLog(store)
    assert await log.newest_first() == []
    failed.record(failed.new_id(), RequestFailed(status=404))
    await failed.settled()
    first = await log.newest_first()
    assert [body.status for _, body in first] == [404]
    assert await log.newest_first() is first
    failed.record(failed.new_id(), RequestFailed(status=500))
    await failed.settled()
    assert [body.status for _, body in await log.newest_first()] == [500, 404]
    await erase_failed_requests(store)
    assert await log.newest_first() == []


async def test_what_is_not_written_is_remembered_and_bounded():
    failed = FailedRequests(MemoryStore(), SystemClock(), keeps_words=False)
    for n in range(MAX_UNWRITTEN + 5):
        failed.record("", RequestFailed(status=401, reason="?key=secret", path=f"/{n}" + "x" * 900))
    assert len(failed.unwritten) == MAX_UNWRITTEN
    last = failed.unwritten[-1].request
    assert last.reason == ""  # a provider's words may quote what was said
    assert len(last.path) == 500
    failed.record("", RequestFailed(status=401, code="x", reason="http://a/?key=secret"))
    assert failed.unwritten[-1].request.reason == "http://a/?key=***"
