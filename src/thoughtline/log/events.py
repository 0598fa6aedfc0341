"""Events: the envelope, the bodies that are written, and the deltas that are only streamed.

An `Event` is immutable, numbered without gaps within its session, and carries its body as JSON
text, verbatim: types and fields of a newer version survive reading, exporting and importing.
Canonical bodies are what a turn is folded from; bookkeeping makes the log self-sufficient. Deltas
and keep-alives are only shown live: `draft` refuses them. `upcast` lifts old versions step by step.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct, field

from thoughtline.errors import Ephemeral, Unreadable
from thoughtline.log.decisions import ReplayDecision
from thoughtline.log.parts import Blob, Call, Decision, Origin, Result, Text, Thought, Timing
from thoughtline.log.quirks import Quirk
from thoughtline.log.usage import Usage


class Outcome(StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CAPPED = "capped"  # ran into a limit of tokens or iterations
    ABORTED = "aborted"  # the client disconnected, or the turn was cancelled


class StopReason(StrEnum):
    """Why a model stopped, in no dialect's words."""

    END = "end"  # it had said everything
    CALLS = "calls"  # it waits for results of its calls
    LENGTH = "length"  # the limit of tokens
    STOP_TEXT = "stop_text"  # one of the texts that the request named
    FILTER = "filter"  # a refusal, or a filter of the provider
    WINDOW = "window"  # the context window is full
    OTHER = "other"  # paused, or a call that could not be read


# -- canonical: what a turn is folded from ---------------------------------------------------


class UserMessage(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The message of a user, or of the program in the user's place."""

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
    """The result of a tool call."""

    result: Result


class PermissionDecision(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Whether a tool call was permitted: allow, deny or always."""

    decision: Decision


# -- bookkeeping: what makes the log self-sufficient -----------------------------------------


class ClientView(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """How a client of another dialect knows a turn: what it echoes is not what was said."""

    dialect: str
    tools: dict[str, tuple[str, str, str]] = {}  # a provider's name → kind, namespace, name


class TurnStarted(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A request was sent. The event's id is the turn's id, its parent the turn before."""

    target: Origin | None = None
    replay: tuple[ReplayDecision, ...] = ()  # what was put back, dropped or missed, and why
    repeated: int = 0  # how many decisions of the turn before come first, unchanged
    tally: dict[
        str, int
    ] = {}  # with `repeated`: how many of each action, the repeated ones included
    thinking_off: bool = False  # switched off for this exchange: a demanded thought is lost
    system: str | None = None  # an agent's system prompt, where it changed; None: as before
    client: ClientView | None = None  # where the client spoke another dialect
    tools: bool = False  # a conversation begins with it, and the request declared tools


UNREAD_KINDS = ("organization", "end_user", "model", "prefix", "turn_boundary")


class Unread(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A thought that came back to its provider, and that the model did not get to see."""

    at: str  # how the provider names it: an item's id, or a path in the request
    reason: str  # in the provider's word
    turn: str = ""  # whose thought it is, where that is known

    @property
    def kind(self) -> str:
        """The reason in one vocabulary for all providers: what the thought is bound to."""
        word = self.reason.removesuffix("_mismatch").removesuffix("_binding")
        return word if word in UNREAD_KINDS else "other"


class TurnEnded(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The exchange is over."""

    outcome: Outcome
    reason: str = ""
    usage: Usage | None = None
    response: str = ""  # the provider's id of its response
    model: str = ""  # as served
    wire: str = ""  # over a WebSocket: "continued", or why the full request was sent
    stop: StopReason | None = None  # None: not known
    stop_text: str = ""  # the text that stopped it, where the provider says which
    first_output: float | None = None  # seconds from the request to the first token of a stream
    unread: tuple[Unread, ...] = ()  # thoughts of the request that the model did not get


class Quarantined(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A provider refused this thought, or it came damaged: never send it again."""

    turn: str
    thoughts: tuple[int, ...] = ()  # positions among the turn's thoughts; empty: all of them
    reason: str = ""


class SessionForked(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """This session goes on from a turn of another one, by reference."""

    session: str
    turn: str


class EndpointLearned(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """An endpoint differs from its policy row, as a refusal showed and a new attempt proved."""

    endpoint: str
    dialect: str
    model: str  # "*": whatever the model
    quirk: Quirk = field(default=Quirk(), name="lesson")  # what differs from its policy row
    reason: str = ""


class RequestFailed(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A request got no answer of a model: the provider refused it, or the gateway did."""

    status: int  # what the client was told
    reason: str = ""  # in the provider's own words, or in the gateway's
    code: str = ""  # of the gateway's error; empty: the provider's own answer went to the client
    method: str = ""
    path: str = ""
    upstream: str = ""  # what the user calls it
    target: Origin | None = None  # None: the request had no history, or no upstream was found
    tenant: str = ""
    session: str = ""  # the conversation that it was part of, where that is known
    turn: str = ""  # the turn that it went on from
    replay: dict[str, int] = {}  # outputs by `ReplayWord`, zeros left out
    thinking_off: bool = False
    corrected: bool = False  # it was sent once more, and refused again
    stream: bool = False
    seconds: float = 0.0


class DeletionDone(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Somebody deleted something: what was read before may show what is gone."""

    kind: str  # forget, erase or purge, as in `stores.deletions`
    session: str = ""  # of this session alone; empty: of any


Canonical = UserMessage | Reasoning | AssistantMessage | ToolCall | ToolResult | PermissionDecision
Bookkeeping = (
    TurnStarted
    | TurnEnded
    | Quarantined
    | SessionForked
    | EndpointLearned
    | RequestFailed
    | DeletionDone
)
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
    "request_failed": RequestFailed,
    "deletion_done": DeletionDone,
}
TYPE_NAMES: dict[type, str] = {cls: name for name, cls in TYPES.items()}
VERSIONS: dict[str, int] = dict.fromkeys(TYPES, 1) | {"turn_ended": 2}
"""Version 2 of a turn_ended: `log.usage` says how its tokens are counted."""


DAMAGED = "damaged"
"""Type of the events that a store returns in the place of those it cannot read any more."""
DAMAGED_VERSION = 0
"""The version of an event whose body is damaged; nothing is ever written with it."""


# -- ephemeral: shown live, never written ----------------------------------------------------


class ReasoningStart(Struct, frozen=True, gc=False):
    """A thought begins. It may stay without text: sealed ones often do."""

    item: str = ""
    at: float | None = None  # the time of day


class ReasoningDelta(Struct, frozen=True, gc=False):
    """More characters of a thought or of its summary."""

    text: str
    item: str = ""


class ReasoningEnd(Struct, frozen=True, gc=False):
    """A thought is complete as far as the stream shows; the stored thought decides."""

    timing: Timing
    item: str = ""

    @property
    def seconds(self) -> int | None:
        """How long the thought took: whole seconds, rounded up, at least 1; None is unknown."""
        from thoughtline.log.durations import closed_span  # which is built on events

        return closed_span(self.timing, key=self.item, first=False).seconds


class TextDelta(Struct, frozen=True, gc=False):
    """More characters of the answer."""

    text: str


class RefusalDelta(TextDelta, frozen=True, gc=False):
    """More characters of a text in which the model says that it will not answer."""


class Citation(Struct, frozen=True, gc=False):
    """A link that a passage of the answer rests on."""

    url: str
    title: str = ""
    quote: str = ""  # what the source says
    start: int | None = None  # in characters of all that the answer says; None: not known where
    end: int = 0


class ToolCallDelta(Struct, frozen=True, gc=False):
    """More characters of a call's arguments."""

    index: int  # which of the answer's calls it is
    arguments: str
    name: str = ""
    id: str = ""


class Keepalive(Struct, frozen=True, gc=False):
    """The connection is alive while nothing is said."""


Delta = (
    ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | TextDelta
    | RefusalDelta
    | Citation
    | ToolCallDelta
    | Keepalive
)
StreamEvent = Body | Delta
"""What a stream reader yields: deltas as they come, canonical bodies when they are complete."""


# -- the envelope ----------------------------------------------------------------------------


class Event(Struct, frozen=True, gc=False):
    """A numbered event of a session. `parent` is its turn; for a turn_started, the turn before."""

    session: str
    seq: int
    id: str
    parent: str
    at: float
    type: str
    version: int
    data: str  # the body as JSON text, verbatim

    def body(self) -> Body | None:
        """Return the body, lifted to the newest version; None if this version cannot read it.

        Raises `Unreadable` where it is damaged.
        """
        return decode(self.type, self.version, self.data)

    def readable_body(self) -> Body | None:
        """Return the body; None where it is damaged, too."""
        try:
            return self.body()
        except Unreadable:
            return None


class Draft(Struct, frozen=True, gc=False):
    """An event before it is appended: the store gives it its session and seq."""

    id: str
    parent: str
    at: float
    type: str
    version: int
    data: str


_DECODERS = {name: msgspec.json.Decoder(cls) for name, cls in TYPES.items()}
_encode = msgspec.json.Encoder().encode
_WRITTEN = {cls: (name, VERSIONS[name]) for cls, name in TYPE_NAMES.items()}
"""Type and version under which a body is written."""

Step = Callable[[dict[str, Any]], dict[str, Any]]
UPCASTS: dict[tuple[str, int], Step] = {}
"""(type, version) → how to lift that version's data to the next one."""


def draft(body: Body, id: str, parent: str, at: float) -> Draft:
    """Make an event ready to be appended. Raises `Ephemeral` for what is only shown live."""
    try:
        name, version = _WRITTEN[type(body)]
    except KeyError:
        raise Ephemeral(
            f"{type(body).__name__!r} is only shown live and cannot be written; "
            f"expected one of {', '.join(sorted(TYPES))}"
        ) from None
    return Draft(id, parent, at, name, version, _encode(body).decode())


def upcast(
    type: str, version: int, data: str, steps: Mapping[tuple[str, int], Step] = UPCASTS
) -> str:
    """Lift data of an old version, one version at a time; newest data is returned as it is."""
    if (type, version) not in steps:
        return data
    lifted = msgspec.json.decode(data)
    while step := steps.get((type, version)):
        lifted = step(lifted)
        version += 1
    return _encode(lifted).decode()


def decode(type: str, version: int, data: str) -> Body | None:
    """Decode a body from its JSON text; None for unknown types and unreadable newer versions.

    Raises `Unreadable` for data of a known version that is not what it should be.
    """
    if version == DAMAGED_VERSION:
        raise Unreadable(f"what is stored of a {type!r} event is damaged")
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
