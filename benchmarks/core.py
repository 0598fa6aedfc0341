"""The values and the Chat Completions dialect: keys, read, patch, the stream reader, folding."""

import json
import random

from msgspec.structs import asdict

from benchmarks.timing import best
from thoughtline.clock import SystemClock
from thoughtline.dialects.base import PlacedThought, Revision
from thoughtline.dialects.chat import ChatCompletions
from thoughtline.dialects.sse import SseParser
from thoughtline.log.events import (
    AssistantMessage,
    Body,
    Event,
    Outcome,
    Reasoning,
    TurnEnded,
    TurnStarted,
    UserMessage,
    draft,
)
from thoughtline.log.keys import rolling_keys
from thoughtline.log.parts import Carrier, Origin, Text, Thought
from thoughtline.log.sessions import Session
from thoughtline.log.turns import Place

DELTAS = 5_000
CHAT = ChatCompletions()


class Words:
    """Prose of a given size, the same in every run."""

    def __init__(self) -> None:
        self.random = random.Random(1)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self.words = [
            "".join(self.random.choices(letters, k=self.random.randint(2, 9))) for _ in range(2_000)
        ]

    def __call__(self, size: int) -> str:
        """About this many characters."""
        return " ".join(self.random.choices(self.words, k=size // 6))


def history(words: Words) -> bytes:
    """300 messages, half a megabyte: users, tool calls with oddly spelled arguments, answers."""
    messages: list[dict[str, object]] = [{"role": "system", "content": words(3_000)}]
    calls = 0
    while len(messages) < 300:
        messages.append({"role": "user", "content": words(600)})
        for _ in range(3):
            arguments = {"path": words(40), "limit": 5.0, "lines": [1, 2, 3], "text": words(300)}
            function = {"name": "read_file", "arguments": json.dumps(arguments)}
            call = {"id": f"call_{calls}", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            answer = words(3_300)
            messages.append({"role": "tool", "tool_call_id": f"call_{calls}", "content": answer})
            calls += 1
        messages.append({"role": "assistant", "content": words(900)})
    return json.dumps({"model": "m", "messages": messages, "stream": True}).encode()


def revisions(turns: int, words: Words) -> list[Revision]:
    """A thought of 2 KB for each of so many turns."""
    made = []
    for index in range(turns):
        raw = json.dumps(words(2_000))
        placed = PlacedThought(Place("text", 0), Carrier.REASONING_CONTENT, raw)
        made.append(Revision(turn=index, thoughts=(placed,)))
    return made


def deltas(kind: str, words: Words) -> list[bytes]:
    """The events of a stream in one kind of delta."""
    events = []
    for _ in range(DELTAS):
        word = words.random.choice(words.words) + " "
        delta: dict[str, object] = {kind: word}
        if kind == "reasoning_details":
            detail = {"type": "reasoning.text", "text": word, "format": "f", "index": 0}
            delta = {"content": "", "reasoning": word, kind: [detail]}
        if kind == "tool_calls":
            delta = {kind: [{"index": 0, "function": {"arguments": word}}]}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        chunk = {
            "id": "chatcmpl-69a0c1d2e3f4",
            "object": "chat.completion.chunk",
            "created": 1765000000,
            "model": "deepseek-v4-pro",
            "system_fingerprint": "fp_eaab8d114b",
            "choices": [choice],
        }
        events.append(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    return events


def blocks(events: list[bytes], size: int = 4_096) -> list[bytes]:
    """The same stream in reads of this size."""
    whole = b"".join(events)
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def consume(chunks: list[bytes]) -> None:
    """One response through the reader."""
    reader = CHAT.reader(stream=True, clock=SystemClock(), origin=Origin(), sent=0)
    for chunk in chunks:
        reader.feed(chunk)
    reader.close()


def split(chunks: list[bytes]) -> None:
    """One response through the splitter alone."""
    splitter = SseParser()
    for chunk in chunks:
        splitter.feed_data(chunk)


def turn(number: int, seq: int) -> list[Event]:
    """The five events of one more turn."""
    thought = Thought(carrier=Carrier.REASONING_CONTENT, raw='"so"', text="so")
    bodies: list[Body] = [
        UserMessage(parts=(Text(text="q"),)),
        Reasoning(thought=thought),
        AssistantMessage(parts=(Text(text="a"),)),
        TurnEnded(outcome=Outcome.COMPLETED),
    ]
    parent = f"t{number - 1}" if number else ""
    drafts = [draft(TurnStarted(), id=f"t{number}", parent=parent, at=0.0)]
    drafts += [draft(b, id=f"e{seq}{n}", parent=f"t{number}", at=0.0) for n, b in enumerate(bodies)]
    return [Event(session="s", seq=seq + n, **asdict(d)) for n, d in enumerate(drafts)]


def folding(events: int, times: int = 400) -> float:
    """Seconds to add a turn to a session that has so many events."""
    session = Session("s")
    turns = events // 5
    for number in range(turns):
        session.extend(turn(number, 5 * number))
    more = [turn(turns + n, events + 5 * n) for n in range(times)]

    def step() -> None:
        session.extend(more.pop(0))
        session.turn(f"t{session.seq // 5}")

    return best(step, times)


def run() -> list[tuple[str, float, str]]:
    """Everything, as rows."""
    words = Words()
    body = history(words)
    request = CHAT.read(body)
    wanted = revisions(130, words)
    size = f"{len(body) / 1e6:.1f} MB, {len(request.turns)} turns"
    rows = [
        (f"chat: read a history ({size})", best(lambda: CHAT.read(body)) * 1e3, "ms CPU"),
        ("keys of that history", best(lambda: rolling_keys(request.turns)) * 1e3, "ms CPU"),
        (
            "chat: patch with 130 thoughts",
            best(lambda: CHAT.patch(request, wanted)) * 1e3,
            "ms CPU",
        ),
        (
            "chat: read + patch with 130 thoughts",
            best(lambda: CHAT.patch(CHAT.read(body), wanted)) * 1e3,
            "ms CPU",
        ),
    ]
    for kind in ("reasoning_content", "content", "reasoning_details", "tool_calls"):
        events = deltas(kind, words)
        for label, chunks in (("4 KB reads", blocks(events)), ("an event a read", events)):
            cost = best(lambda chunks=chunks: consume(chunks)) / DELTAS  # type: ignore[misc]
            rows.append((f"chat reader: a delta of {kind}, {label}", cost * 1e6, "µs CPU"))
    events = deltas("content", words)
    for label, chunks in (("4 KB reads", blocks(events)), ("an event a read", events)):
        cost = best(lambda chunks=chunks: split(chunks)) / DELTAS  # type: ignore[misc]
        rows.append((f"sse alone: an event, {label}", cost * 1e6, "µs CPU"))
    few, many = folding(100), folding(10_000)
    rows.append(("fold one turn onto 100 events", few * 1e6, "µs CPU"))
    rows.append(("fold one turn onto 10,000 events", many * 1e6, "µs CPU"))
    rows.append(("fold: 10,000 events compared with 100", many / few, "times"))
    return rows
