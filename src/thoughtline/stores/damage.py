"""Stored values that are damaged: each is left out, and told of; everything else is read.

What stands in the place of one keeps its number or its turn known: events that say that they are
damaged, thoughts that are never sent, an index entry that takes part in a tie.
"""

from collections.abc import Callable

from thoughtline.errors import Damaged
from thoughtline.log.events import DAMAGED, DAMAGED_VERSION, Event
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import UNREADABLE_THOUGHT

MAX_SESSIONS = 1_000
"""Sessions that are remembered."""
MAX_NAMED = 3
"""Sessions that are named."""


class DamagedSessions:
    """The sessions in which a value was found damaged, since this process opened the store.

    Reading threads add to it while others look.
    """

    def __init__(self) -> None:
        self.tell: Callable[[str], None] = lambda _: None  # is told of each session once
        self._sessions: dict[str, str] = {}  # session → what was found first

    def note(self, session: str, error: Damaged) -> None:
        """Note that a value of a session is damaged."""
        if session not in self._sessions and len(self._sessions) < MAX_SESSIONS:
            reason = self._sessions[session] = f"session {session!r}: {error}"
            self.tell(reason)

    def clear(self) -> None:
        """Forget them: some may have been deleted or rebuilt."""
        self._sessions.clear()

    def __contains__(self, session: str) -> bool:
        return session in self._sessions

    def reason(self, session: str) -> str:
        """What is wrong with a session; empty where nothing is known to be."""
        return self._sessions.get(session, "")

    def __str__(self) -> str:
        """Which sessions are damaged, and what to do; empty where none is known."""
        found = list(self._sessions)
        if not found:
            return ""
        more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
        names = ", ".join(found[:MAX_NAMED]) + more
        return f"values of {len(found)} session(s) are damaged ({names}); {SEE}"


SEE = "`thoughtline store check` looks through all of them"


def damaged_events(session: str, first: int, count: int, turn: str) -> list[Event]:
    """Return events in the place of those that a damaged row had; its turn may not be known."""
    return [
        Event(session, seq, "", turn, 0.0, DAMAGED, DAMAGED_VERSION, "")
        for seq in range(first, first + count)
    ]


def damaged_entry(session: str, turn: str) -> IndexEntry:
    """Return an index entry in the place of a damaged one.

    Without it, an equal turn of another conversation could be taken for this one.
    """
    return IndexEntry(session, turn, shape="t", thoughts=(UNREADABLE_THOUGHT,))


def is_damaged(entry: IndexEntry) -> bool:
    """Whether an index entry stands in the place of a damaged one."""
    return entry == damaged_entry(entry.session, entry.turn)
