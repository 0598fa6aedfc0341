"""Chunks of a UI message stream, read as a client reads them."""

import json

from thoughtline.agents.ui.chunks import MessageEncoder
from thoughtline.log.events import (
    Event,
    Outcome,
    Reasoning,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    TurnEnded,
    draft,
)
from thoughtline.log.parts import Carrier, Thought, Timing

NAMES = ("deepseek", "claude", "openai", "gemini", "mistral", "openrouter", "copilot")


def unframed(body):
    events = body.decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]


def merged(into, value):
    for key, more in value.items():
        both = isinstance(more, dict) and isinstance(into.get(key), dict)
        into[key] = merged(into[key], more) if both else more
    return into


def check(chunks):
    """The grammar of the protocol; gives the metadata at the end."""
    opened, calls, step, metadata = {}, {}, False, {}
    assert chunks[0]["type"] == "start"
    for chunk in chunks[1:]:
        kind, _, stage = chunk["type"].rpartition("-")
        if kind in ("text", "reasoning"):
            assert step
            if stage == "start":
                assert chunk["id"] not in opened and not any(opened.values())
            else:
                assert opened[chunk["id"]]
            opened[chunk["id"]] = stage != "end"
        elif chunk["type"] == "start-step":
            assert not step
            step = True
        elif chunk["type"] == "finish-step":
            assert step and not any(opened.values())
            step = False
        elif kind == "tool-input":
            before = calls.get(chunk["toolCallId"])
            assert before is None if stage == "start" else before in ("start", "delta")
            calls[chunk["toolCallId"]] = stage
        elif kind == "tool-output":
            assert calls[chunk["toolCallId"]] in ("available", "error")
            calls[chunk["toolCallId"]] = "output"
        elif chunk["type"] == "message-metadata":
            merged(metadata, chunk["messageMetadata"])
        else:
            assert chunk is chunks[-1] and chunk["type"] in ("finish", "abort", "error")
    assert not step and not any(opened.values())
    return metadata


def events(*bodies):
    for seq, body in enumerate(bodies):
        made = draft(body, id=f"e{seq}", parent="", at=0.0)
        fields = {name: getattr(made, name) for name in made.__struct_fields__}
        yield Event(session="s", seq=seq, **fields)


def told(*happenings):
    encoder = MessageEncoder("m")
    bodies = [
        h for h in happenings if not isinstance(h, ReasoningDelta | TextDelta | ToolCallDelta)
    ]
    wrapped = dict(zip(map(id, bodies), events(*bodies), strict=True))
    chunks = [c for h in happenings for c in encoder.feed(wrapped.get(id(h), h), 5.0)]
    chunks += encoder.end()
    return chunks, check(chunks)


def thought(id="", text="hm", carrier=Carrier.ITEM, start=0, end=3):
    timing = Timing(sent=0, opened=start * 10**9, closed=end * 10**9)
    return Reasoning(thought=Thought(carrier=carrier, raw="{}", id=id, text=text, timing=timing))


DONE = TurnEnded(outcome=Outcome.COMPLETED)
