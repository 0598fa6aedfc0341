"""How much CPU the Responses reader takes per delta, and its patch per history.

`run` gives rows of (what, figure, unit); nothing is asserted but that the right thing is measured.
"""

from collections.abc import Callable

import msgspec

from benchmarks.timing import best
from thoughtline.clock import SystemClock
from thoughtline.dialects.base import PlacedThought, Revision
from thoughtline.dialects.responses import Responses
from thoughtline.dialects.responses.reader import ResponsesReader
from thoughtline.log.events import ReasoningDelta, TextDelta, ToolCallDelta
from thoughtline.log.parts import Carrier, Origin
from thoughtline.log.turns import Place

DELTAS = 20_000
READ = 4096
TURNS = 130

_KINDS = (
    ("text", "response.output_text.delta", "msg_0c5f7d2b9ae14d2f0068ae", TextDelta),
    (
        "summary",
        "response.reasoning_summary_text.delta",
        "rs_0c5f7d2b9ae14d2f0068ae",
        ReasoningDelta,
    ),
    (
        "arguments",
        "response.function_call_arguments.delta",
        "fc_0c5f7d2b9ae14d2f0068ae",
        ToolCallDelta,
    ),
)


def _stream(type: str, item: str) -> bytes:
    """A stream of deltas, as the provider spells them, with their padding."""
    frames = []
    for number in range(DELTAS):
        event = {
            "type": type,
            "sequence_number": number + 4,
            "item_id": item,
            "output_index": 1,
            "content_index": 0,
            "delta": " reasoning",
            "logprobs": [],
            "obfuscation": "Zk3q9sLw"[: number % 8],
        }
        frames.append(b"event: %b\ndata: %b\n\n" % (type.encode(), msgspec.json.encode(event)))
    return b"".join(frames)


def _reading(stream: bytes, kind: type) -> Callable[[], None]:
    def work() -> None:
        reader = ResponsesReader(stream=True, clock=SystemClock(), origin=Origin(), sent=0)
        told = 0
        for start in range(0, len(stream), READ):
            told += sum(type(h) is kind for h in reader.feed(stream[start : start + READ]))
        assert told == DELTAS

    return work


def _history() -> bytes:
    """About half a megabyte of a client that strips its thoughts."""
    items: list[object] = []
    for number in range(TURNS):
        call = f"call_{number:024d}"
        items.append({"role": "user", "content": f"Question {number}: " + "lorem ipsum " * 60})
        arguments = '{"path":"src/thoughtline/parts.py","lines":[1,200]}'
        items.append(
            {"type": "function_call", "call_id": call, "name": "read", "arguments": arguments}
        )
        items.append({"type": "function_call_output", "call_id": call, "output": "line\n" * 480})
    return msgspec.json.encode({"model": "gpt-5.6", "input": items, "stream": True})


def _patching(body: bytes) -> tuple[Callable[[], None], Callable[[], None]]:
    dialect = Responses()
    request = dialect.read(body)
    raw = (
        '{"id":"rs_%d","type":"reasoning","summary":[],"encrypted_content":"' + "gAAAA" * 400 + '"}'
    )
    revisions = [
        Revision(turn=n, thoughts=(PlacedThought(Place("call", 0), Carrier.ITEM, raw % n),))
        for n, turn in enumerate(request.turns)
        if turn.output
    ]
    assert len(revisions) == TURNS

    def read() -> None:
        dialect.read(body)

    def patch() -> None:
        assert dialect.patch(request, revisions) is not body

    return read, patch


def run() -> list[tuple[str, float, str]]:
    """Measure."""
    rows = []
    for name, type, item, kind in _KINDS:
        seconds = best(_reading(_stream(type, item), kind))
        rows.append((f"responses: reader, {name} delta", seconds / DELTAS * 1e6, "µs"))
    body = _history()
    read, patch = _patching(body)
    size = f"{len(body) / 1e6:.1f} MB"
    rows.append((f"responses: read of {size}, {TURNS} calls", best(read, 20) * 1e3, "ms"))
    rows.append((f"responses: patch, {TURNS} thoughts put back", best(patch, 20) * 1e3, "ms"))
    return rows


if __name__ == "__main__":
    for what, figure, unit in run():
        print(f"{what:50} {figure:8.2f} {unit}")
