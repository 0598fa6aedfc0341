"""Facts in a session: one envelope, canonical bodies, and ephemeral happenings.

An `Event` is immutable, numbered without gaps within its session, and carries its body as JSON
text, verbatim: types and fields of a newer version survive reading, exporting and importing.
Canonical bodies are what a turn is folded from; bookkeeping makes the log self-sufficient.
Ephemeral ones (deltas, keep-alives) are only shown live: they have no place in the envelope, and
`draft` refuses them. Old versions are lifted one small step at a time (`upcast`).
The room above is `turns`.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.errors import Ephemeral, Unreadable
from thoughtline.parts import Blob, Call, Decision, Origin, Result, Text, Thought, Timing


class Outcome(StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CAPPED = "capped"  # ran into a limit of tokens or iterations
    ABORTED = "aborted"  # somebody hung up


class Usage(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Tokens as the provider counted them; None where it did not say."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cached: int | None = None


# -- canonical: what a turn is folded from ---------------------------------------------------


class UserMessage(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What a person (or the program in their place) said."""

    parts: tuple[Text | Blob, ...]


class Reasoning(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One reasoning item, in the order it arrived among calls and text."""

    thought: Thought


class AssistantMessage(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Final text of the model; partial text is never logged as if it were final."""

    parts: tuple[Text | Blob, ...]


class ToolCall(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A tool call, complete."""

    call: Call


class ToolResult(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A tool's answer."""

    result: Result


class PermissionDecision(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Allow, deny or always."""

    decision: Decision


# -- bookkeeping: what makes the log self-sufficient -----------------------------------------


class TurnStarted(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A request left. The event's id is the turn's id, its parent the turn before."""

    target: Origin | None = None
    replay: tuple[Any, ...] = ()  # what was put back, dropped or missed, and why (replay.Ruling)
    repeated: int = 0  # so many rulings of the turn before come first, unchanged (see repeats)
    tally: dict[str, int] = {}  # then: how many outputs were ruled how, the repeated ones included


class TurnEnded(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The exchange is over, one way or another."""

    outcome: Outcome
    reason: str = ""
    usage: Usage | None = None
    response: str = ""  # the provider's id of its response
    model: str = ""  # as served
    wire: str = ""  # over a WebSocket: "continued", or why the request went out whole


class Quarantined(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A provider refused this thought: never send it again."""

    turn: str
    thoughts: tuple[int, ...] = ()  # positions among the turn's thoughts; empty: all of them
    reason: str = ""


class SessionForked(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """This session goes on from a turn of another one, by reference."""

    session: str
    turn: str


class EndpointLearned(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """An endpoint's refusal taught what it wants, and the next try proved it."""

    endpoint: str
    dialect: str
    model: str  # "*": whatever the model
    lesson: dict[str, Any] = {}  # what differs from its policy row (gateway.learned.Lesson)
    reason: str = ""


Canonical = UserMessage | Reasoning | AssistantMessage | ToolCall | ToolResult | PermissionDecision
Bookkeeping = TurnStarted | TurnEnded | Quarantined | SessionForked | EndpointLearned
Body = Canonical | Bookkeeping

TYPES: dict[str, type[Body]] = {
    "user_message": UserMessage,
    "reasoning": Reasoning,
    "assistant_message": AssistantMessage,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
    "permission_decision": PermissionDecision,
    "turn_started": TurnStarted,
    "turn_ended": TurnEnded,
    "quarantined": Quarantined,
    "session_forked": SessionForked,
    "endpoint_learned": EndpointLearned,
}
NAMES: dict[type, str] = {cls: name for name, cls in TYPES.items()}
VERSIONS: dict[str, int] = dict.fromkeys(TYPES, 1)


# -- ephemeral: shown live, never written ----------------------------------------------------


class ReasoningDelta(Struct, frozen=True, gc=False):
    """A few more characters of a thought (or of its summary)."""

    text: str
    item: str = ""


class ReasoningEnd(Struct, frozen=True, gc=False):
    """A thought is complete, as far as can be known now; what is stored has the last word."""

    timing: Timing
    item: str = ""


class TextDelta(Struct, frozen=True, gc=False):
    """A few more characters of the answer."""

    text: str


class ToolCallDelta(Struct, frozen=True, gc=False):
    """A few more characters of a call's arguments."""

    index: int
    arguments: str
    name: str = ""
    id: str = ""


class Keepalive(Struct, frozen=True, gc=False):
    """The model is still there."""


Delta = ReasoningDelta | ReasoningEnd | TextDelta | ToolCallDelta | Keepalive
Happening = Body | Delta
"""What a stream reader tells: deltas as they come, canonical bodies when they are complete."""


# -- the envelope ----------------------------------------------------------------------------


class Event(Struct, frozen=True, gc=False):
    """One numbered fact. `parent` is the event's turn; for a turn_started, the turn before."""

    session: str
    seq: int
    id: str
    parent: str
    at: float
    type: str
    version: int
    data: str  # the body as JSON text, verbatim

    def body(self) -> Body | None:
        """The body, lifted to the newest version; None for what this version cannot read."""
        return decode(self.type, self.version, self.data)


class Draft(Struct, frozen=True, gc=False):
    """An event that is not numbered yet: the store gives it its session and seq."""

    id: str
    parent: str
    at: float
    type: str
    version: int
    data: str


_DECODERS = {name: msgspec.json.Decoder(cls) for name, cls in TYPES.items()}
_encode = msgspec.json.Encoder().encode

Step = Callable[[dict[str, Any]], dict[str, Any]]
UPCASTS: dict[tuple[str, int], Step] = {}
"""(type, version) → how to lift that version's data to the next one."""


def draft(body: Body, *, id: str, parent: str, at: float) -> Draft:
    """An event ready to be appended. Raises `Ephemeral` for what is only shown live."""
    name = NAMES.get(type(body))
    if name is None:
        raise Ephemeral(
            f"{type(body).__name__!r} is only shown live and cannot be written; "
            f"expected one of {', '.join(sorted(TYPES))}"
        )
    return Draft(id, parent, at, name, VERSIONS[name], _encode(body).decode())


def upcast(
    type: str, version: int, data: str, steps: Mapping[tuple[str, int], Step] = UPCASTS
) -> str:
    """Lift old data one version at a time; data that needs no step is returned as it is."""
    if (type, version) not in steps:
        return data
    lifted = msgspec.json.decode(data)
    while step := steps.get((type, version)):
        lifted = step(lifted)
        version += 1
    return _encode(lifted).decode()


def decode(type: str, version: int, data: str) -> Body | None:
    """A body from its JSON text, or None for unknown types and unreadable newer versions.

    Raises `Unreadable` for data of a known version that is not what it should be.
    """
    decoder = _DECODERS.get(type)
    if decoder is None:
        return None
    try:
        body: Body = decoder.decode(upcast(type, version, data))
    except (msgspec.MsgspecError, ValueError, LookupError, TypeError, RecursionError) as error:
        if version > VERSIONS[type]:
            return None
        raise Unreadable(f"data of a {type!r} event, version {version}: {error}") from error
    return body
