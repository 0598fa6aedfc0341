"""Which remembered turn is this? A client's echo on one side, memories on the other.

Candidates come from one look-up under all names of a path (`Path.names`) and stand on rungs:
`chain` (this turn and everything before it), `near` (it and its neighbours), `seal` (the client
itself brought a value that only this turn had), `alone` (the same calls or text). The tree of turns
settles most ties: the turn before a certain one is its parent. Then call ids, session hints and
words decide, and a tie that stays is a miss. The two weak rungs need corroboration besides: the
same words in two conversations are not the same turn.
Pure; the room above is `replay`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from thoughtline import keys as k
from thoughtline import memories
from thoughtline.memories import Memory
from thoughtline.parts import Blob, Thought
from thoughtline.turns import Turn


class Rung(StrEnum):
    """What an answer stands on, strongest first."""

    CHAIN = "chain"
    NEAR = "near"
    SEAL = "seal"
    ALONE = "alone"
    NONE = "none"


_CHAIN = Rung.CHAIN
"""Named at every turn, and Python 3.11 takes its time to find a member of an enumeration."""


class Path(Struct, frozen=True, gc=False, kw_only=True):
    """A request's history with its keys, computed once."""

    turns: tuple[Turn, ...]
    keys: tuple[k.Keys | None, ...]
    trail: k.Trail  # where it stands: the next output's keys come from here
    tools: bool = False  # whether the request declares tools
    thinking: bool | None = None  # switched on or off by the client
    hints: tuple[str, ...] = ()  # digests of session ids
    named: tuple[str, ...] = ()  # those that no other conversation shares
    prefixes: tuple[str, ...] = ()  # per turn: digest of everything before its output
    previous: str = ""

    def names(self) -> list[bytes]:
        """Everything to ask the archive for, in one batch."""
        asked: dict[bytes, None] = {}
        for index, keys in enumerate(self.keys):
            if keys is None:
                continue
            asked[keys.chain] = asked[keys.near] = asked[keys.alone] = None
            for part in self.turns[index].output:
                if type(part) is Thought:
                    asked |= dict.fromkeys(_proofs(part))
                elif type(part) is Blob and part.sealed:
                    asked[k.sealed(part.digest)] = None  # whose it is; it does not name this turn
        if self.previous:
            asked[k.ref("response", self.previous)] = None
        return list(asked)


def survey(
    turns: Sequence[Turn],
    *,
    tools: bool = False,
    thinking: bool | None = None,
    hints: Sequence[str] = (),
    group: str = "",
    prefixes: Sequence[str] = (),
    previous: str = "",
) -> Path:
    """The path of a request; `hints` are session ids as the client sent them.

    `group` is the one of them that other conversations may share: it breaks ties, and no more.
    """
    keys, trail = k.trail(turns)
    sealed = tuple([k.seal(hint) for hint in hints]) if hints else ()
    named = sealed
    if group:
        place = sealed.index(k.seal(group))  # the first: who also names a session so, names it
        named = sealed[:place] + sealed[place + 1 :]
    return Path(
        turns=tuple(turns),
        keys=tuple(keys),
        trail=trail,
        tools=tools,
        thinking=thinking,
        hints=sealed,
        named=named,
        prefixes=tuple(prefixes),
        previous=previous,
    )


class Match(Struct, frozen=True, gc=False):
    """The answer for one turn."""

    memory: Memory | None
    rung: Rung
    reason: str = ""


def _proofs(echoed: Thought) -> list[bytes]:
    """Names that a client's own echo gives: seals and item ids."""
    found = [k.sealed(seal) for seal in echoed.seals]
    if echoed.id:
        found.append(k.ref("item", echoed.id))
    return found


_RANDOM = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{12,}")


def telling(id: str) -> bool:
    """Whether a call id looks random, and not like a name with a counter (`functions.ls:0`)."""
    return _RANDOM.search(id) is not None


class _Candidates(Struct, gc=False):
    """What may be meant at one position.

    Mostly the strongest rung has the answer, so the others are looked at only when asked for.
    """

    turn: Turn
    keys: k.Keys
    found: Mapping[bytes, Sequence[Memory]]
    chain: Sequence[Memory]
    known: dict[str, tuple[Memory, Rung]] | None = None

    @property
    def standing(self) -> dict[str, tuple[Memory, Rung]]:
        """All candidates by turn id, each on the best rung it stands on."""
        if self.known is not None:
            return self.known
        keys = self.keys
        named = [(Rung.CHAIN, keys.chain), (Rung.NEAR, keys.near)]
        named += [(Rung.SEAL, name) for echo in self.turn.thoughts for name in _proofs(echo)]
        named.append((Rung.ALONE, keys.alone))
        made: dict[str, tuple[Memory, Rung]] = {}
        for rung, name in named:
            for memory in self.found.get(name, ()):
                made.setdefault(memory.turn, (memory, rung))
        self.known = made
        return made

    def on(self, rung: Rung) -> list[Memory]:
        return [memory for memory, at in self.standing.values() if at is rung]

    def rung(self, memory: Memory) -> Rung:
        return self.standing[memory.turn][1]

    def match(self, id: str, reason: str) -> Match | None:
        """The candidate with this turn id, if it is one."""
        for memory in self.chain:
            if memory.turn == id:
                return Match(memory, _CHAIN, reason)
        return Match(*self.standing[id], reason) if id in self.standing else None


def resolve(path: Path, found: Mapping[bytes, Sequence[Memory]]) -> list[Match | None]:
    """For every turn of the path the remembered one, or why not; None for turns without output."""
    return _Resolver(path, found).run()


class _Resolver:
    """One path's worth of choices, made from the newest turn to the oldest."""

    def __init__(self, path: Path, found: Mapping[bytes, Sequence[Memory]]) -> None:
        self.path = path
        self.positions: list[_Candidates | None] = []
        for index, keys in enumerate(path.keys):
            self.positions.append(
                _Candidates(path.turns[index], keys, found, found.get(keys.chain, ()))
                if keys is not None
                else None
            )
        self.matches: list[Match | None] = [None] * len(self.positions)
        self.after: Memory | None = None  # the nearest later turn that is certain
        self.used: set[str] = set()  # a turn stands in a path only once
        self.sessions: set[str] = set()  # of the turns that are certain

    def run(self) -> list[Match | None]:
        if not self._pass(self._surely):
            self.sessions = {m.memory.session for m in self.matches if m and m.memory}
            self._pass(self._weakly)
        return self.matches

    def _pass(self, choose: Callable[[int, _Candidates], Match]) -> bool:
        """Choose wherever that is not done yet; whether nothing is left open."""
        self.after = None
        settled = True
        for index in range(len(self.positions) - 1, -1, -1):
            if (here := self.positions[index]) is None:
                continue
            match = self.matches[index]
            if match is None or (match.memory is None and match.reason != "ambiguous"):
                match = self.matches[index] = self._lineage(here) or choose(index, here)
            if match.memory is None:
                settled = False
            else:
                self.after = match.memory
                self.used.add(match.memory.turn)
        return settled

    def _lineage(self, here: _Candidates) -> Match | None:
        """The turn before a certain one is its parent."""
        after = self.after
        return here.match(after.parent, "lineage") if after is not None and after.parent else None

    def _surely(self, index: int, here: _Candidates) -> Match:
        """Everything before it is the same, or the client brought what only this turn had."""
        if len(here.chain) == 1 and here.chain[0].turn not in self.used:
            return Match(here.chain[0], _CHAIN)  # mostly
        rung = _CHAIN
        tied = self._narrow(here.chain, index)
        if not tied:
            rung = Rung.SEAL
            tied = self._narrow(here.on(rung), index)
        if not tied:
            return Match(None, Rung.NONE, "unknown")
        if len(tied) > 1 and not _equal(tied):
            return Match(None, rung, "ambiguous")
        return Match(tied[0], rung)

    def _weakly(self, index: int, here: _Candidates) -> Match:
        """The same neighbours or the same words: only with corroboration, and without a rival."""
        near, alone = (
            [memory for memory in here.on(rung) if memory.turn not in self.used]
            for rung in (Rung.NEAR, Rung.ALONE)
        )
        named = [memory for memory in (*near, *alone) if self._named(memory, index)]
        tied = self._narrow(named or near, index)
        if not tied:
            return Match(None, Rung.NONE, "uncorroborated" if alone else "unknown")
        rung = here.rung(tied[0])
        if len(tied) > 1 and not _equal(tied):
            return Match(None, rung, "ambiguous")
        if not named and not self._corroborated(tied[0], index):
            return Match(None, Rung.NONE, "uncorroborated")
        return Match(tied[0], rung)

    def _narrow(self, among: Sequence[Memory], index: int) -> list[Memory]:
        """Break ties by what proves nothing alone; a test that nobody passes does not count."""
        tied = [memory for memory in among if memory.turn not in self.used]
        if len(tied) < 2:
            return tied
        ids, hints = self._ids(index), set(self.path.hints)
        said = memories.words(self.path.turns[index])
        tests: tuple[Callable[[Memory], bool], ...] = (
            lambda m: any(ids) and m.calls == ids,
            lambda m: not hints.isdisjoint(m.hints),
            lambda m: bool(said) and m.words == said,
        )
        for test in tests:
            tied = [memory for memory in tied if test(memory)] or tied
        return tied

    def _corroborated(self, memory: Memory, index: int) -> bool:
        """Whether another turn of the path says that it is this conversation."""
        if self.sessions:
            return memory.session in self.sessions
        if self.after is not None:
            return memory.session == self.after.session
        before = next((p for p in reversed(self.positions[:index]) if p is not None), None)
        if before is None:
            return False
        parent = before.match(memory.parent, "")
        return parent is not None and parent.rung is Rung.NEAR

    def _named(self, memory: Memory, index: int) -> bool:
        """Whether the client names the conversation or the turn, by hint or by a telling id."""
        if not set(self.path.named).isdisjoint(memory.hints):
            return True
        ids = self._ids(index)
        return memory.calls == ids and any(telling(id) for id in ids)

    def _ids(self, index: int) -> tuple[str, ...]:
        return tuple(call.id for call in self.path.turns[index].calls)


def _equal(tied: list[Memory]) -> bool:
    """Whether it makes no difference which one is meant."""
    first = tied[0]
    return all(
        m.origin == first.origin
        and m.outcome == first.outcome
        and m.outline == first.outline
        and m.quarantined == first.quarantined
        and [t.raw for t in m.thoughts] == [t.raw for t in first.thoughts]
        for m in tied[1:]
    )
