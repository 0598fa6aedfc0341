"""Large answers: beyond a size they pass unread, and what is told again is told beside the loop."""

import threading

import httpx2
import pytest
from msgspec.structs import replace

from support.breaking_upstream import upstream
from support.gateway_server import running
from thoughtline.clock import SystemClock
from thoughtline.dialects import DIALECTS, limits
from thoughtline.engine import recording
from thoughtline.gateway.translated_relay import TranslatedRelay
from thoughtline.log.parts import Origin
from thoughtline.testing.floods import ANSWERS, flood

PATHS = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
    "messages": (
        "/v1/messages",
        {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    ),
    "responses": ("/v1/responses", {"input": "hi"}),
    "gemini": (
        "/v1beta/models/m:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    ),
}
SIZE = 300_000
THOUGHT = (
    b'{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant",'
    b'"reasoning_content":"%b","content":"hi"},"finish_reason":"stop"}]}'
)


def answered(body):
    head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n"
    return head + b"content-length: %d\r\n\r\n%b" % (len(body), body)


@pytest.mark.parametrize("dialect", PATHS)
def test_an_answer_beyond_the_size_passes_unread(dialect, monkeypatch):
    body = flood(next(iter(ANSWERS[dialect].values())), "one text", SIZE)
    for limit, read in ((len(body), True), (len(body) - 1, False)):
        monkeypatch.setattr(limits, "MAX_ANSWER_SIZE", limit)
        reader = DIALECTS[dialect].reader(
            stream=False, clock=SystemClock(), origin=Origin(), sent=0
        )
        reader.feed(body)
        if read:
            reader.close()
        else:
            with pytest.raises(limits.TooComplex, match="larger than"):
                reader.close()


@pytest.mark.parametrize("fits", [True, False])
def test_an_answer_that_says_more_than_any_model_is_not_kept(monkeypatch, fits):
    monkeypatch.setattr(recording, "MAX_SAID", SIZE + 2 + 2 if fits else SIZE)
    body = THOUGHT % (b"a" * SIZE)
    with upstream(answered(body)) as ups, running([replace(ups[0], policy="generic")]) as gateway:
        path, request = PATHS["chat"]
        url = gateway.url + "/u/u" + path
        assert httpx2.post(url, json={"model": "m"} | request, timeout=60).content == body
    [(status, reason)] = [one for one in gateway.notes.records if len(one) == 2]
    assert status == 200
    assert ("letters are said" in reason) is not fits


def test_a_large_answer_is_told_again_beside_the_loop(monkeypatch):
    seen, rest = [], TranslatedRelay._rest

    def noted(relay):
        seen.append(threading.current_thread().name.partition("_")[0])
        return rest(relay)

    monkeypatch.setattr(TranslatedRelay, "_rest", noted)
    for size in (SIZE, 10):
        with upstream(answered(THOUGHT % (b"a" * size))) as ups:
            one = replace(ups[0], policy="generic", dialects=("chat",))
            with running([one]) as gateway:
                path, request = PATHS["messages"]
                url = gateway.url + "/u/u" + path
                reply = httpx2.post(url, json={"model": "m"} | request, timeout=60)
                assert reply.json()["content"][-1] == {"type": "text", "text": "hi"}
    assert [name == "thoughtline-heavy" for name in seen] == [True, False]
