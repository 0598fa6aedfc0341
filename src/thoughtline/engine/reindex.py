"""Makes the look-up index from the log: for an import, and to check and rebuild the index.

`rebuild_entries` makes the index entry of every turn that ended. A turn's replay decisions say
which turns its request echoed, so its full and local keys are proven where the last of those was
recognised. Else they are computed from the turn's place in the log: right for a client that echoes
the conversation as it was logged, but not proven. What only the request held cannot be made again:
the client's session hints, and the keys of outputs that are not in the log.
"""

from collections.abc import Iterable
from copy import copy

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.dialects import DEFAULT, DIALECTS
from thoughtline.engine.history import (
    answered_input,
    completed_output,
    left_behind,
    without_thoughts,
)
from thoughtline.engine.translation import as_echoed
from thoughtline.log import keys as k
from thoughtline.log.decisions import MatchLevel
from thoughtline.log.events import Outcome
from thoughtline.log.index import IndexEntry, index_entry
from thoughtline.log.keys import RollingKey, TurnKeys
from thoughtline.log.parts import Part
from thoughtline.log.sessions import Session
from thoughtline.log.turns import Turn


class RebuiltEntry(Struct, frozen=True):
    """An index entry as the log has it, and what of it the log proves."""

    entry: IndexEntry
    proven: tuple[frozenset[bytes], ...]  # the entry in the index has all keys of one of these
    parents: frozenset[str]  # the parent in the index is one of these
    recorded: bool  # False: the log lacks what was said, so the keys cannot be computed
    forgotten: bool  # its thoughts were erased on request, and its entry with them


class _Answer(Struct, frozen=True):
    """Where a path of the log is after a turn."""

    rolling: RollingKey
    before: Turn | None = None  # the last turn that was answered
    unanswered: tuple[Part, ...] = ()  # input since


class _LogPath:
    """Computes the keys of turns for a request that is written from the log.

    That is how the agents' loop writes requests: failed turns are left out, their input waits for
    the next answer, and every call has a result.
    """

    def __init__(self) -> None:
        self._answers = {"": _Answer(RollingKey())}

    def add(self, turn: Turn) -> tuple[TurnKeys, str] | None:
        """Return the keys of a turn and the id of the turn before it; None: that is unknown."""
        answer = self._answers.get(turn.parent)
        if answer is None:
            return None
        rolling, heard = copy(answer.rolling), (*answer.unanswered, *turn.input)
        rolling.add_input(answered_input(answer.before, heard))
        said = completed_output(turn)
        keys = rolling.add_output(said if without_thoughts(said) else turn.output)
        self._answers[turn.id] = (
            _Answer(rolling, replace(turn, output=said))
            if without_thoughts(said)
            else _Answer(answer.rolling, answer.before, heard)
        )
        return keys, answer.before.id if answer.before else ""


class _Echo(Struct, frozen=True):
    """A turn in a client's echo."""

    rolling: RollingKey  # after its output
    dialect: str
    full: bool = True  # whether its full key is proven
    content: bool = True  # whether its output is echoed as it is logged


class _EchoPath:
    """Computes the keys of turns for a client's own request, as its replay decisions prove them."""

    def __init__(self) -> None:
        self._echoes: dict[str, _Echo] = {}

    def add(self, turn: Turn) -> tuple[TurnKeys, frozenset[bytes]]:
        """Return the keys of a turn, and those that the log proves."""
        dialect = _client_dialect(turn)
        before, level = self._before(turn, dialect)
        local = level not in (MatchLevel.SEAL, MatchLevel.NONE) and before.content
        full = level is MatchLevel.FULL and before.full and before.content
        rolling = copy(before.rolling)
        rolling.add_input(turn.input)
        keys = rolling.add_output(turn.output)
        content = not _continues_output(turn)
        self._echoes[turn.id] = _Echo(rolling, dialect, full, content)
        proven = [(keys.full, full), (keys.local, local), (keys.content, True)]
        return keys, frozenset(key for key, known in proven if known and content)

    def _before(self, turn: Turn, dialect: str) -> tuple[_Echo, MatchLevel]:
        """Return the last output that the request echoed, and how that was recognised."""
        start = _Echo(RollingKey(), dialect)
        if not turn.replay:
            return start, MatchLevel.NONE if turn.parent else MatchLevel.FULL
        last = turn.replay[-1]
        before = self._echoes.get(last.entry)
        # With another parent, turns without an answer are between them, and their input counts;
        # for another API, the history may have been written in another way.
        if before is None or last.entry != turn.parent or before.dialect != dialect:
            return start, MatchLevel.NONE
        return before, last.level


def _client_dialect(turn: Turn) -> str:
    """The dialect in which the client echoes a turn."""
    if turn.client is not None:
        return turn.client.dialect
    return turn.target.dialect if turn.target else ""


def _continues_output(turn: Turn) -> bool:
    """Whether the request may have ended within an output: the client echoes both as one."""
    dialect = DIALECTS.get(_client_dialect(turn), DEFAULT)
    if not turn.replay or not dialect.item_list:
        return False
    return not turn.input or not turn.replay[-1].entry


def index_entries(sessions: Iterable[Session]) -> list[IndexEntry]:
    """Return the entries of all turns that ended; origins come before their forks."""
    return [rebuilt.entry for rebuilt in rebuild_entries(sessions)]


def rebuild_entries(sessions: Iterable[Session]) -> list[RebuiltEntry]:
    """Return the entries of all turns that ended, and what of them the log proves."""
    log_path, echo_path = _LogPath(), _EchoPath()
    full_keys: dict[str, str] = {}
    rebuilt: list[RebuiltEntry] = []
    for session in sessions:
        for turn in map(as_echoed, session.turns):
            logged, (keys, proven) = log_path.add(turn), echo_path.add(turn)
            if logged is None and not proven:  # of a version that this one cannot read
                continue
            full_keys[turn.id] = (logged[0] if logged else keys).full.hex()
            if turn.outcome is not None and turn.output:
                if session.skipped:  # what this version cannot read may be part of the keys
                    proven = frozenset()
                skipped = left_behind(turn, full_keys)
                rebuilt.append(_rebuilt(turn, keys, proven, logged, skipped))
    return rebuilt


def _rebuilt(
    turn: Turn,
    keys: TurnKeys,
    proven: frozenset[bytes],
    logged: tuple[TurnKeys, str] | None,
    skipped: dict[str, str],
) -> RebuiltEntry:
    log_keys, before = logged or (keys, turn.parent)
    parent = next((d.entry for d in reversed(turn.replay) if d.entry), before)
    entry = index_entry(replace(turn, parent=parent), log_keys, skipped=skipped)
    own = frozenset((log_keys.full, log_keys.local, log_keys.content))
    others = frozenset(entry.keys) - own - frozenset(log_keys.trimmed)  # older entries lack those
    recorded = bool(turn.input or without_thoughts(turn.output)) or (
        turn.outcome is not Outcome.COMPLETED
    )
    added = [key for key in (keys.full, keys.local, keys.content) if key in proven - own]
    added += keys.trimmed if keys.full in proven else ()
    return RebuiltEntry(
        entry=replace(entry, keys=(*entry.keys, *added, *_spoken(turn))),
        proven=(proven | others, own | others) if recorded else (others,),
        parents=frozenset((turn.parent, before, parent)),
        recorded=recorded,
        forgotten=any(thought.forgotten for thought in turn.thoughts),
    )


def _spoken(turn: Turn) -> list[bytes]:
    """Return the key of a turn's first thought, where a client writes that as text."""
    texts = [t.text for t in turn.thoughts if len(t.text) >= k.MIN_SPOKEN]
    return [k.spoken_key(texts[0])] if texts else []
