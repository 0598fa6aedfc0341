"""A provider's answer, told again in another dialect: its blocks, and who writes them.

A `Reader` makes events of what a provider says, and `answer_blocks` puts them in order. A dialect's
`AnswerWriter` spells blocks as its stream, or as one body: the same items either way.
"""

from collections.abc import Callable, Iterable
from typing import Literal, Protocol

from msgspec import Struct

from thoughtline.dialects.free_text import FreeTextStream
from thoughtline.dialects.params import ToolSpec
from thoughtline.dialects.upstream_errors import UpstreamError
from thoughtline.log.events import (
    Citation,
    Outcome,
    StopReason,
    TurnEnded,
)
from thoughtline.log.parts import RIDING, Call, Carrier, Text, Thought
from thoughtline.log.usage import Usage

BlockKind = Literal["thought", "text", "refusal", "call"]

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
    """One block of an answer: a thought, a text, a refusal in words or a call of a tool."""

    __slots__ = ("free_text", "id", "index", "kind", "nth", "pieces", "start", "tool")

    def __init__(self, kind: BlockKind, index: int, nth: int, start: int = 0) -> None:
        self.kind = kind
        self.index = index  # among all blocks
        self.nth = nth  # among the blocks of its kind
        self.start = start  # of a text: the characters of all texts before it
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
    """A block is complete: nothing more of it comes, but for links."""

    block: Block


class BlockCitation(Struct, frozen=True, gc=False):
    """A link of a text, which may be complete: some providers say links last of all."""

    block: Block
    citation: Citation


BlockEvent = BlockStart | BlockDelta | BlockEnd | BlockCitation


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


def stop_reason(ended: TurnEnded, *, called: bool) -> StopReason:
    """Why an answer ended: a call is the reason where there is one, and nothing was filtered."""
    if ended.stop is StopReason.FILTER:
        return StopReason.FILTER
    if called and ended.outcome is Outcome.COMPLETED:
        return StopReason.CALLS
    if ended.stop is not None and ended.stop is not StopReason.CALLS:
        return ended.stop
    return StopReason.LENGTH if ended.outcome is Outcome.CAPPED else StopReason.END
