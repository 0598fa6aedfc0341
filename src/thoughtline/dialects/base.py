"""What a dialect is: a pure, two-way codec for one API shape. No I/O, no vendor names.

`read` turns a client's request body into a path of turns; `patch` puts thoughts into that same
body and touches nothing else (no revisions → the same bytes object); `write` makes a new body from
a path; a `Reader` turns provider output, fed in any split, into events; `error` and `ping` speak
to the client in its own tongue. Which thought goes where is not decided here but in `replay`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from thoughtline.clock import Clock
from thoughtline.events import Happening
from thoughtline.parts import Carrier, Origin, Part
from thoughtline.turns import Place, Turn


class Tool(Struct, frozen=True, kw_only=True):
    """A tool that a model may call."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}  # JSON Schema of its arguments


class Request(Struct, frozen=True, kw_only=True):
    """A client's request as read. The last turn may lack an output: what is to be answered."""

    body: bytes
    model: str = ""
    stream: bool = False
    tools: bool = False  # whether tools are declared: some contracts hang on that
    thinking: bool | None = None  # switched on or off by the client; None: not said
    turns: tuple[Turn, ...] = ()
    hints: tuple[str, ...] = ()  # session ids found in the body, as they are
    group: str = ""  # the one of them that other conversations may share
    previous: str = ""  # the response this one goes on from, where the dialect can say so
    anchors: tuple[Any, ...] = ()  # per turn: where its output stands in the body (private)


class Placed(Struct, frozen=True, gc=False):
    """A thought in its place, under the key the target reads."""

    place: Place
    carrier: Carrier
    raw: str  # JSON text


class Revision(Struct, frozen=True, gc=False, kw_only=True):
    """What becomes of one output: its thoughts are exactly these, wherever it had others."""

    turn: int  # index into Request.turns
    thoughts: tuple[Placed, ...] = ()
    anonymous: bool = False  # take the item ids off its calls and texts
    unsealed: bool = False  # take sealed summaries out
    verbatim: bool = False  # an equal item that the client spelled anew gives way too
    phases: tuple[str, ...] = ()  # per text: what it was for, where that is to be said


class Reader(Protocol):
    """Turns one response into happenings. The end of a stream is an event, not an exception."""

    done: bool  # the provider said that it is finished

    @property
    def spoke(self) -> bool:
        """Whether anything but thoughts has come."""

    @property
    def pulse(self) -> tuple[bool, ...]:
        """What changes whenever a thought opens, begins to be told or closes, or a word is said."""

    def glimpse(self) -> list[Part]:
        """What has come so far, in order; a thought that is growing has no end yet."""

    def feed(self, data: bytes) -> list[Happening]:
        """Take in bytes as they come; deltas at once, canonical bodies when they are complete."""

    def close(self, *, reason: str = "") -> list[Happening]:
        """The stream is over: what remains, last of all the turn's end. Idempotent."""


class Dialect(Protocol):
    """One API shape."""

    name: str

    def read(self, body: bytes) -> Request:
        """Read a request. Raises `Unreadable` for what is not one; never anything else."""

    def patch(
        self,
        request: Request,
        revisions: Sequence[Revision],
        fields: Mapping[str, bytes | None] | None = None,
    ) -> bytes:
        """The same body with these outputs revised and these top-level members set or removed."""

    def write(
        self,
        turns: Sequence[Turn],
        *,
        model: str,
        system: str = "",
        tools: Sequence[Tool] = (),
        stream: bool = True,
        fields: Mapping[str, Any] | None = None,
    ) -> bytes:
        """A new request. Thoughts in the turns are written under their carriers, as they are."""

    def prefixes(self, request: Request) -> Sequence[str]:
        """Per turn a digest of everything before its output, where signatures are bound to that."""

    def reader(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> Reader:
        """A reader for one response; `sent` is the clock's reading when the request left."""

    def error(self, status: int, message: str, *, code: str = "") -> bytes:
        """An error body of ours in the shape this dialect's clients expect."""

    def ping(self) -> bytes:
        """A keep-alive that this dialect's clients ignore."""
