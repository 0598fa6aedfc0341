"""How much CPU the Messages and Gemini readers take per delta, and their patches per history.

`run` gives rows of (what, figure, unit); nothing is asserted but that the right thing is measured.
"""

import json
from collections.abc import Callable

from benchmarks.timing import best
from thoughtline.clock import SystemClock
from thoughtline.dialects.base import Dialect, PlacedThought, Revision
from thoughtline.dialects.gemini import Gemini
from thoughtline.dialects.messages import Messages
from thoughtline.log.parts import Carrier, Origin
from thoughtline.log.turns import Place

DELTAS = 20_000
READ = 4096
TURNS = 130

_COUNTS = {
    "promptTokenCount": 412,
    "candidatesTokenCount": 37,
    "totalTokenCount": 951,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 412}],
    "thoughtsTokenCount": 502,
}


def _messages(kind: str, key: str, block: dict[str, object]) -> bytes:
    """A stream of deltas of one block, as the provider spells them."""
    start = {"type": "content_block_start", "index": 0, "content_block": block}
    frames = [f"event: content_block_start\ndata: {json.dumps(start)}\n\n"]
    for number in range(DELTAS):
        delta = {"type": kind, key: f" reasoning {number}"}
        event = {"type": "content_block_delta", "index": 0, "delta": delta}
        data = json.dumps(event, separators=(",", ":"))
        frames.append(f"event: content_block_delta\ndata: {data}\n\n")
    return "".join(frames).encode()


def _gemini(form: str, **members: object) -> bytes:
    """A stream of chunks, each with one piece of text and everything that comes along with it."""
    chunks = []
    for number in range(DELTAS):
        part = {"text": f" reasoning {number}", **members}
        chunk = {
            "candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}],
            "usageMetadata": _COUNTS,
            "modelVersion": "gemini-3-pro-preview",
            "responseId": "mAITaLOUHPaU1MkP",
        }
        chunks.append(json.dumps(chunk, indent=2 if form == "array" else None))
    if form == "array":
        return ("[" + "\n,\n".join(chunks) + "\n]").encode()
    return "".join(f"data: {chunk}{form}{form}" for chunk in chunks).encode()


def _reading(dialect: Dialect, stream: bytes) -> Callable[[], None]:
    def work() -> None:
        reader = dialect.reader(stream=True, clock=SystemClock(), origin=Origin(), sent=0)
        told = 0
        for start in range(0, len(stream), READ):
            told += len(reader.feed(stream[start : start + READ]))
        assert told >= DELTAS

    return work


def _messages_history() -> bytes:
    """About half a megabyte of a client that strips its thoughts."""
    messages: list[object] = []
    for number in range(TURNS):
        id = f"toolu_{number:024d}"
        question = [{"type": "text", "text": f"Question {number}: " + "lorem ipsum " * 60}]
        input = {"path": "src/thoughtline/parts.py", "lines": [1, 200]}
        call = {"type": "tool_use", "id": id, "name": "read", "input": input}
        result = {"type": "tool_result", "tool_use_id": id, "content": "line\n" * 480}
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": [call]})
        messages.append({"role": "user", "content": [result]})
    return json.dumps({"model": "claude", "messages": messages, "stream": True}).encode()


def _gemini_history() -> bytes:
    contents: list[object] = []
    for number in range(TURNS):
        question = {"text": f"Question {number}: " + "lorem ipsum " * 60}
        call = {"name": "read", "args": {"path": "src/thoughtline/parts.py", "lines": [1, 200]}}
        result = {"name": "read", "response": {"result": "line\n" * 480}}
        contents.append({"role": "user", "parts": [question]})
        contents.append({"role": "model", "parts": [{"functionCall": call}]})
        contents.append({"role": "user", "parts": [{"functionResponse": result}]})
    return json.dumps({"contents": contents}).encode()


def _history(dialect: Dialect, body: bytes, carrier: Carrier, raw: str) -> list[Callable[[], None]]:
    request = dialect.read(body)
    revisions = [
        Revision(turn=n, thoughts=(PlacedThought(Place("call", 0), carrier, raw % n),))
        for n, turn in enumerate(request.turns)
        if turn.output
    ]
    assert len(revisions) == TURNS

    def read() -> None:
        dialect.read(body)

    def patch() -> None:
        assert dialect.patch(request, revisions) is not body

    def prefixes() -> None:
        dialect.prefixes(request)

    return [read, patch, prefixes]


def run() -> list[tuple[str, float, str]]:
    """Measure."""
    messages, gemini = Messages(), Gemini()
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    streams: list[tuple[str, Dialect, bytes]] = [
        ("messages, thinking", messages, _messages("thinking_delta", "thinking", thinking)),
        ("messages, text", messages, _messages("text_delta", "text", {"type": "text", "text": ""})),
        ("messages, arguments", messages, _messages("input_json_delta", "partial_json", call)),
        ("gemini, text", gemini, _gemini("\r\n")),
        ("gemini, text, LF", gemini, _gemini("\n")),
        ("gemini, summary", gemini, _gemini("\r\n", thought=True)),
        ("gemini, text in an array", gemini, _gemini("array")),
    ]
    rows = [
        (f"reader, {name}", best(_reading(dialect, stream)) / DELTAS * 1e6, "µs per delta")
        for name, dialect, stream in streams
    ]
    block = '{"type":"thinking","thinking":"","signature":"%d' + "EqQB" * 500 + '"}'
    sealed = '"%d' + "EqQB" * 500 + '"'
    read, patch, prefixes = _history(messages, _messages_history(), Carrier.BLOCK, block)
    rows.append(("messages, read 0.5 MB", best(read) * 1e3, "ms"))
    rows.append((f"messages, put {TURNS} thoughts into it", best(patch) * 1e3, "ms"))
    rows.append(("messages, digests of its prefixes", best(prefixes) * 1e3, "ms"))
    read, patch, _ = _history(gemini, _gemini_history(), Carrier.SIGNATURE, sealed)
    rows.append(("gemini, read 0.5 MB", best(read) * 1e3, "ms"))
    rows.append((f"gemini, put {TURNS} signatures into it", best(patch) * 1e3, "ms"))
    return rows


if __name__ == "__main__":
    for name, figure, unit in run():
        print(f"{name:<50} {figure:>10.2f} {unit}")
