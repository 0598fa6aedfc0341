"""The port: what every store can do. Memory and SQLite stand behind it today.

A store keeps sessions (append-only, gapless `seq`), files memories under their names, and finds
them again in one batch. Everything is scoped by tenant: no method ever looks across tenants
unless it is told to (`tenant=None`, for administration). Retention is sliding per session: a
session in use, by an append or by a hit, does not expire.

Durability, to be kept by every implementation: when `append` returns, the batch survives the
death of the process (`kill -9`). Whether it survives a power cut is the implementation's to state.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from thoughtline.events import Draft, Event, Outcome
from thoughtline.memories import Memory
from thoughtline.parts import Thought

INTERNAL = "thoughtline:"
"""How the ids of sessions begin that nobody talked in, such as what endpoints have taught."""
CANDIDATES = 32
"""How many memories `find` gives for one name. A short answer ("Done.") is filed under the same
name again and again; past this many, the older ones would only make a look-up slow."""


class Batch(Struct, frozen=True, kw_only=True):
    """What is written in one transaction: all of it or nothing."""

    session: str
    tenant: str
    drafts: tuple[Draft, ...]
    memories: tuple[Memory, ...] = ()
    expect: int | None = None  # seq of the last event the writer has seen; None: do not care


class Tally(Struct, frozen=True, kw_only=True):
    """How much of something there is."""

    entries: int = 0
    chars: int = 0


class Stats(Struct, frozen=True, kw_only=True):
    """What a store holds, for people and for `/api/cache/reasoning`."""

    sessions: int = 0
    events: int = 0
    turns: int = 0
    oldest: float | None = None  # time of the first event, and of the last
    newest: float | None = None
    entries: int = 0  # as `entries` would list them
    chars: int = 0  # of their thoughts, as people read them
    oldest_entry: float | None = None
    newest_entry: float | None = None
    by_provider: dict[str, Tally] = {}
    by_model: dict[str, Tally] = {}


class Summary(Struct, frozen=True, kw_only=True):
    """One session in a listing."""

    session: str
    tenant: str
    created: float
    touched: float
    events: int


class Filter(Struct, frozen=True, kw_only=True):
    """Which entries are meant; what is None does not matter."""

    tenant: str | None = None
    provider: str | None = None
    model: str | None = None  # as asked for
    call: str | None = None  # the id of a tool call


EVERYTHING = Filter()


class Entry(Struct, frozen=True, kw_only=True):
    """One remembered turn with thoughts, under one of its tool calls (or under none)."""

    position: tuple[int, int]  # where the next page goes on
    tenant: str
    session: str
    turn: str
    call: str = ""
    provider: str = ""
    model: str = ""
    outcome: Outcome = Outcome.COMPLETED
    chars: int = 0
    at: float = 0.0
    touched: float = 0.0  # when its session was last used
    thoughts: tuple[Thought, ...] = ()  # only where they were asked for


class Query(Struct, frozen=True, kw_only=True):
    """Which sessions are meant; what is None does not matter."""

    session: str | None = None  # its id
    tenant: str | None = None
    provider: str | None = None  # of any of its turns
    model: str | None = None  # of any of its turns, as asked for or as served
    status: str | None = None  # how its last turn ended, or "running": it has not
    text: str | None = None  # somewhere in what was said, called or answered; not in thoughts


ANY = Query()

Cursor = tuple[float, str]
"""Where a listing of sessions goes on: when one was touched, and its id."""


class Listing(Struct, frozen=True, kw_only=True):
    """Some sessions, the most recently touched first."""

    sessions: list[Summary] = []
    after: Cursor | None = None  # where to go on; None: that was all


class Chapter(Struct, frozen=True, kw_only=True):
    """Events of all sessions, in the order they were written."""

    events: list[Event] = []
    position: int = 0  # where to read on
    more: bool = False  # whether there is more by now


class Store(Protocol):
    """Where sessions live."""

    async def append(self, batch: Batch) -> list[Event]:
        """Number and write the drafts, file the memories; one transaction.

        Raises `Conflict` when `expect` is not the last seq (-1: a new session), or when the
        session belongs to another tenant; `Unavailable` when nothing was written.
        """

    async def read(self, session: str, *, after: int = -1, limit: int | None = None) -> list[Event]:
        """Events of a session with a seq above `after`, in order; unknown sessions are empty."""

    async def find(self, tenant: str, names: Sequence[bytes]) -> Mapping[bytes, Sequence[Memory]]:
        """Memories filed under each name, the last filed first, thoughts included. One batch.

        Names that nothing is filed under are left out. A hit slides the session's retention.
        Thoughts come from the log: they are the turn's reasoning events, in order, or none when
        one of them cannot be read. What the tenant's log says about refusals is applied. At most
        `CANDIDATES` memories a name; a turn that is filed again replaces its older memory.
        """

    def watch(
        self, session: str | None = None, *, after: int = -1, tenant: str | None = None
    ) -> AsyncIterator[Event]:
        """Events as they are written: of one session (first those above `after`), or of all.

        Sees what other processes write to the same place. Ends when the store is closed.
        """

    async def sessions(
        self, *, tenant: str | None = None, limit: int = 50, before: float | None = None
    ) -> list[Summary]:
        """Sessions, the most recently touched first; `before` pages on by `touched`."""

    async def search(
        self, which: Query = ANY, *, limit: int = 50, after: Cursor | None = None
    ) -> Listing:
        """Sessions that match every condition; a search that takes long is done in pieces.

        So a listing may be short, or empty, and still have an `after`: ask again with that.
        """

    async def history(
        self, types: Collection[str] | None, *, since: float = 0.0, after: int = 0, limit: int = 500
    ) -> Chapter:
        """Events of these types (None: of all) in all sessions, in the order they were written.

        `after` is the `position` of the chapter before. Without one, events that were written
        before `since` may be left out; what is given is not sorted by time.
        """

    async def purge(
        self,
        *,
        session: str | None = None,
        tenant: str | None = None,
        untouched_since: float | None = None,
    ) -> int:
        """Delete whole sessions that match every condition given; returns how many.

        With no condition nothing is deleted. A session stays while a fork refers to it, and one
        of our own (`INTERNAL`) does not expire: it is deleted by name or with its tenant only.
        """

    async def entries(
        self,
        which: Filter = EVERYTHING,
        *,
        limit: int = 50,
        after: tuple[int, int] | None = None,
        offset: int = 0,
        thoughts: bool = False,
    ) -> list[Entry]:
        """What can be found again, the last filed first; `after` is the position of an entry.

        A turn with several tool calls has an entry for each, a turn without any has one.
        """

    async def forget(self, which: Filter) -> int:
        """Forget the turns of these entries; returns how many entries that were.

        Their memories and names are deleted and their thoughts are erased from the log, where
        the events stay: same number, same type, nothing in them to be sent or read.
        """

    async def stats(self, *, tenant: str | None = None) -> Stats:
        """What is held."""

    async def close(self) -> None:
        """Finish what is queued, then let go. Closing twice is harmless."""
