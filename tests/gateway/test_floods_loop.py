"""What holds the event loop: no large text is read on it, and no flood is walked on it.

Neither is told by a clock on the wall: the first counts what is read where, the second is CPU time
of the thread that has the loop, and floods cost a hundred times the limit where they are walked.
"""

import asyncio
import contextlib
import gc
import gzip
import json
import socket
import threading
import time

import httpx2
import pytest
from msgspec.structs import replace
from websockets.asyncio.client import connect

from support.breaking_upstream import upstream
from support.gateway_server import running
from thoughtline.dialects import DIALECTS, limits, splice
from thoughtline.dialects.responses import dialect as responses
from thoughtline.testing.floods import ANSWERS, REQUESTS, SHAPES, STREAM_SHAPES, STREAMS
from thoughtline.testing.floods import flood as flooded
from thoughtline.testing.floods import stream as streamed

PATHS = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/m:generateContent",
}
TEXT = "a text of some forty letters, and more\n" * 40_000
HISTORIES = {
    "chat": {
        "model": "m",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": TEXT},
            {"role": "user", "content": "go on"},
        ],
    },
    "messages": {
        "model": "m",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "text", "text": TEXT}]},
            {"role": "user", "content": "go on"},
        ],
    },
    "responses": {
        "model": "m",
        "input": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "output_text", "text": TEXT}]},
            {"role": "user", "content": "go on"},
        ],
    },
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"text": TEXT}]},
            {"role": "user", "parts": [{"text": "go on"}]},
        ],
    },
}
SMALL = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "messages": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "responses": {"model": "m", "input": "hi"},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}


def answered(body, status=b"200 OK", kind=b"application/json"):
    head = b"HTTP/1.1 %b\r\nconnection: close\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n"
    return head % (status, kind, len(body)) + body


def speaking(dialect, ups):
    """A gateway whose upstream speaks one dialect: the others are translated."""
    return running([replace(ups[0], policy="generic", dialects=(dialect,))])


# -- large texts ---------------------------------------------------------------------------------


@pytest.fixture
def read_where(monkeypatch):
    """Names of threads in which a large text was read, each with what read it."""
    noted = []

    def noting(name, function):
        def called(*arguments, **more):
            sizes = [len(one) for one in arguments if isinstance(one, bytes)]
            if sizes and max(sizes) > limits.HEAVY_SIZE:
                noted.append((threading.current_thread().name.partition("_")[0], name))
            return function(*arguments, **more)

        return called

    monkeypatch.setattr(splice, "_read", noting("read", splice._read))
    monkeypatch.setattr(splice, "elements", noting("elements", splice.elements))
    monkeypatch.setattr(responses, "_decode_params", noting("state", responses._decode_params))
    return noted


def only_beside(noted):
    assert noted
    assert {thread for thread, _ in noted} == {"thoughtline-heavy"}, noted


REFUSALS = {
    "missing": b"The `reasoning_content` in the thinking mode must be passed back to the API.",
    "added": b"Unknown parameter: 'messages[1].reasoning_content'.",
    "signature": b"messages.1.content.0: Invalid `signature` in `thinking` block",
    "item": b"Item 'msg_1' of type 'message' was provided without its required 'reasoning' item",
    "store": b"Zero Data Retention organizations cannot use `previous_response_id`; store",
    "unrelated": b"no such model",
}


@pytest.mark.parametrize("policy", ["deepseek", "anthropic", "openai", "gemini"])
def test_a_large_request_is_read_beside_the_loop(read_where, policy):
    with upstream(answered(b"{}")) as ups, running([replace(ups[0], policy=policy)]) as gateway:
        for dialect, history in HISTORIES.items():
            url = gateway.url + "/u/u" + PATHS[dialect]
            assert httpx2.post(url, json=history, timeout=60).status_code == 200
            only_beside(read_where)


@pytest.mark.parametrize("words", REFUSALS.values(), ids=REFUSALS)
def test_so_is_one_that_is_refused(read_where, words):
    refusal = json.dumps({"error": {"message": words.decode(), "code": 400}}).encode()
    with upstream(answered(refusal, b"400 Bad Request")) as ups, running(ups) as gateway:
        for dialect, history in HISTORIES.items():
            url = gateway.url + "/u/u" + PATHS[dialect]
            assert httpx2.post(url, json=history, timeout=60).status_code == 400
            only_beside(read_where)


@pytest.mark.parametrize("spoken", PATHS)
def test_so_is_one_that_is_translated_or_renamed(read_where, spoken):
    with upstream(answered(b"{}")) as ups:
        one = replace(ups[0], policy="generic", dialects=(spoken,), served="other", asked="m")
        with running([one]) as gateway:
            for dialect, history in HISTORIES.items():
                url = gateway.url + "/u/u" + PATHS[dialect]
                httpx2.post(url, json=history, timeout=60)
                only_beside(read_where)


@pytest.mark.parametrize("spoken", ["messages", "chat", "gemini"])
def test_so_is_one_whose_tokens_are_counted(read_where, spoken):
    body = json.dumps(HISTORIES["messages"]).encode()
    with upstream(answered(b'{"input_tokens":1}')) as ups, speaking(spoken, ups) as gateway:
        url = gateway.url + "/u/u/v1/messages/count_tokens"
        assert httpx2.post(url, content=body, timeout=60).status_code == 200
    only_beside(read_where)


def test_so_is_one_that_names_no_upstream(read_where):
    body = json.dumps(HISTORIES["chat"] | {"model": ""}).encode()
    with upstream(answered(b"{}")) as ups, running([*ups, replace(ups[0], name="w")]) as gateway:
        reply = httpx2.post(gateway.url + PATHS["chat"], content=body, timeout=60)
    assert reply.status_code == 404
    only_beside(read_where)


# -- floods --------------------------------------------------------------------------------------

SIZE = 600_000
MAX_CPU = 0.2
"""Seconds of CPU that a callback of the event loop may take; walked, a flood takes more."""


@pytest.fixture
def longest(monkeypatch):
    """The longest callback of an event loop in other threads, in seconds of CPU, and what it was."""
    here, found = threading.get_ident(), [0.0, ""]
    run = asyncio.events.Handle._run

    def timed(handle):
        begun = time.thread_time()
        run(handle)
        took = time.thread_time() - begun
        if threading.get_ident() != here and took > found[0]:
            found[:] = took, repr(handle)[:200]

    monkeypatch.setattr(asyncio.events.Handle, "_run", timed)
    gc.collect()
    gc.freeze()  # looking through all that the other tests have left is not meant
    return found


def some(shapes, number, count=5):
    """A few of the shapes, others for each number; all of them over all numbers."""
    return [shapes[(number * count + at) % len(shapes)] for at in range(count)]


PLACES = [(name, place) for name, places in REQUESTS.items() for place in places]
ANSWER_PLACES = [(name, place) for name, places in ANSWERS.items() for place in places]


@pytest.mark.parametrize("number", range(len(PLACES)), ids=map("-".join, PLACES))
def test_a_flood_of_a_client_does_not_hold_the_loop(longest, number):
    dialect, place = PLACES[number]
    with upstream(answered(b"{}")) as ups, running(ups) as gateway:
        for shape in some(SHAPES, number):
            body = flooded(REQUESTS[dialect][place], shape, SIZE)
            reply = httpx2.post(gateway.url + "/u/u" + PATHS[dialect], content=body, timeout=60)
            assert reply.status_code == 200, shape
            assert longest[0] < MAX_CPU, (shape, longest)


@pytest.mark.parametrize("number", range(len(ANSWER_PLACES)), ids=map("-".join, ANSWER_PLACES))
def test_nor_does_one_of_an_upstream(longest, number):
    dialect, place = ANSWER_PLACES[number]
    shapes = some(SHAPES, number)
    made = [flooded(ANSWERS[dialect][place], shape, SIZE) for shape in shapes]
    with upstream(map(answered, made)) as ups, running(ups) as gateway:
        url = gateway.url + "/u/u" + PATHS[dialect]
        for shape, body in zip(shapes, made, strict=True):
            assert httpx2.post(url, json=SMALL[dialect], timeout=60).content == body, shape
            assert longest[0] < MAX_CPU, (shape, longest)


@pytest.mark.parametrize("number", range(8))
def test_nor_does_a_stream(longest, number):
    dialect = list(STREAMS)[number % 4]
    each, shapes = SIZE if number > 3 else 50_000, some(STREAM_SHAPES, number, count=4)
    made = [streamed(STREAMS[dialect], shape, SIZE, each=each) for shape in shapes]
    answers = (answered(body, kind=b"text/event-stream") for body in made)
    with upstream(answers) as ups, running(ups) as gateway:
        url = gateway.url + "/u/u" + PATHS[dialect]
        asked = SMALL[dialect] | {"stream": True}
        for shape, body in zip(shapes, made, strict=True):
            assert httpx2.post(url, json=asked, timeout=60).content == body, shape
            assert longest[0] < MAX_CPU, (shape, longest)


@pytest.mark.parametrize("number", range(8))
def test_nor_do_floods_that_are_translated(longest, number):
    """Both ways: what cannot be read is refused, and nothing is walked for it."""
    client = list(REQUESTS)[number % 4]
    spoken = list(REQUESTS)[(number + 1 + number // 4) % 4]
    shape = SHAPES[number % len(SHAPES)]
    place, *_ = REQUESTS[client].values()
    answer, *_ = ANSWERS[spoken].values()
    flood = answered(flooded(answer, shape, SIZE))
    with upstream(flood) as ups, speaking(spoken, ups) as gateway:
        url = gateway.url + "/u/u" + PATHS[client]
        httpx2.post(url, content=flooded(place, shape, SIZE), timeout=60)
        httpx2.post(url, json=SMALL[client], timeout=60)
    assert longest[0] < MAX_CPU, (shape, longest)


def _tiny(pieces):
    """A chunked answer of very many tiny chunks."""
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    return head + b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in pieces) + b"0\r\n\r\n"


@pytest.mark.parametrize("dialect", ["chat", "gemini"])
def test_nor_do_tiny_chunks_or_one_endless_line(longest, dialect):
    line = b"data: " + b'{"a":"}}' * 20_000
    for pieces in ([line[at : at + 2] for at in range(0, len(line), 2)], [line]):
        with upstream(_tiny(pieces)) as ups, running(ups) as gateway:
            url = gateway.url + "/u/u" + PATHS[dialect]
            asked = SMALL[dialect] | {"stream": True}
            assert httpx2.post(url, json=asked, timeout=60).content == line
        assert longest[0] < MAX_CPU, longest


def test_nor_do_arguments_that_are_a_flood_in_a_string(longest):
    arguments = flooded('{"x":[%]}', "empty objects", SIZE).decode()
    function = {"name": "f", "arguments": arguments}
    call = {"id": "a", "type": "function", "function": function}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "b"},
    ]
    with upstream(answered(b"{}")) as ups, running(ups) as gateway:
        url = gateway.url + "/u/u" + PATHS["chat"]
        asked = {"model": "m", "messages": messages}
        assert httpx2.post(url, json=asked, timeout=60).status_code == 200
    assert longest[0] < MAX_CPU, longest


async def test_nor_does_a_frame(longest):
    with upstream(answered(b"{}")) as ups, running(ups) as gateway:
        url = f"ws://127.0.0.1:{gateway.port}/u/u/v1/responses"
        async with connect(url, max_size=None) as client:
            for shape in SHAPES[::3]:
                place = '{"type":"response.create","model":"m","input":[%]}'
                await client.send(flooded(place, shape, SIZE).decode())
                await client.recv()
                assert longest[0] < MAX_CPU, (shape, longest)


def test_nor_does_a_head_of_very_many_headers(longest):
    lines = b"".join(b"x-%d: a\r\n" % number for number in range(20_000))
    with upstream(answered(b"{}")) as ups, running(ups) as gateway:
        peer = socket.create_connection(("127.0.0.1", gateway.port), timeout=60)
        head = b"POST /u/u/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
        with peer, contextlib.suppress(OSError):
            peer.sendall(head + lines + b"content-length: 0\r\n\r\n")
            assert peer.recv(1 << 16).startswith(b"HTTP/1.1 4")
    assert longest[0] < MAX_CPU, longest


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
def test_nor_does_a_bomb(longest, packing):
    bomb = gzip.compress(b'{"messages":[' + b"0," * 10_000_000 + b"0]}")
    with upstream(answered(b"{}")) as ups, running(ups) as gateway:
        url = gateway.url + "/u/u" + PATHS["chat"]
        reply = httpx2.post(url, content=bomb, headers={"content-encoding": packing}, timeout=60)
    assert reply.status_code == 413
    assert longest[0] < MAX_CPU, longest


def test_every_dialect_is_flooded():
    assert set(REQUESTS) == set(ANSWERS) == set(STREAMS) == set(DIALECTS)
