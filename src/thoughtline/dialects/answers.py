"""A provider's answer, told again in another dialect: one block after another.

A `Reader` makes events of what a provider says; `AnswerBlocks` puts them in the order that every
client accepts: a block starts, grows and ends before the next one starts, whatever the provider
interleaves. A dialect's `AnswerWriter` spells blocks as its stream, or as one body: the same items
either way.
"""

from collections.abc import Callable, Iterable
from typing import Literal, Protocol

from msgspec import Struct

from thoughtline.dialects import splice
from thoughtline.dialects.free_text import FreeTextStream, free_text
from thoughtline.dialects.params import ToolSpec
from thoughtline.dialects.tool_names import ToolNames
from thoughtline.dialects.upstream_errors import UpstreamError
from thoughtline.errors import Unreadable
from thoughtline.log.events import (
    AssistantMessage,
    Outcome,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    StopReason,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    TurnEnded,
)
from thoughtline.log.parts import RIDING, Call, Carrier, Text, Thought, ToolKind
from thoughtline.log.usage import Usage

BlockKind = Literal["thought", "text", "call"]

_MESSAGE_MEMBERS = frozenset(
    {
        Carrier.REASONING_CONTENT,
        Carrier.REASONING,
        Carrier.REASONING_DETAILS,
        Carrier.REASONING_TEXT,
        Carrier.REASONING_OPAQUE,
    }
)
"""Carriers that repeat one thought under several keys of one message."""


class Block:
    """One block of an answer: a thought, a text or a call of a tool."""

    __slots__ = ("free_text", "id", "index", "kind", "nth", "pieces", "tool")

    def __init__(self, kind: BlockKind, index: int, nth: int) -> None:
        self.kind = kind
        self.index = index  # among all blocks
        self.nth = nth  # among the blocks of its kind
        self.id = ""  # of a call: unique for the client
        self.tool: ToolSpec | None = None  # of a call: as the client declared it
        self.free_text: FreeTextStream | None = None  # of a call whose tool takes free text
        self.pieces: list[str] = []

    @property
    def text(self) -> str:
        """What it holds so far: a text, a thought, or what a call gives its tool."""
        return "".join(self.pieces)

    @property
    def arguments(self) -> str:
        """The arguments of a call so far, as the provider spells them."""
        return self.text if self.free_text is None else self.free_text.arguments


class BlockStart(Struct, frozen=True, gc=False):
    """A block begins."""

    block: Block


class BlockDelta(Struct, frozen=True, gc=False):
    """A block grows."""

    block: Block
    text: str


class BlockEnd(Struct, frozen=True, gc=False):
    """A block is complete: nothing more of it comes."""

    block: Block


BlockEvent = BlockStart | BlockDelta | BlockEnd


class AnswerEnd(Struct, frozen=True, kw_only=True):
    """How an answer ended."""

    stop: StopReason
    stop_text: str = ""  # the text at which it was stopped, where the provider says which
    usage: Usage = Usage()


class AnswerHead(Struct, frozen=True, kw_only=True):
    """What an answer's writer knows before the first word."""

    id: str  # letters and digits, unique to the turn: ids of the answer and its items hang on it
    model: str  # as the client asked for it
    created: int  # seconds
    stream: bool
    handle: Callable[[int], str]  # the opaque value that names the nth thought of the turn
    input_estimate: int = 0  # tokens, where a client wants a number before the provider has one
    wants_thoughts: bool = True  # else only the opaque value is told
    wants_summary: bool = False
    wants_usage: bool = True
    array: bool = False  # the stream is one JSON array, where a dialect has that


class AnswerWriter(Protocol):
    """Spells an answer in one dialect, as a stream or as one body."""

    def start(self) -> bytes:
        """The beginning of a stream; nothing for one body."""

    def write(self, events: Iterable[BlockEvent]) -> bytes:
        """More of the stream; nothing for one body."""

    def finish(self, end: AnswerEnd) -> bytes:
        """The end of the stream, or the whole body."""

    def fail_with(self, error: UpstreamError) -> bytes:
        """The end of a stream that failed."""

    def keepalive(self) -> bytes:
        """Something between two events that says nothing, and that the client's timer counts."""


class _PendingCall:
    """A call that waits until the one before it is complete."""

    __slots__ = ("id", "name", "pieces")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []


class AnswerBlocks:
    """Puts the events of a reader into blocks, one after the other."""

    def __init__(self, names: ToolNames, mint: Callable[[int], str]) -> None:
        self._names = names
        self._mint = mint  # the client's id of the nth call
        self._open: Block | None = None
        self._growing_text: Block | None = None  # the open block, where that is a text
        self._item = ""  # the provider's id of the open thought
        self._counts: dict[BlockKind, int] = {"thought": 0, "text": 0, "call": 0}
        self._calls: dict[int, _PendingCall] = {}  # by the provider's index
        self._begun: set[int] = set()  # the calls among these that have a block
        self._live: int | None = None  # the index of the call whose block is open
        self._held: list[StreamEvent] = []  # came while a call was open that goes on
        self._parts: list[Thought | Text | Call] = []  # of the log, in order

    @property
    def called(self) -> bool:
        """Whether the answer calls a tool."""
        return self._counts["call"] > 0

    @property
    def begun(self) -> bool:
        """Whether the answer says anything so far."""
        return any(self._counts.values()) or bool(self._calls)

    def feed(self, events: Iterable[StreamEvent]) -> list[BlockEvent]:
        """The blocks of these events; deltas at once, everything else at the end."""
        made: list[BlockEvent] = []
        for event in events:
            if type(event) is TextDelta:  # most events are one more word
                if self._growing_text is not None and event.text:
                    self._growing_text.pieces.append(event.text)
                    made.append(BlockDelta(self._growing_text, event.text))
                else:
                    self._say(event, made)
                continue
            match event:
                case ReasoningDelta() | ReasoningEnd():
                    self._say(event, made)
                case ToolCallDelta():
                    self._call(event, made)
                case Reasoning():
                    self._parts.append(event.thought)
                case AssistantMessage():
                    self._parts += [part for part in event.parts if isinstance(part, Text)]
                case ToolCall():
                    self._parts.append(event.call)
        return made

    def end(self, *, complete: bool) -> list[BlockEvent]:
        """What is left; of an answer that is not complete no call is made up or closed."""
        made: list[BlockEvent] = []
        if not self.begun:
            for part in shown_parts(self._parts):
                self._part(part, made)
        else:
            self._rest(made, complete=complete)
        if self._open is not None and (complete or self._open.kind != "call"):
            self._close(made)
        return made

    # -- deltas ----------------------------------------------------------------------------------

    def _say(self, event: StreamEvent, made: list[BlockEvent]) -> None:
        """A text or a thought; one that comes amid a call waits until the call is complete."""
        if not getattr(event, "text", "-"):
            return
        self._close_call(made)
        if self._open is not None and self._open.kind == "call":
            self._held.append(event)
        else:
            self._tell(event, made)

    def _tell(self, event: StreamEvent, made: list[BlockEvent]) -> None:
        match event:
            case TextDelta():
                self._text(event.text, made)
            case ReasoningDelta():
                self._thought(event, made)
            case ReasoningEnd():
                self._thought_end(made)

    def _close_call(self, made: list[BlockEvent], *, complete: bool = False) -> None:
        """End the open call if it is complete, and tell what waited for that."""
        call = self._open
        if call is None or call.kind != "call" or not (complete or _is_object(call.arguments)):
            return
        self._close(made)
        held, self._held = self._held, []
        for event in held:
            self._tell(event, made)

    def _text(self, text: str, made: list[BlockEvent]) -> None:
        if self._open is None or self._open.kind != "text":
            self._start("text", made)
        self._grow(text, made)
        self._growing_text = self._open

    def _thought(self, delta: ReasoningDelta, made: list[BlockEvent]) -> None:
        same = self._open is not None and self._open.kind == "thought"
        if not same or (delta.item and self._item and delta.item != self._item):
            self._start("thought", made)
        self._item = delta.item or self._item
        self._grow(delta.text, made)

    def _thought_end(self, made: list[BlockEvent]) -> None:
        if self._open is not None and self._open.kind == "thought":
            self._close(made)
        elif self._open is None:  # sealed, with nothing to read
            self._start("thought", made)
            self._close(made)

    def _call(self, delta: ToolCallDelta, made: list[BlockEvent]) -> None:
        call = self._calls.setdefault(delta.index, _PendingCall())
        call.id = call.id or delta.id
        call.name = call.name or delta.name
        call.pieces.append(delta.arguments)
        if self._live == delta.index:
            self._grow_call(delta.arguments, made)
            return
        self._close_call(made)
        if self._live is None and delta.index == len(self._begun) and call.name:
            self._begin_call(delta.index, delta.index, made)  # others wait for the end

    def _begin_call(self, index: int, position: int, made: list[BlockEvent]) -> None:
        call = self._calls[index]
        self._begun.add(index)
        self._start("call", made, call.name, position)
        self._live = index
        self._grow_call("".join(call.pieces), made)

    def _grow_call(self, arguments: str, made: list[BlockEvent]) -> None:
        block = self._open
        if block is not None and block.free_text is not None:
            arguments = block.free_text.feed(arguments)
        if arguments:
            self._grow(arguments, made)

    # -- the end ---------------------------------------------------------------------------------

    def _part(self, part: Thought | Text | Call, made: list[BlockEvent]) -> None:
        """A part that did not stream, as a block."""
        if isinstance(part, Call):
            self._start("call", made, part.name, self._counts["call"])
            self._grow_call(part.arguments, made)
        else:
            self._start("thought" if isinstance(part, Thought) else "text", made)
            if part.text:
                self._grow(part.text, made)
        self._close(made)

    def _rest(self, made: list[BlockEvent], *, complete: bool) -> None:
        """What the deltas did not bring, or brought while something else was open."""
        if complete:
            self._close_call(made, complete=True)
            for position, index in enumerate(sorted(self._calls)):
                if index not in self._begun and self._calls[index].name:
                    self._begin_call(index, position, made)
                    self._close(made)
            for call in [p for p in self._parts if isinstance(p, Call)][len(self._calls) :]:
                self._part(call, made)
        if complete and not self._counts["text"]:
            for part in self._parts:
                if isinstance(part, Text) and part.text:
                    self._part(part, made)

    # -- one block -------------------------------------------------------------------------------

    def _start(
        self, kind: BlockKind, made: list[BlockEvent], name: str = "", position: int = 0
    ) -> None:
        """`position`: of a call among those of the log, which its id is made from."""
        if self._open is not None:
            self._close(made)
        block = Block(kind, sum(self._counts.values()), self._counts[kind])
        if kind == "call":
            block.tool = self._names.declared(name)
            block.id = self._mint(position)
            block.free_text = FreeTextStream() if block.tool.kind is ToolKind.CUSTOM else None
        self._counts[kind] += 1
        self._open, self._item, self._growing_text = block, "", None
        made.append(BlockStart(block))

    def _grow(self, text: str, made: list[BlockEvent]) -> None:
        if self._open is not None:
            self._open.pieces.append(text)
            made.append(BlockDelta(self._open, text))

    def _close(self, made: list[BlockEvent]) -> None:
        block, self._open, self._live = self._open, None, None
        self._growing_text = None
        if block is None:
            return
        late = _late_arguments(block)
        if late:
            block.pieces.append(late)
            made.append(BlockDelta(block, late))
        made.append(BlockEnd(block))


def _late_arguments(block: Block) -> str:
    """What of a call could not be told before all of it was there."""
    if block.tool is None:
        return ""
    if block.free_text is None:
        return "" if block.text else "{}"
    told, whole = block.text, free_text(block.arguments)
    if whole.startswith(told):
        return whole[len(told) :]
    block.pieces = [whole]  # the end counts; what was told before was for display
    return ""


def shown_parts(parts: Iterable[Thought | Text | Call]) -> list[Thought | Text | Call]:
    """The parts of an answer that a client is shown, each thought once.

    A signature that stands on another part is not shown, and of a thought under several keys only
    the first one that can be read.
    """
    shown: list[Thought | Text | Call] = []
    repeated: list[Thought] = []  # the same thought under several keys
    for part in parts:
        if isinstance(part, Thought) and part.carrier in RIDING:
            continue
        if isinstance(part, Thought) and part.carrier in _MESSAGE_MEMBERS:
            repeated.append(part)
            continue
        shown += _first_readable(repeated)
        repeated = []
        if not isinstance(part, Text) or part.text:
            shown.append(part)
    return shown + _first_readable(repeated)


def _first_readable(thoughts: list[Thought]) -> list[Thought]:
    return [next((t for t in thoughts if t.text), thoughts[0])] if thoughts else []


def _is_object(text: str) -> bool:
    try:
        return isinstance(splice.loads(text.encode()), dict)
    except (Unreadable, UnicodeEncodeError):
        return False


def stop_reason(ended: TurnEnded, *, called: bool) -> StopReason:
    """Why an answer ended: a call is always the reason where there is one."""
    if called and ended.outcome is Outcome.COMPLETED:
        return StopReason.CALLS
    if ended.stop is not None and ended.stop is not StopReason.CALLS:
        return ended.stop
    return StopReason.LENGTH if ended.outcome is Outcome.CAPPED else StopReason.END
