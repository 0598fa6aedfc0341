"""Recorded responses in, happenings out, however the bytes are cut: what every reader must obey."""

from thoughtline.log.events import (
    AssistantMessage,
    Keepalive,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    TurnEnded,
)
from thoughtline.log.parts import Blob


def show(happening):
    """A happening in one line of a playbook."""
    match happening:
        case Keepalive():
            return ("ping",)
        case ReasoningDelta(text):
            return ("think~", text)
        case TextDelta(text):
            return ("text~", text)
        case ToolCallDelta(index, arguments, name, id):
            return ("call~", index, arguments, name, id)
        case Reasoning(thought=thought):
            cut = ("cut",) if thought.timing.aborted else ()
            return ("think", str(thought.carrier), thought.raw, *cut)
        case ToolCall(call=call):
            return ("call", call.name, call.arguments, call.id)
        case AssistantMessage(parts=(Blob(kind=kind, raw=raw),)):
            return ("blob", kind, raw)
        case AssistantMessage(parts=(text,)):
            return ("text", text.text)
        case TurnEnded(outcome=outcome, reason=reason, usage=usage):
            return ("end", str(outcome), reason, usage)


def play(reader, pieces):
    """Everything that is told of a response that comes in these pieces."""
    told = [happening for piece in pieces for happening in reader.feed(piece)]
    return checked(told + reader.close(reason="hung up"))


def checked(told, *, broken=False):
    """All but starts and ends of thoughts, once these agree with the thoughts that are stored.

    `broken`: a thought may be announced that the answer then does not have.
    """
    starts = [happening for happening in told if isinstance(happening, ReasoningStart)]
    ends = [happening.timing for happening in told if isinstance(happening, ReasoningEnd)]
    stored = [happening.thought.timing for happening in told if isinstance(happening, Reasoning)]
    assert all(end.closed is not None and not end.aborted for end in ends)
    assert all(timing in stored for timing in ends), (ends, stored)
    opened = {timing.at for timing in stored}
    assert broken or all(start.at in opened for start in starts), (starts, stored)
    shown = [one for one in told if isinstance(one, ReasoningStart | ReasoningDelta)]
    assert not shown or isinstance(shown[0], ReasoningStart), "a thought begins before its words"
    return [one for one in told if not isinstance(one, ReasoningStart | ReasoningEnd)]
