"""Finds the logged turn that each output of a request echoes. Pure.

The candidates come from one look-up of all keys of a request's path (`RequestPath.lookup_keys`),
each at a match level: `full` (this turn and everything before it), `local` (it and the output
before it), `seal` (the client itself brought a value that only this turn had) or `content` (the
same calls or text). What points to another turn rules a candidate out, at every level (`vetoes`).
The tree of turns settles most ties: the turn before a known one is its parent. The rest is decided
in `ties`, or is a miss. `local` and `content` need corroboration besides: equal moves in two
conversations are not one turn. What speaks for them is weighed in `chains`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from thoughtline.log import keys as k
from thoughtline.log.decisions import RULED_OUT, TIED, MatchLevel
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Blob, Origin, Thought
from thoughtline.log.turns import Turn
from thoughtline.replay import ties, vetoes
from thoughtline.replay.candidates import Candidates, TurnMatch
from thoughtline.replay.chains import Chain, Chains
from thoughtline.replay.proof import Echo, thought_keys

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
    handles: Mapping[int, str] = {}  # by position: the turn that a handle names

    def echo(self, index: int) -> Echo:
        """What the output at a position tells of the turn that it is."""
        return Echo(
            self.turns[index],
            hints=self.hints,
            unique_hints=self.unique_hints,
            handle=self.handles.get(index, ""),
        )

    def lookup_keys(self) -> list[bytes]:
        """Return every key to look up, for one batch."""
        wanted: list[bytes] = []
        for turn, keys in zip(self.turns, self.keys, strict=True):
            if keys is None:
                continue
            wanted += (keys.full, keys.local, keys.content)
            for part in turn.output:
                if type(part) is Thought:
                    wanted += thought_keys(part)
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


_TIE = TurnMatch(None, MatchLevel.NONE, TIED)

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

    def sessions(self, *, but: str) -> set[str]:
        """Return the sessions of these turns, without this one."""
        return {
            match.entry.session
            for match in self.turns
            if match is not None and match.entry is not None and match.entry.session != but
        }


def match_turns(path: RequestPath, found: Mapping[bytes, Sequence[IndexEntry]]) -> Matches:
    """Find the logged turn of every output of the path."""
    return match_lineage(path, found) or match_by_evidence(path, found)


def match_lineage(path: RequestPath, found: Mapping[bytes, Sequence[IndexEntry]]) -> Matches | None:
    """Find the turns where each is the only one with its full key, and the next one's parent.

    That is the usual case. None: it takes more to tell which turns are meant.
    """
    turns: list[TurnMatch | None] = []
    last = after = None
    session = ""
    for index in range(len(path.keys) - 1, -1, -1):
        keys = path.keys[index]
        if keys is None:
            turns.append(None)
            continue
        filed = found.get(keys.full, ())
        if len(filed) != 1:
            return None
        entry = filed[0]
        looks_alike = len(found.get(keys.content, ()))
        if not vetoes.undisputed(path.turns[index], entry, looks_alike, path.unique_hints, session):
            return None
        if path.handles and path.handles.get(index, entry.turn) != entry.turn:
            return None
        if after is None:
            last = entry
            if path.unique_hints and not set(path.unique_hints).isdisjoint(entry.hints):
                session = entry.session
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
        self.positions: list[Candidates | None] = []
        for index, keys in enumerate(path.keys):
            if keys is None:
                self.positions.append(None)
                continue
            by_full_key = found.get(keys.full, ())
            self.positions.append(Candidates(path.echo(index), keys, found, by_full_key))
        vetoes.rule_out(self.positions)
        self.matches: list[TurnMatch | None] = [None] * len(self.positions)
        self.after: IndexEntry | None = None  # the match of the nearest later output
        self.used: set[str] = set()  # ids of turns that are matched: each occurs in a path once
        self.sessions: set[str] = set()  # of the turns that are certain
        self.proven: set[str] = set()  # sessions that the client names itself
        self.chains: Chains  # what leads to a turn, once it is known which turns are certain
        self.tied: dict[int, list[IndexEntry]] = {}  # by strong evidence, and not decided yet
        self.at_once = False  # every output has had its turn by strong evidence

    def run(self) -> list[TurnMatch | None]:
        self.at_once = self._pass(self._match_strong)
        if not self.at_once:
            if self.tied:
                self._settle_ties()
            self._weigh()
            self._pass(self._match_weak)
        return self.matches

    def _pass(self, match_one: Callable[[int, Candidates], TurnMatch]) -> bool:
        """Match what is not matched yet; returns whether every output has its turn now."""
        self.after = None
        settled = True
        for index in range(len(self.positions) - 1, -1, -1):
            if (here := self.positions[index]) is None:
                continue
            match = self.matches[index]
            if match is None or (match.entry is None and match.reason != TIED):
                match = self.matches[index] = match_one(index, here)
            if match.entry is None:
                settled = False
            elif match.reason != EQUAL:
                self.after = match.entry
                self.used.add(match.entry.turn)
        return settled

    def _lineage(self, here: Candidates) -> TurnMatch | None:
        """Take the parent of the turn that is matched after this one, if it is a candidate."""
        after = self.after
        return here.match(after.parent, LINEAGE) if after is not None and after.parent else None

    def _match_strong(self, index: int, here: Candidates) -> TurnMatch:
        """Match by the full key, else by a value that the client brought and only this turn had."""
        if (continued := self._lineage(here)) is not None:
            return continued
        if len(here.by_full_key) == 1 and here.by_full_key[0].turn not in self.used:
            return TurnMatch(here.by_full_key[0], _FULL)  # the usual case
        level = _FULL
        tied = self._narrow(here.by_full_key, index)
        if not tied:
            level = MatchLevel.SEAL
            tied = self._narrow(here.at_level(level), index)
        if not tied:
            return TurnMatch(None, MatchLevel.NONE, RULED_OUT if here.ruled_out else UNKNOWN)
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

        Only there does it count whether a turn was continued: this request continues it now. An
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

    def _weigh(self) -> None:
        """Note what is certain now: all else is held against it."""
        certain = {
            index: match.entry
            for index, match in enumerate(self.matches)
            if match is not None and match.entry is not None and match.reason != EQUAL
        }
        self.chains = Chains(self.path.turns, self.positions, certain)
        self.sessions = {entry.session for entry in certain.values()}
        self.proven = {
            entry.session for index, entry in certain.items() if self.chains.named(entry, index)
        }

    def _match_weak(self, index: int, here: Candidates) -> TurnMatch:
        """Match by the local or content key: only with corroboration, and without a tie."""
        match = self._weak_lineage(index, here) or self._match_alike(index, here)
        if match.entry is not None and self.chains.named(match.entry, index):
            self.proven.add(match.entry.session)
        return match

    def _weak_lineage(self, index: int, here: Candidates) -> TurnMatch | None:
        """Take the parent of the turn after this one, unless it answers other words of a user."""
        match = self._lineage(here)
        if match is None or match.entry is None or match.level is _FULL:
            return match
        if self.chains.has_other_ids(match.entry, index):
            return None
        if match.entry.session in self.proven:  # the client has edited them
            return match
        return match if self._answers(match.entry, self.chains.to(match.entry, index)) else None

    def _match_alike(self, index: int, here: Candidates) -> TurnMatch:
        """Match a turn with the same neighbours, or the same output that the client names."""
        chains = self.chains
        local, content = (
            [
                entry
                for entry in here.at_level(level)
                if entry.turn not in self.used and not chains.has_other_ids(entry, index)
            ]
            for level in (MatchLevel.LOCAL, MatchLevel.CONTENT)
        )
        named = [entry for entry in (*local, *content) if chains.named(entry, index)]
        tied = self._narrow(named or local, index)
        if not tied:
            reason = RULED_OUT if here.ruled_out else UNKNOWN
            return TurnMatch(None, MatchLevel.NONE, "uncorroborated" if content else reason)
        if len(tied) > 1 and not named:
            tied = self._narrow_alike(tied, index)
        if len(tied) > 1 and not ties.equal_thoughts(tied):
            return _TIE
        if not named and not self._corroborated(tied[0], index):
            return TurnMatch(None, MatchLevel.NONE, "uncorroborated")
        return TurnMatch(tied[0], here.level(tied[0]), EQUAL if len(tied) > 1 else "")

    def _narrow(self, among: Sequence[IndexEntry], index: int) -> list[IndexEntry]:
        tied = [entry for entry in among if entry.turn not in self.used]
        here = self.positions[index]
        return ties.narrow(tied, here.echo) if here is not None else tied

    def _narrow_alike(self, tied: list[IndexEntry], index: int) -> list[IndexEntry]:
        """Prefer what has user message, calls and results before it, then what was made here."""
        tied = [entry for entry in tied if self.chains.to(entry, index).whole] or tied
        return [entry for entry in tied if ties.made_at(entry, self.path.target)] or tied

    def _corroborated(self, entry: IndexEntry, index: int) -> bool:
        """Whether what leads to a turn proves that it is of the path's own conversation."""
        chain = self.chains.to(entry, index)
        if chain.contradicted or chain.certain:
            return chain.certain
        sessions = self.sessions or ({self.after.session} if self.after is not None else set())
        if not sessions:
            return chain.whole
        if entry.session not in sessions:
            return False
        return entry.session in self.proven or self._answers(entry, chain)

    def _answers(self, entry: IndexEntry, chain: Chain) -> bool:
        """Whether a turn answers the same words as in the log, given that its session is right."""
        if chain.contradicted:
            return False
        return chain.certain or chain.asked or chain.session == entry.session
