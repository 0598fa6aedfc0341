"""Items of the Responses API, written by hand, and readers of what is recorded of it."""

import json

from support.reader_contract import checked
from support.recordings import responses as recordings
from thoughtline.dialects.responses import Responses
from thoughtline.dialects.responses.reader import ResponsesReader
from thoughtline.log.events import AssistantMessage, Reasoning, ToolCall
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


def play(pieces, *, stream=True, broken=False):
    """Everything that is told of a response that comes in these pieces."""
    one = reader(stream=stream)
    told = [happening for piece in pieces for happening in one.feed(piece)]
    return checked(told + one.close(reason="hung up"), broken=broken)


def told(chunks, *, stream):
    """The output of a turn as it is told of a response that came in these chunks."""
    one = RESPONSES.reader(stream=stream, clock=FrozenClock(), origin=Origin(), sent=0)
    parts = []
    for happening in [h for chunk in chunks for h in one.feed(chunk)] + one.close():
        match happening:
            case Reasoning(thought=thought):
                parts.append(thought)
            case ToolCall(call=call):
                parts.append(call)
            case AssistantMessage(parts=said):
                parts += said
    return tuple(parts)


def captured(*raws):
    """The output of a turn that has these items."""
    body = f'{{"id":"resp_1","model":"m","status":"completed","output":[{",".join(raws)}]}}'
    return told([body.encode()], stream=False)
