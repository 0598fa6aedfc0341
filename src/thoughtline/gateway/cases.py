"""A refusal as a case: what was sent, what the provider said about it, and what may be changed.

`Case` is the evidence, gathered before a treatment looks at it, so that treatments are pure: the
refusal's words and the ids it names, the thoughts that went out with the memories they came from,
and what the log knows of the ids. A `Change` is one thing to try.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from thoughtline import splice
from thoughtline.dialects.base import Request
from thoughtline.dialects.thoughts import same, thought
from thoughtline.exchanges import Exchange, Found, Terms
from thoughtline.gateway.learned import Lesson, strengthened
from thoughtline.guards import Target, standing
from thoughtline.matching import Path
from thoughtline.memories import Memory
from thoughtline.parts import Carrier, Thought
from thoughtline.policies import Policy
from thoughtline.turns import Turn

_ITEM = re.compile(r"\b(?:rs|fc|msg|ctc|cmp)_[A-Za-z0-9_-]+")
_MESSAGE = re.compile(r"messages\.(\d+)\.content(?:\.(\d+))?")


class Sent(Struct, frozen=True, kw_only=True):
    """One output of the request as it went out."""

    index: int  # position in the path
    chain: str
    turn: Turn  # as the client sent it
    memory: Memory | None  # the turn it was taken for
    thoughts: tuple[Thought, ...]  # that went out with it


class Change(Struct, frozen=True, kw_only=True):
    """One thing to try, and what it means when it helps."""

    lesson: Lesson | None = None  # about the endpoint: goes into the row, and is kept
    target: Target | None = None
    found: Found | None = None
    path: Path | None = None
    terms: Terms | None = None
    request: Request | None = None  # another request in place of this one
    certain: tuple[str, ...] = ()  # turns that are known to be in its path
    quarantine: Mapping[str, frozenset[int]] = {}  # turn → positions among its thoughts


class Case(Struct, frozen=True, kw_only=True):
    """What is known about a refusal."""

    exchange: Exchange
    words: str  # the refusal's text, as it came
    known: Mapping[str, Memory] = {}  # what the log has for the ids it names
    behind: tuple[Turn, ...] = ()  # the path of the response that the request goes on from

    @property
    def text(self) -> str:
        """The words, for matching."""
        return self.words.lower()

    @property
    def policy(self) -> Policy:
        """The row that the request went out by."""
        return self.exchange.target.policy

    @property
    def ids(self) -> list[str]:
        """The items it names, in order."""
        return named(self.words)

    @property
    def message(self) -> int | None:
        """The position of the message it names."""
        found = _MESSAGE.search(self.words)
        return int(found[1]) if found else None

    def sent(self) -> list[Sent]:
        """The outputs that went out, with their thoughts."""
        exchange = self.exchange
        memories = {m.turn: m for filed in exchange.found.values() for m in filed}
        revised = {revision.turn: revision for revision in exchange.restoration.revisions}
        made: list[Sent] = []
        for ruling in exchange.restoration.rulings:
            turn, keys = exchange.path.turns[ruling.turn], exchange.path.keys[ruling.turn]
            if revision := revised.get(ruling.turn):
                out = [_read(placed.carrier, placed.raw) for placed in revision.thoughts]
            else:
                out = [echoed for echoed, _ in standing(turn.output)]
            made.append(
                Sent(
                    index=ruling.turn,
                    chain=keys.chain.hex() if keys else "",
                    turn=turn,
                    memory=memories.get(ruling.memory),
                    thoughts=tuple(out),
                )
            )
        return made

    def stricter(self, lesson: Lesson) -> Change:
        """The same request by a row that has learned this."""
        target = self.exchange.target
        target = replace(target, policy=strengthened(target.policy, lesson))
        return Change(lesson=lesson, target=target)

    def drop(self, wanted: Callable[[Sent, Thought], bool]) -> Change | None:
        """Without these thoughts, for good: those of the log in quarantine, the others refused."""
        gone: dict[str, frozenset[int]] = {}
        refused: set[str] = set()
        for output in self.sent():
            for out in output.thoughts:
                if not wanted(output, out):
                    continue
                at = positions(output.memory, out)
                if output.memory is not None and at:
                    gone[output.memory.turn] = gone.get(output.memory.turn, frozenset()) | at
                else:
                    refused.add(output.chain)
        if not gone and not refused:
            return None
        terms = self.exchange.terms
        terms = replace(terms, refused=terms.refused | refused)
        return Change(found=quarantined(self.exchange.found, gone), terms=terms, quarantine=gone)

    def refuse(self, chains: Sequence[str]) -> Change:
        """Without what the client brings at these outputs, and without their ids."""
        terms = self.exchange.terms
        return Change(terms=replace(terms, refused=terms.refused | set(chains)))


def named(words: str) -> list[str]:
    """The items that a text names, in order."""
    return list(dict.fromkeys(_ITEM.findall(words)))


def positions(memory: Memory | None, out: Thought) -> frozenset[int]:
    """Where among a turn's thoughts this one stands; by its seals, its id, or its very words."""
    if memory is None:
        return frozenset()
    found = [
        position
        for position, kept in enumerate(memory.thoughts)
        if set(kept.seals) & set(out.seals)
        or (out.id and kept.id == out.id)
        or (not out.seals and kept.carrier is out.carrier and same(kept.raw, out.raw))
    ]
    return frozenset(found)


def quarantined(found: Found, gone: Mapping[str, frozenset[int]]) -> Found:
    """The memories with these thoughts in quarantine."""
    if not gone:
        return found
    return {
        name: [
            replace(m, quarantined=m.quarantined | gone[m.turn]) if m.turn in gone else m
            for m in filed
        ]
        for name, filed in found.items()
    }


def _read(carrier: Carrier, raw: str) -> Thought:
    return thought(carrier, splice.loads(raw.encode()), raw)
