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
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from thoughtline import keys as k
from thoughtline import memories
from thoughtline.memories import Memory
from thoughtline.parts import Blob
from thoughtline.turns import Turn


class Rung(StrEnum):
    """What an answer stands on, strongest first."""

    CHAIN = "chain"
    NEAR = "near"
    SEAL = "seal"
    ALONE = "alone"
    NONE = "none"


class Path(Struct, frozen=True, kw_only=True):
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
        for turn, keys in zip(self.turns, self.keys, strict=True):
            if keys is None:
                continue
            for name in (keys.chain, keys.near, keys.alone, *_evidence(turn)):
                asked[name] = None
            for part in turn.output:
                if isinstance(part, Blob) and part.sealed:
                    asked[k.sealed(part.digest)] = None  # whose it is; it does not name this turn
        if self.previous:
            asked[k.ref("response", self.previous)] = None
        return list(asked)


def survey(
    turns: Sequence[Turn],
    *,
    tools: bool = False,
    thinking: bool | None = None,
    hints: Iterable[str] = (),
    group: str = "",
    prefixes: Sequence[str] = (),
    previous: str = "",
) -> Path:
    """The path of a request; `hints` are session ids as the client sent them.

    `group` is the one of them that other conversations may share: it breaks ties, and no more.
    """
    keys, trail = k.trail(turns)
    sealed = [k.seal(hint) for hint in hints]
    named = list(sealed)
    if group:
        named.remove(k.seal(group))  # once: who also names a session so, names it
    return Path(
        turns=tuple(turns),
        keys=tuple(keys),
        trail=trail,
        tools=tools,
        thinking=thinking,
        hints=tuple(sealed),
        named=tuple(named),
        prefixes=tuple(prefixes),
        previous=previous,
    )


class Match(Struct, frozen=True, gc=False):
    """The answer for one turn."""

    memory: Memory | None
    rung: Rung
    reason: str = ""


def _evidence(turn: Turn) -> list[bytes]:
    """Names that the client's own echo gives: seals and item ids."""
    found: list[bytes] = []
    for thought in turn.thoughts:
        found += [k.sealed(seal) for seal in thought.seals]
        if thought.id:
            found.append(k.ref("item", thought.id))
    return found


_RANDOM = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{12,}")


def telling(id: str) -> bool:
    """Whether a call id looks random, and not like a name with a counter (`functions.ls:0`)."""
    return _RANDOM.search(id) is not None


class _Candidates(Struct):
    """What may be meant at one position, best rung first."""

    rungs: dict[str, Rung]  # turn id → the best rung it stands on
    memories: dict[str, Memory]

    def on(self, rung: Rung) -> list[Memory]:
        return [self.memories[id] for id, at in self.rungs.items() if at is rung]


def _candidates(turn: Turn, keys: k.Keys, found: Mapping[bytes, Sequence[Memory]]) -> _Candidates:
    rungs: dict[str, Rung] = {}
    known: dict[str, Memory] = {}

    def add(rung: Rung, memories: Sequence[Memory]) -> None:
        for memory in memories:
            if memory.turn not in rungs:
                rungs[memory.turn] = rung
                known[memory.turn] = memory

    add(Rung.CHAIN, found.get(keys.chain, ()))
    add(Rung.NEAR, found.get(keys.near, ()))
    for name in _evidence(turn):
        add(Rung.SEAL, found.get(name, ()))
    add(Rung.ALONE, found.get(keys.alone, ()))
    return _Candidates(rungs, known)


def resolve(path: Path, found: Mapping[bytes, Sequence[Memory]]) -> list[Match | None]:
    """For every turn of the path the remembered one, or why not; None for turns without output."""
    return _Resolver(path, found).run()


class _Resolver:
    """One path's worth of choices, made from the newest turn to the oldest."""

    def __init__(self, path: Path, found: Mapping[bytes, Sequence[Memory]]) -> None:
        self.path = path
        self.positions = [
            _candidates(turn, keys, found) if keys is not None else None
            for turn, keys in zip(path.turns, path.keys, strict=True)
        ]
        self.matches: list[Match | None] = [None] * len(self.positions)
        self.after: Memory | None = None  # the nearest later turn that is certain
        self.used: set[str] = set()  # a turn stands in a path only once
        self.sessions: set[str] = set()  # of the turns that are certain

    def run(self) -> list[Match | None]:
        self._pass(self._surely)
        self.sessions = {m.memory.session for m in self.matches if m and m.memory}
        self._pass(self._weakly)
        return self.matches

    def _pass(self, choose: Callable[[int, _Candidates], Match]) -> None:
        self.after = None
        for index in range(len(self.positions) - 1, -1, -1):
            if (here := self.positions[index]) is None:
                continue
            match = self.matches[index]
            if match is None or (match.memory is None and match.reason != "ambiguous"):
                match = self.matches[index] = self._lineage(here) or choose(index, here)
            if match.memory is not None:
                self.after = match.memory
                self.used.add(match.memory.turn)

    def _lineage(self, here: _Candidates) -> Match | None:
        """The turn before a certain one is its parent."""
        parent = self.after.parent if self.after is not None else ""
        if parent not in here.memories:
            return None
        return Match(here.memories[parent], here.rungs[parent], "lineage")

    def _surely(self, index: int, here: _Candidates) -> Match:
        """Everything before it is the same, or the client brought what only this turn had."""
        for rung in (Rung.CHAIN, Rung.SEAL):
            if tied := self._narrow(here.on(rung), index):
                if len(tied) > 1 and not _equal(tied):
                    return Match(None, rung, "ambiguous")
                return Match(tied[0], rung)
        return Match(None, Rung.NONE, "unknown")

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
        rung = here.rungs[tied[0].turn]
        if len(tied) > 1 and not _equal(tied):
            return Match(None, rung, "ambiguous")
        if not named and not self._corroborated(tied[0], index):
            return Match(None, Rung.NONE, "uncorroborated")
        return Match(tied[0], rung)

    def _narrow(self, tied: list[Memory], index: int) -> list[Memory]:
        """Break ties by what proves nothing alone; a test that nobody passes does not count."""
        tied = [memory for memory in tied if memory.turn not in self.used]
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
        return before is not None and before.rungs.get(memory.parent) is Rung.NEAR

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
