"""Finds the logged turn that each output of a request echoes. Pure.

The candidates come from one look-up of all keys of a request's path (`RequestPath.lookup_keys`),
each at a match level: `full` (this turn and everything before it), `local` (it and the output
before it), `seal` (the client itself brought a value that only this turn had) or `content` (the
same calls or text). The tree of turns settles most ties: the turn before a known one is its parent.
The rest is decided in `ties`, or is a miss. `local` and `content` need corroboration besides: equal
text in two conversations is not one turn.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from thoughtline.log import keys as k
from thoughtline.log.decisions import TIED, MatchLevel
from thoughtline.log.index import IndexEntry, asks
from thoughtline.log.parts import Blob, Origin, Thought
from thoughtline.log.turns import Turn
from thoughtline.replay import ties

_FULL = MatchLevel.FULL
"""Used at every turn, and looking up a member of an enumeration is slow in Python 3.11."""


class RequestPath(Struct, frozen=True, gc=False, kw_only=True):
    """The history of a request, with the keys of its turns."""

    turns: tuple[Turn, ...]
    keys: tuple[k.TurnKeys | None, ...]
    rolling_key: k.RollingKey  # after the last turn: the next output's keys come from here
    tools: bool = False  # whether the request declares tools
    thinking: bool | None = None  # switched on or off by the client
    hints: tuple[str, ...] = ()  # digests of session ids
    unique_hints: tuple[str, ...] = ()  # those that no other conversation shares
    prefixes: tuple[str, ...] = ()  # per turn: digest of everything before its output
    previous: str = ""
    target: Origin | None = None  # where the request goes
    from_log: bool = False  # known outputs go out as they are logged, not as they are echoed
    settled: int = 0  # turns before these, about which an earlier request decided for good
    prefix_states: tuple[Any, ...] = ()  # behind each turn: what more prefixes are made from

    def lookup_keys(self) -> list[bytes]:
        """Return every key to look up, for one batch."""
        wanted: list[bytes] = []
        for turn, keys in zip(self.turns, self.keys, strict=True):
            if keys is None:
                continue
            wanted += (keys.full, keys.local, keys.content)
            for part in turn.output:
                if type(part) is Thought:
                    wanted += ties.thought_keys(part)
                elif type(part) is Blob and part.sealed:
                    wanted.append(k.seal_key(part.digest))  # to learn its origin; it is no match
        if self.previous:
            wanted.append(k.reference_key("response", self.previous))
        return list(dict.fromkeys(wanted))


def request_path(
    turns: Sequence[Turn],
    *,
    tools: bool = False,
    thinking: bool | None = None,
    hints: Sequence[str] = (),
    group: str = "",
    prefixes: Sequence[str] = (),
    previous: str = "",
    target: Origin | None = None,
) -> RequestPath:
    """Make the path of a request; `hints` are session ids as the client sent them.

    `group` is the one hint that other conversations may share: it only breaks ties.
    """
    keys, rolling_key = k.rolling_keys(turns)
    digests, unique = hint_digests(hints, group) if hints else NO_HINTS
    return RequestPath(
        turns=tuple(turns),
        keys=tuple(keys),
        rolling_key=rolling_key,
        tools=tools,
        thinking=thinking,
        hints=digests,
        unique_hints=unique,
        prefixes=tuple(prefixes),
        previous=previous,
        target=target,
    )


Digests = tuple[str, ...]
NO_HINTS: tuple[Digests, Digests] = ((), ())


def hint_digests(hints: Sequence[str], group: str) -> tuple[Digests, Digests]:
    """Return the digests of session ids, and those that no other conversation shares."""
    digests = tuple([k.string_digest(hint) for hint in hints])
    if not group:
        return digests, digests
    place = digests.index(k.string_digest(group))  # the first; a second one names the session
    return digests, digests[:place] + digests[place + 1 :]


UNKNOWN = "unknown"
"""The reason of an output that nothing was found for."""


class TurnMatch(Struct, frozen=True, gc=False):
    """The logged turn that an output was taken for, or the reason why there is none."""

    entry: IndexEntry | None
    level: MatchLevel
    reason: str = ""


_TIE = TurnMatch(None, MatchLevel.NONE, TIED)
_RANDOM = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{12,}")


def looks_random(id: str) -> bool:
    """Whether a call id looks random, unlike a name with a counter (`functions.ls:0`)."""
    return _RANDOM.search(id) is not None


class _Candidates(Struct, gc=False):
    """The logged turns that one output of the path may echo.

    Mostly the full key settles it, so the weaker levels are looked at only when needed.
    """

    turn: Turn
    keys: k.TurnKeys
    found: Mapping[bytes, Sequence[IndexEntry]]
    by_full_key: Sequence[IndexEntry]
    _by_turn: dict[str, tuple[IndexEntry, MatchLevel]] | None = None

    @property
    def by_turn(self) -> dict[str, tuple[IndexEntry, MatchLevel]]:
        """All candidates by turn id, each with its strongest match level."""
        if self._by_turn is not None:
            return self._by_turn
        keys = self.keys
        levels = [(MatchLevel.FULL, keys.full), (MatchLevel.LOCAL, keys.local)]
        seals = [key for thought in self.turn.thoughts for key in ties.thought_keys(thought)]
        levels += [(MatchLevel.SEAL, key) for key in seals]
        levels.append((MatchLevel.CONTENT, keys.content))
        best: dict[str, tuple[IndexEntry, MatchLevel]] = {}
        for level, key in levels:
            for entry in self.found.get(key, ()):
                best.setdefault(entry.turn, (entry, level))
        self._by_turn = best
        return best

    def at_level(self, level: MatchLevel) -> list[IndexEntry]:
        return [entry for entry, at in self.by_turn.values() if at is level]

    def level(self, entry: IndexEntry) -> MatchLevel:
        return self.by_turn[entry.turn][1]

    def match(self, id: str, reason: str) -> TurnMatch | None:
        """Return the candidate with this turn id, if there is one."""
        for entry in self.by_full_key:
            if entry.turn == id:
                return TurnMatch(entry, _FULL, reason)
        return TurnMatch(*self.by_turn[id], reason) if id in self.by_turn else None


LINEAGE = "lineage"
"""Reason of a match: the turn that the next one continues."""
OPEN = "open"
"""Reason of a match: of several turns, this is the one that nobody has continued yet."""
EQUAL = "equal"
"""Reason of a match: of several turns, with the same thoughts. Which one it is stays unknown."""


class Matches(Struct, frozen=True, gc=False):
    """The logged turn of every output of a path, or why there is none.

    None stands for turns of the path without an output.
    """

    turns: tuple[TurnMatch | None, ...]
    at_once: bool  # no tie, no weak evidence: each by its full key or what the next one continues
    last: IndexEntry | None = None  # the last turn of the path that is known for certain


def match_turns(path: RequestPath, found: Mapping[bytes, Sequence[IndexEntry]]) -> Matches:
    """Find the logged turn of every output of the path."""
    return match_lineage(path, found) or match_by_evidence(path, found)


def match_lineage(path: RequestPath, found: Mapping[bytes, Sequence[IndexEntry]]) -> Matches | None:
    """Find the turns where each is the only one with its full key, and the next one's parent.

    That is the usual case. None: it takes more to tell which turns are meant.
    """
    turns: list[TurnMatch | None] = []
    last = after = None
    for keys in reversed(path.keys):
        if keys is None:
            turns.append(None)
            continue
        filed = found.get(keys.full, ())
        if len(filed) != 1:
            return None
        entry = filed[0]
        if after is None:
            last = entry
            turns.append(TurnMatch(entry, _FULL))
        elif after.parent == entry.turn:
            turns.append(TurnMatch(entry, _FULL, LINEAGE))
        else:
            return None
        after = entry
    turns.reverse()
    return Matches(tuple(turns), True, last)


def match_by_evidence(path: RequestPath, found: Mapping[bytes, Sequence[IndexEntry]]) -> Matches:
    """Find the turns by all evidence there is."""
    matcher = _Matcher(path, found)
    turns = tuple(matcher.run())
    for match in reversed(turns):
        if match is not None and match.entry is not None and match.reason != EQUAL:
            return Matches(turns, matcher.at_once, match.entry)
    return Matches(turns, matcher.at_once)


def undecided_key(path: RequestPath, found: Mapping[bytes, Sequence[IndexEntry]]) -> bytes | None:
    """Return the full key of the output whose turn depends on which one was continued, if any."""
    for keys in path.keys:
        if keys is not None and len(found.get(keys.full, ())) > 1:
            break
    else:
        return None  # the usual case
    matcher = _Matcher(path, found)
    matcher.run()
    index = matcher.last_tie()
    tied = path.keys[index] if index is not None else None
    return tied.full if tied is not None and len(found.get(tied.full, ())) > 1 else None


class _Matcher:
    """Matches the turns of one path, from the newest to the oldest."""

    def __init__(self, path: RequestPath, found: Mapping[bytes, Sequence[IndexEntry]]) -> None:
        self.path = path
        self.positions: list[_Candidates | None] = []
        for index, keys in enumerate(path.keys):
            self.positions.append(
                _Candidates(path.turns[index], keys, found, found.get(keys.full, ()))
                if keys is not None
                else None
            )
        self.matches: list[TurnMatch | None] = [None] * len(self.positions)
        self.after: IndexEntry | None = None  # the match of the nearest later output
        self.used: set[str] = set()  # ids of turns that are matched: each occurs in a path once
        self.sessions: set[str] = set()  # of the turns that are matched
        self.tied: dict[int, list[IndexEntry]] = {}  # by strong evidence, and not decided yet
        self.at_once = False  # every output has had its turn by strong evidence

    def run(self) -> list[TurnMatch | None]:
        self.at_once = self._pass(self._match_strong)
        if not self.at_once:
            if self.tied:
                self._settle_ties()
            self.sessions = {
                m.entry.session for m in self.matches if m and m.entry and m.reason != EQUAL
            }
            self._pass(self._match_weak)
        return self.matches

    def _pass(self, match_one: Callable[[int, _Candidates], TurnMatch]) -> bool:
        """Match what is not matched yet; returns whether every output has its turn now."""
        self.after = None
        settled = True
        for index in range(len(self.positions) - 1, -1, -1):
            if (here := self.positions[index]) is None:
                continue
            match = self.matches[index]
            if match is None or (match.entry is None and match.reason != TIED):
                match = self.matches[index] = self._lineage(here) or match_one(index, here)
            if match.entry is None:
                settled = False
            elif match.reason != EQUAL:
                self.after = match.entry
                self.used.add(match.entry.turn)
        return settled

    def _lineage(self, here: _Candidates) -> TurnMatch | None:
        """Take the parent of the turn that is matched after this one, if it is a candidate."""
        after = self.after
        return here.match(after.parent, LINEAGE) if after is not None and after.parent else None

    def _match_strong(self, index: int, here: _Candidates) -> TurnMatch:
        """Match by the full key, else by a value that the client brought and only this turn had."""
        if len(here.by_full_key) == 1 and here.by_full_key[0].turn not in self.used:
            return TurnMatch(here.by_full_key[0], _FULL)  # the usual case
        level = _FULL
        tied = self._narrow(here.by_full_key, index)
        if not tied:
            level = MatchLevel.SEAL
            tied = self._narrow(here.at_level(level), index)
        if not tied:
            return TurnMatch(None, MatchLevel.NONE, UNKNOWN)
        if len(tied) > 1:
            self.tied[index] = tied
            return _TIE
        return TurnMatch(tied[0], level)

    # -- ties ------------------------------------------------------------------------------------

    def _settle_ties(self) -> None:
        """Decide ties by the turns around them, and the last one by what was continued."""
        while self.tied and (self._settle_by_children() or self._settle_by_parents()):
            pass
        index = self.last_tie()
        if index is not None:
            entry = ties.open_turn(self.tied[index], self.path.target)
            if entry is not None:
                self._settle(index, entry, OPEN)
                self._settle_by_children()
        for index, tied in self.tied.items():
            if ties.equal_thoughts(tied):
                self.matches[index] = TurnMatch(tied[0], self._level(index, tied[0]), EQUAL)

    def last_tie(self) -> int | None:
        """Return the position of the last output if it is a tie.

        Only there does it count whether a turn was continued: whoever asks continues it now. An
        older output was continued, also where what came after it is not found.
        """
        if not self.tied:
            return None
        index = max(self.tied)
        return None if any(self.positions[index + 1 :]) else index

    def _settle(self, index: int, entry: IndexEntry, reason: str) -> None:
        self.matches[index] = TurnMatch(entry, self._level(index, entry), reason)
        self.used.add(entry.turn)
        del self.tied[index]

    def _level(self, index: int, entry: IndexEntry) -> MatchLevel:
        here = self.positions[index]
        return here.level(entry) if here is not None else MatchLevel.NONE

    def _settle_by_children(self) -> bool:
        """Take the parent of the matched turn that follows a tie; from the newest to the oldest."""
        settled = False
        child: IndexEntry | None = None
        for index in range(len(self.matches) - 1, -1, -1):
            if index in self.tied and child is not None:
                entry = next((e for e in self.tied[index] if e.turn == child.parent), None)
                if entry is not None:
                    self._settle(index, entry, LINEAGE)
                    settled = True
            match = self.matches[index]
            if match is not None and match.entry is not None:
                child = match.entry
        return settled

    def _settle_by_parents(self) -> bool:
        """Take the child of the matched turn before a tie; from the oldest to the newest."""
        settled = False
        parent: IndexEntry | None = None
        for index in range(len(self.matches)):
            if index in self.tied and parent is not None:
                tied = [e for e in self.tied[index] if e.parent == parent.turn]
                if len(tied) == 1:
                    self._settle(index, tied[0], LINEAGE)
                    settled = True
                elif tied:
                    self.tied[index] = tied
            match = self.matches[index]
            if match is not None and match.entry is not None:
                parent = match.entry
        return settled

    # -- weak evidence ---------------------------------------------------------------------------

    def _match_weak(self, index: int, here: _Candidates) -> TurnMatch:
        """Match by the local or content key: only with corroboration, and without a tie."""
        local, content = (
            [entry for entry in here.at_level(level) if entry.turn not in self.used]
            for level in (MatchLevel.LOCAL, MatchLevel.CONTENT)
        )
        named = [entry for entry in (*local, *content) if self._named(entry, index)]
        tied = self._narrow(named or local, index)
        if not tied:
            return TurnMatch(None, MatchLevel.NONE, "uncorroborated" if content else UNKNOWN)
        if len(tied) > 1 and not named:
            tied = [entry for entry in tied if self._asked_before(entry, index)] or tied
        if len(tied) > 1 and not ties.equal_thoughts(tied):
            return _TIE
        if not named and not self._corroborated(tied[0], index):
            return TurnMatch(None, MatchLevel.NONE, "uncorroborated")
        return TurnMatch(tied[0], here.level(tied[0]), EQUAL if len(tied) > 1 else "")

    def _narrow(self, among: Sequence[IndexEntry], index: int) -> list[IndexEntry]:
        tied = [entry for entry in among if entry.turn not in self.used]
        if len(tied) < 2:
            return tied
        path = self.path
        return ties.narrow(tied, path.turns[index], path.hints, path.unique_hints)

    def _corroborated(self, entry: IndexEntry, index: int) -> bool:
        """Whether another match of the path is of the same conversation."""
        if self.sessions:
            return entry.session in self.sessions
        if self.after is not None:
            return entry.session == self.after.session
        parent = self._parent(entry, index)
        if parent is None:
            return False
        return parent.level is MatchLevel.LOCAL or self._asked_before(entry, index)

    def _output_before(self, index: int) -> int | None:
        return next((at for at in range(index - 1, -1, -1) if self.positions[at]), None)

    def _parent(self, entry: IndexEntry, index: int) -> TurnMatch | None:
        """Return the candidate for the output before that this turn continues."""
        before = self._output_before(index)
        here = self.positions[before] if before is not None else None
        return here.match(entry.parent, "") if here is not None else None

    def _asked_before(self, entry: IndexEntry, index: int) -> bool:
        """Whether the calls before are those that the turn continues, for the same user message.

        Then user message, calls and results are all there. A plain answer says too little.
        """
        before, parent = self._output_before(index), self._parent(entry, index)
        if before is None or parent is None or parent.entry is None:
            return False
        turn, keys = self.path.turns[before], self.path.keys[before]
        question = parent.entry.question if turn.calls else ""
        return bool(question) and keys is not None and asks(turn, keys, question)

    def _named(self, entry: IndexEntry, index: int) -> bool:
        """Whether the client names the conversation by a hint, or the turn by ids of its own."""
        if not set(self.path.unique_hints).isdisjoint(entry.hints):
            return True
        turn = self.path.turns[index]
        if not ties.echoed_keys(turn).isdisjoint(entry.keys):
            return True
        ids = ties.sorted_ids(turn)
        return sorted(entry.calls) == ids and any(looks_random(id) for id in ids)
