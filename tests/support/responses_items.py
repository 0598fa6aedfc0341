"""Items of the Responses API, written by hand, and readers of what is recorded of it."""

import json

from support.reader_contract import checked
from support.recordings import responses as recordings
from thoughtline.dialects.responses import Responses
from thoughtline.dialects.responses.reader import ResponsesReader
from thoughtline.log.parts import Origin
from thoughtline.log.turns import output_shape
from thoughtline.testing import FrozenClock

RESPONSES = Responses()


def read(*items, **members):
    return RESPONSES.read(json.dumps({"input": list(items), **members}).encode())


def shapes(request):
    return [output_shape(turn.output) for turn in request.turns]


def user(text="?"):
    return {"role": "user", "content": text}


def fc(call="c1", **members):
    return {"type": "function_call", "call_id": call, "name": "f", "arguments": "{}", **members}


def result(id="c1", output="done", kind="function_call_output"):
    return {"type": kind, "call_id": id, "output": output}


def rs(id="rs_1", **members):
    return {"type": "reasoning", "id": id, "summary": [], **members}


def msg(text="Hi", **members):
    return {"type": "message", "role": "assistant", "content": text, **members}


ORIGIN = Origin(dialect="responses", provider="openai", account="a1", model="gpt-5.6")


STREAMS = [name for name in recordings.RECORDINGS if name.endswith(".sse")]


def reader(*, stream=True, clock=None):
    return ResponsesReader(
        stream=stream, clock=clock or FrozenClock(mono=1_000), origin=ORIGIN, sent=10
    )


def play(pieces, *, stream=True):
    """Everything that is told of a response that comes in these pieces."""
    one = reader(stream=stream)
    told = [happening for piece in pieces for happening in one.feed(piece)]
    return checked(told + one.close(reason="hung up"))
