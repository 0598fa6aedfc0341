"""Answers that cannot be kept: the client gets all of them, memory stays bounded, the log says why."""

import asyncio
import gzip
import json
import tracemalloc
from contextlib import asynccontextmanager
from random import Random
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from support.gateway import Answer, InProcessGateway, ScriptedWire, SimWire
from thoughtline.dialects import DIALECTS
from thoughtline.engine.recording import MAX_UNREAD, Recording
from thoughtline.gateway.bodies import Decompressor
from thoughtline.log.events import decode
from thoughtline.log.parts import Origin
from thoughtline.log.sessions import Session
from thoughtline.replay.match import request_path
from thoughtline.replay.plan import ReplayPlan
from thoughtline.testing import FrozenClock, simulator

STREAM = {"content-type": "text/event-stream"}
SAID = {"messages": [{"role": "user", "content": "hi"}]}
ASKED = {"model": "m", **SAID}
LIMIT = 1 << 20
PIECE = 65_536


class Endless(Answer):
    """A first line, and then much more of it than anybody has room for."""

    def __init__(self, first, pieces, headers):
        super().__init__(200, first, headers)
        self.pieces = pieces
        self.most = 0

    async def chunks(self):
        yield self.body
        tracemalloc.start()
        for _ in range(self.pieces):
            yield b"x" * PIECE
            self.most = max(self.most, tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()


class EndlessWire(ScriptedWire):
    """Gives that very answer, not a copy of it."""

    @asynccontextmanager
    async def send(self, request):
        self.sent.append(request)
        yield self.answers[0]


@pytest.mark.parametrize(
    ("path", "first", "kind"),
    [
        ("/v1/chat/completions", b'data: {"choices":[', "text/event-stream"),
        ("/v1/messages", b"event: message_start\ndata: ", "text/event-stream"),
        ("/v1/responses", b"event: response.created\ndata: ", "text/event-stream"),
        ("/v1beta/models/m:streamGenerateContent", b"[{", "application/json"),
        ("/v1/chat/completions", b'{"choices":', "application/json"),
    ],
)
async def test_an_event_without_an_end_reaches_the_client_and_not_our_memory(path, first, kind):
    answer = Endless(first, 200, {"content-type": kind})
    gateway = InProcessGateway(EndlessWire(answer), max_body_bytes=LIMIT)
    asked = {**ASKED, "input": "hi", "contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    asked["stream"] = kind == "text/event-stream"
    reply = await gateway.post(path, asked, keep=lambda body: b"." * (len(body) // PIECE))
    assert len(reply.body) == 200
    (ended,) = await gateway.facts("turn_ended")
    assert ended.reason == f"not captured: the answer is larger than {LIMIT} bytes"
    assert gateway.notes.records == [(200, ended.reason)]
    assert answer.most < 3 * LIMIT


PARTLY = bytes(range(256)) * 64 + bytes(2_000_000) + Random(1).randbytes(40_000)
"""Compresses to less than a fiftieth."""


@pytest.mark.parametrize(
    ("encoding", "body", "why"),
    [
        ("br", b"whatever", "it came compressed, and 'br' cannot be decompressed here"),
        ("gzip", b"whatever", "it came compressed, and is damaged"),
        (
            "gzip",
            gzip.compress(bytes(10_000_000)),
            "it came compressed, and is too large when decompressed",
        ),
        ("gzip", gzip.compress(PARTLY), f"the answer is larger than {LIMIT} bytes"),
    ],
)
async def test_an_answer_that_cannot_be_unpacked_passes_and_the_log_says_so(encoding, body, why):
    head = {"content-type": "application/json", "content-encoding": encoding}
    gateway = InProcessGateway(ScriptedWire(Answer(200, body, head)), max_body_bytes=LIMIT)
    reply = await gateway.post("/v1/chat/completions", ASKED)
    assert reply.body == body
    (ended,) = await gateway.facts("turn_ended")
    assert ended.reason == f"not captured: {why}"


def test_what_is_small_packed_and_large_unpacked_is_not_unpacked():
    decompressor = Decompressor("gzip", limit=1000)
    assert decompressor.feed(gzip.compress(bytes(1000))) == bytes(1000)
    decompressor = Decompressor("gzip", limit=1000)
    assert decompressor.feed(gzip.compress(bytes(1001))) == b""
    assert (decompressor.readable, decompressor.reason) == (False, "is too large when decompressed")


async def test_the_next_request_goes_on():
    big = Answer(200, b"data: " + bytes(2 * LIMIT), STREAM)
    said = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}
    gateway = InProcessGateway(ScriptedWire(big, Answer(200, said)), max_body_bytes=LIMIT)
    await gateway.post("/v1/chat/completions", {**ASKED, "stream": True})
    assert (await gateway.post("/v1/chat/completions", ASKED)).status == 200
    outcomes = [str(fact.outcome) for fact in await gateway.facts("turn_ended")]
    assert sorted(outcomes) == ["aborted", "completed"]


CHAT = DIALECTS["chat"]


class Faulty:
    """A dialect with a mistake in it: its reader breaks at the second piece, or at the end."""

    def __init__(self, at):
        self.at = at

    def __getattr__(self, name):
        return getattr(CHAT, name)

    def reader(self, **more):
        reader, at = CHAT.reader(**more), self.at
        seen = []

        class Broken:
            def __getattr__(self, name):
                return getattr(reader, name)

            def feed(self, data):
                seen.append(data)
                if at == "feed" and len(seen) == 2:
                    raise KeyError("what somebody said")
                return reader.feed(data)

            def close(self, *, reason=""):
                if at == "close":
                    raise KeyError("what somebody said")
                return reader.close(reason=reason)

        return Broken()


class Pieces(Answer):
    async def chunks(self):
        for piece in self.body.split(b"|"):
            yield piece


@pytest.mark.parametrize("at", ["feed", "close"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_fault_of_ours_costs_no_client_its_answer(at, stream, monkeypatch):
    monkeypatch.setitem(DIALECTS, "chat", faulty := Faulty(at))
    head = STREAM if stream else {"content-type": "application/json"}
    answer = Pieces(200, b"data: {}|\n\ndata: [DONE]|\n\n", head)
    gateway = InProcessGateway(EndlessWire(answer))
    reply = await gateway.post("/v1/chat/completions", {**ASKED, "stream": stream})
    assert (reply.status, reply.body) == (200, b"data: {}\n\ndata: [DONE]\n\n")
    told = [*gateway.notes.losses, *(fact.reason for fact in await gateway.facts("turn_ended"))]
    assert "an error in Thoughtline, KeyError at test_recording.py" in " ".join(told)
    assert "somebody" not in " ".join(told)
    assert faulty.at == at


class Stalling(Answer):
    """Says half of it, and then nothing more."""

    def __init__(self, *said):
        super().__init__(*said)
        self.said = asyncio.Event()

    async def chunks(self):
        yield self.body
        self.said.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("finish", [False, True])
async def test_a_stream_whose_time_is_over_is_logged_as_far_as_it_came(finish):
    """What the server does when the time to finish is up, or at a second Ctrl-C."""
    half = b'data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}\n\n'
    answer = Stalling(200, half, STREAM)
    gateway = InProcessGateway(EndlessWire(answer), finish_on_disconnect=finish)
    asking = asyncio.ensure_future(gateway.post("/v1/chat/completions", {**ASKED, "stream": True}))
    await answer.said.wait()
    asking.cancel()
    assert (await asking).body == half
    (ended,) = await gateway.facts("turn_ended")
    assert (str(ended.outcome), ended.reason) == ("aborted", "the gateway was stopped")
    (kept,) = await gateway.facts("reasoning")
    assert kept.thought.raw == '"hm"'


async def test_a_fault_before_the_answer_is_an_answer_in_shape(monkeypatch):
    class Worse(Faulty):
        def edits(self, *_):
            raise KeyError("what somebody said")

    monkeypatch.setitem(DIALECTS, "chat", Worse(""))
    told = []

    async def send(message):
        told.append(message)

    async def receive():
        return {"type": "http.request", "body": json.dumps(ASKED).encode(), "more_body": False}

    gateway = InProcessGateway(ScriptedWire(Answer()))
    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
    with pytest.raises(KeyError):
        await gateway.proxy(scope, receive, send)
    error = json.loads(told[1]["body"])["error"]
    assert (told[0]["status"], error["code"]) == (500, "internal_error")
    assert "KeyError at" in error["message"]
    assert "somebody" not in error["message"]


# -- what is captured all the same ---------------------------------------------------------------


class Contrary(SimWire):
    """A provider that streams to those who did not ask for it, and to nobody else."""

    def send(self, request):
        body = json.loads(request.body)
        body["stream"] = not body["stream"]
        return super().send(replace(request, body=json.dumps(body).encode()))


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("name", "path", "model", "more"),
    [
        ("deepseek", "/v1/chat/completions", "deepseek-v4-pro", SAID),
        ("openai", "/v1/responses", "gpt-5.6", {"input": "hi"}),
        (
            "claude",
            "/v1/messages",
            "claude-sonnet-4-5",
            SAID | {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096},
        ),
    ],
)
async def test_an_answer_that_comes_otherwise_than_it_was_asked_for(
    name, path, model, more, stream
):
    gateway = InProcessGateway(Contrary(simulator(name)), {"claude": "anthropic"}.get(name, name))
    asked = {"model": model, "stream": stream, **more}
    answer = await gateway.post(path, asked)
    assert ("json" in answer.header("content-type")) is stream
    assert [ended.outcome for ended in await gateway.facts("turn_ended")] == ["completed"]
    assert len(await gateway.facts("reasoning")) == 1


def delta(**fields):
    chunk = {"choices": [{"index": 0, "delta": fields}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


class InPieces(Answer):
    pieces = ()

    async def chunks(self):
        for piece in self.pieces:
            yield piece


@pytest.mark.parametrize("reads_on", [True, False])
async def test_what_comes_after_the_end_is_part_of_the_turn(reads_on):
    """The turn is found again by a client that stops at the end, and by one that reads on."""
    stop = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\n'
    end = b"data: [DONE]\n\n"
    first = InPieces(200, b"", STREAM)
    late = (delta(content=" And more."), usage)
    first.pieces = (delta(reasoning_content="hm"), delta(content="Hello."), stop, end, *late)
    second = Answer(200, {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]})
    gateway = InProcessGateway(EndlessWire(first))
    answer = await gateway.post("/v1/chat/completions", {**ASKED, "stream": True})
    assert answer.body == b"".join(first.pieces)
    gateway.wire.answers[0] = second
    said = "Hello. And more." if reads_on else "Hello."
    history = [
        *ASKED["messages"],
        {"role": "assistant", "content": said},
        {"role": "user", "content": "on"},
    ]
    answer = await gateway.post("/v1/chat/completions", {**ASKED, "messages": history})
    assert answer.header("x-thoughtline-replay").startswith("restored=1; missed=0")
    (session,) = {event.session for event in await gateway.events("turn_started")}
    turn = Session(session).extend(await gateway.store.read(session)).turns[0]
    assert [getattr(part, "text", "") for part in turn.output] == ["hm", "Hello.", " And more."]


async def test_nothing_is_written_where_nothing_is_said_after_the_end():
    end = b"data: [DONE]\n\n"
    answer = InPieces(200, b"", STREAM)
    answer.pieces = (delta(content="Hello."), end, b"\n", b": bye\n\n")
    gateway = InProcessGateway(EndlessWire(answer))
    await gateway.post("/v1/chat/completions", {**ASKED, "stream": True})
    (session,) = await gateway.store.sessions()
    assert [event.type for event in await gateway.store.read(session.session)] == [
        "turn_started",
        "user_message",
        "assistant_message",
        "turn_ended",
    ]


# -- read later than it came ---------------------------------------------------------------------


def recording(clock, dialect="chat"):
    chat = DIALECTS[dialect]
    target = SimpleNamespace(origin=Origin(dialect=dialect, model="m"))
    decision = SimpleNamespace(
        path=request_path(()), replay_plan=ReplayPlan(decisions=()), target=target, dialect=chat
    )
    return Recording(decision, tenant="t", clock=clock, stream=True)


def deltas():
    """A thought that comes in three pieces, some text, the end; seconds before each of them."""
    for seconds, delta in (
        (0.5, {"reasoning_content": "I "}),
        (1.0, {"reasoning_content": "think"}),
        (2.0, {"reasoning_content": " so."}),
        (4.0, {"content": "Yes."}),
    ):
        chunk = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta}]}
        yield seconds, b"data: %s\n\n" % json.dumps(chunk).encode()
    yield 8.0, b"data: [DONE]\n\n"


def test_what_is_read_later_has_the_times_of_its_arrival():
    """Thoughts, events and index entry are those of an answer that is read piece by piece."""
    batches = []
    for way in (Recording.feed, Recording.feed_later):
        clock = FrozenClock()
        one = recording(clock)
        for seconds, piece in deltas():
            clock.advance(seconds)
            way(one, piece)
        assert bool(one._unread) is (way is Recording.feed_later)
        clock.advance(3.0)
        batches.append(one.finish())
    assert batches[0] == batches[1]
    (thought,) = [draft for draft in batches[1].drafts if draft.type == "reasoning"]
    timing = decode(thought.type, thought.version, thought.data).thought.timing
    assert (timing.first - timing.sent, timing.last - timing.sent) == (500_000_000, 3_500_000_000)
    assert timing.closed - timing.sent == 7_500_000_000
    ended = batches[1].drafts[-1]
    assert decode(ended.type, ended.version, ended.data).first_output == 0.5


def test_an_answer_in_one_piece_has_no_first_token():
    clock = FrozenClock()
    one = recording(clock)
    clock.advance(2.0)
    one.feed(b'{"choices": [{"message": {"role": "assistant", "content": "Yes."}}]}')
    ended = one.finish().drafts[-1]
    assert decode(ended.type, ended.version, ended.data).first_output is None


def test_whoever_looks_sees_all_that_has_come():
    clock = FrozenClock()
    one = recording(clock)
    versions = [one.version]
    for seconds, piece in deltas():
        clock.advance(seconds)
        one.feed_later(piece)
        versions.append(one.version)
        assert not one._unread
    assert versions[0] != versions[1] == versions[3] != versions[4]
    assert one.spoke
    assert one.done
    assert one.snapshot().output[0].text == "I think so."


def test_what_is_unread_is_bounded():
    one = recording(FrozenClock())
    for _, piece in [*deltas()][:-1] * 50:
        one.feed_later(piece)
        assert one._unread_size < MAX_UNREAD


WORDS = ["so", " on", " é", " x" * 40, ", and"]
PLAIN_CHUNK = 'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"%s":"%s"}}]}\n\n'
PLAIN_BLOCK = 'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"%s_delta","%s":"%s"}}\n\n'
START = b'data: {"type":"message_start","message":{"id":"c","model":"m"}}\n\n'
ODD = ["", "a <b", "\\n", '\\"', "id", "c", "delta", "</think>"]


def alike(dialect, kind, words):
    """Events that differ in a text, as their provider writes them."""
    if dialect == "chat":
        return [(PLAIN_CHUNK % (kind, word)).encode() for word in words]
    return [(PLAIN_BLOCK % (kind, kind, word)).encode() for word in words]


def recorded(dialect, pieces, *, later):
    """What is written of an answer of which each piece comes a second after the one before."""
    clock = FrozenClock()
    one = recording(clock, dialect)
    reads = []
    feed, one._reader.feed = one._reader.feed, lambda data: reads.append(data) or feed(data)
    for piece in pieces:
        clock.advance(1.0)
        one.feed_later(piece) if later else one.feed(piece)
        assert one._unread_size < MAX_UNREAD
    clock.advance(1.0)
    return one.finish(), one._fed, len(reads)


@pytest.mark.parametrize(
    ("dialect", "kinds"),
    [
        ("chat", ("reasoning_content", "content")),
        ("chat", ("reasoning", "content", "reasoning")),
        ("messages", ("thinking",)),
        ("messages", ("text",)),
    ],
)
def test_many_pieces_that_differ_in_a_text_are_read_as_few(dialect, kinds):
    pieces = [piece for kind in kinds for piece in alike(dialect, kind, WORDS * 40)]
    at_once, fed, reads = recorded(dialect, pieces, later=False)
    later, fed_later, few = recorded(dialect, pieces, later=True)
    assert later == at_once
    assert fed_later == fed == sum(map(len, pieces))
    assert few < reads / 3


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("dialect", ["chat", "messages"])
def test_pieces_in_short_say_what_they_said_at_length(dialect, seed):
    """Odd texts, halves of letters, several events at once, events cut anywhere."""
    random = Random(seed)
    odd = ODD if seed % 3 else ["id", "c", "é"]
    kinds = ("reasoning_content", "content") if dialect == "chat" else ("thinking", "partial_json")
    pieces = [START] if dialect == "messages" else []
    for kind in random.choices(kinds, k=4):
        words = [random.choice(odd if random.random() < 0.1 else WORDS) for _ in range(60)]
        pieces += alike(dialect, kind, words)
    at = random.randrange(len(pieces) - 1)
    if seed % 4 == 0:  # a letter that is cut in two
        pieces[at : at + 2] = [b.replace(b"\xc3\xa9", b"\xc3") for b in pieces[at : at + 2]]
    if seed % 4 == 1:  # events that come together, or in two pieces
        whole = b"".join(pieces[at : at + 20])
        cut = random.randrange(len(whole))
        pieces[at : at + 20] = [whole[:cut], whole[cut:]]
    assert recorded(dialect, pieces, later=True)[:2] == recorded(dialect, pieces, later=False)[:2]


@pytest.mark.parametrize(
    "more",
    [
        '"reasoning_details":[{"type":"reasoning.text","text":"same"}],',
        '"tool_calls":[{"index":0,"function":{"arguments":"1"}}],',
    ],
)
def test_what_else_is_said_with_each_text_is_not_left_out(more):
    pieces = [
        p.replace(b'{"content"', b'{%b"content"' % more.encode())
        for p in alike("chat", "content", WORDS * 20)
    ]
    assert recorded("chat", pieces, later=True)[0] == recorded("chat", pieces, later=False)[0]


def test_a_fault_of_the_reader_costs_the_record_and_nobody_an_answer():
    one = recording(FrozenClock())
    one._reader.feed = lambda data: 1 / 0
    one.feed_later(b"data: {}\n\n")
    assert not one.done
    assert "ZeroDivisionError" in one.capture_error


def test_a_stream_of_more_text_than_any_model_says_is_not_kept():
    """At its end all of it is written in one piece, which would hold everybody up."""
    made = recording(FrozenClock())
    event = b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % (b"\\n" * 50_000)
    for _ in range(170):
        made.feed(event)
    assert not made.capture_error
    for _ in range(40):
        made.feed(event)
    assert "not plain ASCII" in made.capture_error
