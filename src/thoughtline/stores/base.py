"""The store port: what every store does. SQLite, PostgreSQL and the cache implement it.

A store keeps sessions (append-only, gapless `seq`), files index entries under their keys, and finds
them again in one batch. Everything is scoped by tenant: no method looks across tenants unless it is
told to (`tenant=None`, for administration). Retention is sliding per session: a session that is in
use, by an append or because something of it was put back (`touch`), does not expire.

Durability of every implementation: when `append` returns, the batch survives the death of the
process (`kill -9`). Whether it survives a power cut is stated by the implementation.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from thoughtline.log.events import Draft, Event, Outcome
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Thought
from thoughtline.log.turn_counts import TurnCounts
from thoughtline.stores.damage import DamagedSessions

if TYPE_CHECKING:
    from thoughtline.stores.deletions import NotedDeletion

Progress = Callable[[int, int], None]
"""Called with how much of a long task is done, and how much there is."""

INTERNAL_PREFIX = "thoughtline:"
"""Begins the ids of sessions without a conversation, such as the one of endpoint quirks."""


class Batch(Struct, frozen=True, kw_only=True):
    """What is written in one transaction: all of it or nothing.

    The same batch written twice is one: a writer that does not know whether it was written says it
    again. What makes it the same is its session and its `id`, which is that of its first event: the
    turn's, where it is a turn.
    """

    session: str
    tenant: str
    drafts: tuple[Draft, ...]
    index: tuple[IndexEntry, ...] = ()
    expect: int | None = None  # seq of the last event the writer has seen; None: any
    kept: bool = False  # a person's own session, which does not expire
    id: str = ""  # empty: written twice, it is there twice
    held: float = 0.0  # queued at (wall clock); later deletions apply to it
    heavy: bool = False  # it may be large: the event loop does not pack it


class EntryCount(Struct, frozen=True, kw_only=True):
    """How many turns with thoughts are indexed, and the characters of their thoughts."""

    entries: int = 0
    chars: int = 0


class StoreStats(Struct, frozen=True, kw_only=True):
    """Counts of what a store holds, for people and for `/api/cache/reasoning`."""

    sessions: int = 0
    events: int = 0
    turns: int = 0
    oldest: float | None = None  # time of the first event, and of the last
    newest: float | None = None
    entries: int = 0  # indexed turns with thoughts, each counted once
    listed: int = 0  # these in a listing, which has each once for every tool call
    chars: int = 0  # of their thoughts, as people read them
    oldest_entry: float | None = None
    newest_entry: float | None = None
    by_provider: dict[str, EntryCount] = {}
    by_model: dict[str, EntryCount] = {}


class SessionSummary(Struct, frozen=True, kw_only=True):
    """A session in a listing."""

    session: str
    tenant: str
    created: float
    touched: float
    events: int


CLIENTS_OWN = "client"
"""Stands for the account of each client that shows a credential of its own; none is called so."""


class EntryFilter(Struct, frozen=True, kw_only=True):
    """Conditions on thought entries; None matches everything."""

    tenant: str | None = None
    provider: str | None = None
    endpoints: tuple[str, ...] = ()  # with `provider`: entries of these endpoints match as well
    accounts: dict[str, str] = {}  # of an endpoint only this account, or `CLIENTS_OWN`
    providers: dict[str, str] = {}  # of an endpoint only what this provider made
    model: str | None = None  # as asked for
    call: str | None = None  # the id of a tool call
    session: str | None = None
    turn: str | None = None


ALL_ENTRIES = EntryFilter()


class ThoughtEntry(Struct, frozen=True, kw_only=True):
    """An indexed turn with thoughts in a listing, once for each of its tool calls."""

    position: tuple[int, int]  # where the next page goes on
    tenant: str
    session: str
    turn: str
    call: str = ""
    provider: str = ""
    endpoint: str = ""
    account: str = ""
    model: str = ""
    outcome: Outcome = Outcome.COMPLETED
    chars: int = 0
    at: float = 0.0
    touched: float = 0.0  # when its session was last used
    kept: bool = False  # its session does not expire: a person made it
    thoughts: tuple[Thought, ...] = ()  # only where they were asked for


class SessionQuery(Struct, frozen=True, kw_only=True):
    """Conditions on sessions; None matches everything."""

    session: str | None = None  # its id
    tenant: str | None = None
    provider: str | None = None  # of any of its turns
    model: str | None = None  # of any of its turns, as asked for or as served
    status: str | None = None  # how its last turn ended, or "running"
    text: str | None = None  # in a message, a call or a result; thoughts are not searched


ANY_SESSION = SessionQuery()

SessionCursor = tuple[float, str]
"""The position in a listing of sessions: when a session was touched, and its id."""


class SessionListing(Struct, frozen=True, kw_only=True):
    """A page of sessions, the most recently touched first."""

    sessions: list[SessionSummary] = []
    after: SessionCursor | None = None  # where the next page begins; None: this is the last


class EventPage(Struct, frozen=True, kw_only=True):
    """A page of events of all sessions, in the order they were written."""

    events: list[Event] = []
    position: int = 0  # where the next page begins
    more: bool = False  # whether there are more events now


class FiledEntry(Struct, frozen=True):
    """An index entry as it is stored, and whether it can be found."""

    entry: IndexEntry
    unfiled: frozenset[bytes] = frozenset()  # keys of it that a look-up would not find it under


class Store(Protocol):
    """A place where sessions are stored."""

    retention: float
    """Seconds after which a session that nobody used is not found any more; 0: never."""

    @property
    def shared(self) -> bool:
        """Whether other machines write to it as well.

        Then the next request of a conversation may reach one that knows nothing of this process.
        What other processes wrote is told by `changes`, for every store.
        """

    @property
    def trouble(self) -> str:
        """Why it cannot be relied on right now; empty when it can, or when it does not know."""

    @property
    def damage(self) -> DamagedSessions:
        """Sessions in which something is damaged, as far as this process has come across it.

        What is damaged is left out: events stand there without a body (`DAMAGED`), thoughts are
        `UNREADABLE_THOUGHT`, an index entry that is asked for has one such and nothing else.
        """

    @property
    def learned(self) -> int:
        """Seq of the last lesson about endpoints that another process wrote, as far as known."""

    async def append(self, batch: Batch) -> int:
        """Number and write the drafts and file the index entries, in one transaction.

        Returns the seq of its first event; the others follow. A batch whose `id` its session has
        already is not written again, whatever it expects: its events have the numbers they had.

        Raises `Conflict` when `expect` is not the last seq (-1: a new session), or when the
        session belongs to another tenant; `Unavailable` when it is not known to be written: saying
        it again with the same `id` is harmless.
        """

    async def read(self, session: str, *, after: int = -1, limit: int | None = None) -> list[Event]:
        """Return a session's events with a seq above `after`, in order; none if it is unknown."""

    async def find(
        self, tenant: str, keys: Sequence[bytes]
    ) -> Mapping[bytes, Sequence[IndexEntry]]:
        """Return the entries filed under each key, the last filed first, with their thoughts.

        Keys without entries are left out. Who only looks does not use what is found (`touch`). The
        thoughts are the turn's reasoning events in the log, in order, each that cannot be read in
        its place; quarantines in the tenant's log are applied. At most `MAX_CANDIDATES` entries per
        key; a turn that is filed again replaces its older entry.
        """

    def touch(self, sessions: Collection[str]) -> None:
        """Note that these sessions are used now; it is written when there is time."""

    def changes(self) -> tuple[int, bool]:
        """Return a number that rises when another process has written, and whether it is certain.

        It is cheap and does not wait, so it may be uncertain for a moment. What was read before
        the number rose may be out of date.
        """

    def epoch(self) -> int | None:
        """Return a number that changes when what was found may be found otherwise; None: ask again.

        That is when something was deleted, erased, forgotten, refused or filed again, has expired,
        or may have been changed by another process. It is as of the last look-up: what was found
        after the number was read is the same for as long as the number is, right after a look-up
        of the same tenant.
        """

    async def continued(self, tenant: str, turns: Sequence[str]) -> Mapping[str, int]:
        """Return how far turns were continued: 1 by a turn, 2 by a turn that was continued itself.

        Turns that nobody continued are left out. Forks count: they continue a turn, too.
        """

    def watch(
        self, session: str | None = None, *, after: int = -1, tenant: str | None = None
    ) -> AsyncIterator[Event]:
        """Yield events as they are written: of one session (first those above `after`), or of all.

        Includes what other processes write to the same place. Ends when the store is closed.
        """

    async def sessions(
        self, *, tenant: str | None = None, limit: int = 50, before: float | None = None
    ) -> list[SessionSummary]:
        """Return sessions, the most recently touched first; `before` pages on by `touched`."""

    async def search(
        self,
        query: SessionQuery = ANY_SESSION,
        *,
        limit: int = 50,
        after: SessionCursor | None = None,
    ) -> SessionListing:
        """Return sessions that match every condition; a long search is done in pieces.

        So a listing may be short or empty and still have an `after`: call again with it.
        """

    async def history(
        self, types: Collection[str] | None, *, since: float = 0.0, after: int = 0, limit: int = 500
    ) -> EventPage:
        """Return events of these types (None: all) in all sessions, in the order of writing.

        `after` is the `position` of the page before. Without one, events that were written before
        `since` may be left out; the events are not sorted by time.
        """

    async def purge(
        self,
        *,
        session: str | None = None,
        tenant: str | None = None,
        untouched_since: float | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Delete the sessions that match every condition given; returns how many.

        With no condition nothing is deleted. A session stays while a fork refers to it. Internal
        sessions (`INTERNAL_PREFIX`) and those that a person made (`Batch.kept`) do not expire:
        they are deleted by id or with their tenant. A few are deleted at a time.
        """

    async def entries(
        self,
        entry_filter: EntryFilter = ALL_ENTRIES,
        *,
        limit: int = 50,
        after: tuple[int, int] | None = None,
        offset: int = 0,
        thoughts: bool = False,
    ) -> list[ThoughtEntry]:
        """Return indexed turns with thoughts, the last filed first; `after` is a `position`.

        A turn with several tool calls has an entry for each, a turn without any has one.
        """

    async def forget(self, entry_filter: EntryFilter, *, progress: Progress | None = None) -> int:
        """Clear these thought entries from the index; returns how many.

        Their thoughts stay in the log and are never put back from the index again. The turns stay
        in the index, marked: without them, an equal turn of another conversation could be taken for
        one of them. A turn's thoughts are forgotten when the entries of all its calls are.
        """

    async def erase(self, entry_filter: EntryFilter, *, progress: Progress | None = None) -> int:
        """Erase thoughts from the log, and forget their entries; returns how many thoughts.

        The events stay: same number, same type, with nothing in them to be sent or read.
        """

    async def deleted_since(self, tenant: str, moment: float) -> "Sequence[NotedDeletion]":
        """Return what was deleted of a tenant since then, by this machine's clock, in order.

        For what waits here and is not in the store yet. A store that only one machine has knows
        nothing of it.
        """

    async def count_calls(self, call: str) -> Mapping[str, int]:
        """Return how many entries each tenant has for a tool call of this id."""

    async def index(self, session: str) -> list[FiledEntry]:
        """Return the index entries of a session, the first filed first, with their thoughts."""

    async def reindex(
        self, session: str, entries: Sequence[IndexEntry], *, remove: Collection[str] = ()
    ) -> None:
        """Replace the index entries of these turns, and delete those of the turns in `remove`.

        The session's retention is not extended. Does nothing if the session is gone.
        """

    async def prune_index(self, *, dry_run: bool = False) -> int:
        """Delete look-up keys that lead to no index entry; returns how many there were."""

    async def stats(self, *, tenant: str | None = None, sessions: bool = True) -> StoreStats:
        """Count what is stored; without `sessions` only the index, which is quicker."""

    async def turn_counts(self, *, seconds: int, since: float) -> list[TurnCounts]:
        """Return what became of thoughts, in intervals of a multiple of `turn_counts.FINE`.

        Those of a multiple of `COARSE` reach back further. They count what happened: deleting
        sessions does not change them. What other processes wrote may be missing for some seconds.
        """

    async def lease(self, job: str, seconds: float) -> bool:
        """Whether this process does a job, for so long, for all that share the store."""

    async def show_running(self, node: str, turns: bytes | None) -> bool:
        """Show other nodes what runs on this one; returns whether somebody looks.

        Nothing is kept unless somebody does, so ask first with None.
        """

    async def look_at_running(self, node: str) -> Mapping[str, bytes]:
        """Return what other nodes show, by node; they go on for as long as somebody looks."""

    async def close(self) -> None:
        """Write what is queued, then close. Closing twice is harmless."""
