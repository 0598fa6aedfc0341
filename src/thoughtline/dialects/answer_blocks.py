"""Puts the events of an answer into blocks, in the order that every client accepts.

A block starts, grows and ends before the next one starts, whatever the provider interleaves.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from thoughtline.dialects import splice
from thoughtline.dialects.answers import (
    Block,
    BlockCitation,
    BlockDelta,
    BlockEnd,
    BlockEvent,
    BlockKind,
    BlockStart,
    shown_parts,
)
from thoughtline.dialects.free_text import FreeTextStream, free_text
from thoughtline.dialects.tool_names import ToolNames
from thoughtline.errors import Unreadable
from thoughtline.log.canonical import plain_arguments
from thoughtline.log.events import (
    AssistantMessage,
    Citation,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from thoughtline.log.parts import Call, Text, Thought, ToolKind


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
        self._counts: dict[BlockKind, int] = {"thought": 0, "text": 0, "refusal": 0, "call": 0}
        self._texts: list[Block] = []
        self._said = 0  # characters of these that are complete
        self._citations: dict[Citation, None] = {}  # told, or waiting for a text
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
                case ReasoningDelta() | ReasoningEnd() | RefusalDelta():
                    self._say(event, made)
                case ToolCallDelta():
                    self._call(event, made)
                case Citation() if event not in self._citations:
                    self._citations[event] = None
                    self._cite(event, made)
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
        waiting = () if self._texts else tuple(self._citations)
        if not self.begun:
            for part in shown_parts(self._parts):
                if complete or not isinstance(part, Call) or _is_object(part.arguments):
                    self._part(part, made)
        else:
            self._rest(made, complete=complete)
        for citation in waiting:
            self._cite(citation, made)
        if self._open is not None and (complete or self._open.kind != "call"):
            self._close(made)
        return made

    def _cite(self, citation: Citation, made: list[BlockEvent]) -> None:
        """Tell a link with the text that it stands behind; the last one where that is not known."""
        if not self._texts:
            return
        block = self._texts[-1]
        if citation.start is None:
            citation = replace(citation, start=block.start, end=block.start)
        elif citation.start < block.start:
            starts = bisect_right(self._texts, citation.start, key=lambda text: text.start)
            block = self._texts[starts - 1]
        made.append(BlockCitation(block, citation))

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
                self._text(event, made)
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

    def _text(self, delta: TextDelta, made: list[BlockEvent]) -> None:
        kind: BlockKind = "text" if type(delta) is TextDelta else "refusal"
        if self._open is None or self._open.kind != kind:
            self._start(kind, made)
        self._grow(delta.text, made)
        self._growing_text = self._open if kind == "text" else None

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
            self._grow_call(plain_arguments(part.arguments), made)
        else:
            self._start(_kind(part), made)
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
        if complete and not (self._counts["text"] or self._counts["refusal"]):
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
        block = Block(kind, sum(self._counts.values()), self._counts[kind], self._said)
        if kind == "call":
            block.tool = self._names.declared(name)
            block.id = self._mint(position)
            block.free_text = FreeTextStream() if block.tool.kind is ToolKind.CUSTOM else None
        elif kind == "text":
            self._texts.append(block)
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
        if block.kind == "text":
            self._said += len(block.text)
        late = _late_arguments(block)
        if late:
            block.pieces.append(late)
            made.append(BlockDelta(block, late))
        made.append(BlockEnd(block))


def _kind(part: Thought | Text) -> BlockKind:
    if isinstance(part, Thought):
        return "thought"
    return "refusal" if part.refused else "text"


def _late_arguments(block: Block) -> str:
    """The arguments that were held back until the call was complete."""
    if block.tool is None:
        return ""
    if block.free_text is None:
        return "" if block.text else "{}"
    told, whole = block.text, free_text(block.arguments)
    if whole.startswith(told):
        return whole[len(told) :]
    block.pieces = [whole]  # the end counts; what was told before was for display
    return ""


def _is_object(text: str) -> bool:
    try:
        return isinstance(splice.loads(text.encode()), dict)
    except (Unreadable, UnicodeEncodeError):
        return False
