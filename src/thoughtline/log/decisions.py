"""What was decided about the thoughts of a request's earlier outputs, as the log keeps it.

One `ReplayDecision` per output: what became of its thoughts, why, and how its turn was recognised.
A request decides about every output of its history, mostly as the request before it did. Written
out each time, a session would grow with the square of its length, so a turn's start has only what
is new: `TurnStarted.repeated` says how many of the first decisions are those of the turn before.
A mark in the index entry of the turn before proves that they are the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct, field


class Action(StrEnum):
    """What is done with the thoughts of an output."""

    RESTORED = "restored"  # put back
    EXACT = "exact"  # the client sent them as they were: its copy equals the original
    REPLACED = "replaced"  # the client's echo was altered, or under a key the target cannot read
    ABSENT = "absent"  # legally without
    PLACEHOLDER = "placeholder"  # the shortest value the target accepts
    DROPPED = "dropped"
    UNKNOWN = "unknown"  # written by a newer version

    @classmethod
    def _missing_(cls, _value: object) -> "Action":
        return cls.UNKNOWN


class ReplayWord(StrEnum):
    """What became of the thoughts of an output, as header, log line, metric and page say it.

    The first six say what went out, and each output has one of them. The last two say that its
    turn was not found, and stand beside the first, or in the place of `absent`.
    """

    RESTORED = "restored"  # put back: the client had left them out
    CORRECTED = "corrected"  # the client's copy was altered, and the original went out instead
    EXACT = "exact"  # the client sent them as they were: its copy equals the original
    PLACEHOLDER = "placeholder"  # lost; the shortest value that the provider accepts went out
    DROPPED = "dropped"  # they may not go to this provider, or would be refused
    ABSENT = "absent"  # the output had none, or this provider does not want them
    MISSED = "missed"  # the turn is not in the log
    TIED = "tied"  # several turns in the log fit equally well


class MatchLevel(StrEnum):
    """Which key a match rests on, strongest first; the values are those of logs written before."""

    FULL = "chain"  # this turn and everything before it
    LOCAL = "near"  # it and its neighbours
    SEAL = "seal"  # the client brought a value that only this turn had
    CONTENT = "alone"  # the same calls, or the same text
    NONE = "none"

    @classmethod
    def _missing_(cls, _value: object) -> "MatchLevel":
        return cls.NONE


THINKING_OFF = "thinking off"
"""Reason of leaving thoughts out of a request that goes out with thinking switched off."""
TIED = "ambiguous"
"""Reason of decisions about outputs for which several turns were found."""
REFUSED = "refused"
"""Reason of dropping what a client brings: the target refused it once."""
UNREADABLE = "unreadable there"
"""Reason of dropping what a client brings: the target has no place for it."""
PREFIX_CHANGED = "prefix changed"
"""Reason of dropping a thought whose signature covers what stood before it: that is another now."""
RULED_OUT = "ruled out"
"""Reason of decisions about outputs that look like a logged turn and cannot be that one."""
CLIENTS_OWN = "client's own"
"""Reason of leaving a thought as the client sends it where the log has none."""
UNMATCHED = frozenset({"unknown", TIED, "uncorroborated", RULED_OUT, REFUSED, UNREADABLE})
"""Reasons of decisions about outputs whose turn was not found, if none is named."""


class ReplayDecision(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What was decided about one output."""

    turn: int  # position in the path
    action: Action
    reason: str = ""
    level: MatchLevel = field(default=MatchLevel.NONE, name="rung")
    entry: str = field(default="", name="memory")  # id of the turn that it was taken for
    thoughts: int = 0  # how many go out
    left: int = 0  # how many stay behind

    @property
    def missed(self) -> bool:
        """Whether the output's turn is not in the log."""
        return self.unmatched and self.reason != TIED

    @property
    def tied(self) -> bool:
        """Whether several turns in the log fit the output equally well."""
        return self.unmatched and self.reason == TIED

    @property
    def unmatched(self) -> bool:
        """Whether the output's turn was not found, and it matters."""
        if self.level is not MatchLevel.NONE:
            return False
        return self.unverified or (self.action in _WITHOUT and self.reason in UNMATCHED)

    @property
    def unverified(self) -> bool:
        """Whether the client's own thought went out, and the log cannot say if that is right."""
        return self.level is MatchLevel.NONE and self.reason == CLIENTS_OWN

    @property
    def word(self) -> ReplayWord:
        """The one word for the decision, where there is room for one."""
        if self.unmatched and (self.unverified or self.action is Action.ABSENT):
            return ReplayWord.TIED if self.reason == TIED else ReplayWord.MISSED
        return _WORD.get(self.action, ReplayWord.ABSENT)

    @property
    def carried(self) -> bool:
        """Whether thoughts of the logged turn went out."""
        return self.action in _CARRIED and self.thoughts > 0


_WORD = {
    Action.RESTORED: ReplayWord.RESTORED,
    Action.EXACT: ReplayWord.EXACT,
    Action.REPLACED: ReplayWord.CORRECTED,
    Action.PLACEHOLDER: ReplayWord.PLACEHOLDER,
    Action.DROPPED: ReplayWord.DROPPED,
}
_WITHOUT = frozenset({Action.ABSENT, Action.PLACEHOLDER, Action.DROPPED})
_CARRIED = frozenset({Action.RESTORED, Action.REPLACED, Action.EXACT})
_encode = msgspec.json.Encoder().encode


# -- counting ------------------------------------------------------------------------------------

DecisionKind = tuple[Action, MatchLevel, str, bool]
"""What decisions that are counted alike have in common: the last says whether a turn was found."""
KindCounts = Mapping[DecisionKind, int]
"""How many decisions there are of each kind."""
NO_KINDS: KindCounts = {}

HEADER_ORDER = (
    ReplayWord.RESTORED,
    ReplayWord.MISSED,
    ReplayWord.PLACEHOLDER,
    ReplayWord.DROPPED,
    ReplayWord.CORRECTED,
    ReplayWord.EXACT,
    ReplayWord.TIED,
    ReplayWord.ABSENT,
)
"""The words in the order of the replay header, which does not say the last one."""
_TALLIED = (*[action.value for action in Action], "missed", "tied")


def kind_of(made: ReplayDecision) -> DecisionKind:
    """Return what a decision has in common with those that are counted alike."""
    return made.action, made.level, made.reason, made.entry != ""


def count_kinds(
    decisions: Iterable[ReplayDecision], first: KindCounts = NO_KINDS
) -> dict[DecisionKind, int]:
    """Count decisions by kind; `first` are the counts of those before them."""
    counts = dict(first)
    for made in decisions:
        kind = kind_of(made)
        counts[kind] = counts.get(kind, 0) + 1
    return counts


@lru_cache(maxsize=1024)
def example(kind: DecisionKind) -> ReplayDecision:
    """A decision of this kind."""
    action, level, reason, found = kind
    return ReplayDecision(
        turn=0, action=action, level=level, reason=reason, entry="found" if found else ""
    )


def tally(decisions: Iterable[ReplayDecision], first: KindCounts = NO_KINDS) -> dict[str, int]:
    """Count the outputs by action, those missed and those tied, as the log keeps it; no zeros.

    `first` are the counts of those before these.
    """
    counted: dict[str, int] = {}
    for kind, count in count_kinds(decisions, first).items():
        for name in _tallied(kind):
            counted[name] = counted.get(name, 0) + count
    if len(counted) > 1:
        counted = {name: counted[name] for name in _TALLIED if name in counted}
    return counted


@lru_cache(maxsize=1024)
def _tallied(kind: DecisionKind) -> tuple[str, ...]:
    """The names under which the log counts decisions of a kind."""
    one = example(kind)
    if not one.unmatched:
        return (one.action.value,)
    if one.unverified:
        return ("missed",)
    return one.action.value, "tied" if one.tied else "missed"


def word_counts(kinds: KindCounts) -> tuple[int, ...]:
    """Count the outputs by word, zeros included, in the order of `HEADER_ORDER`.

    One whose turn was not found, and that goes out with a placeholder or without what the client
    brought, counts as both: `placeholder` or `dropped`, and `missed` or `tied`. `absent` are only
    those that lack nothing.
    """
    counts = [0] * len(HEADER_ORDER)
    for kind, count in kinds.items():
        for place in _places(kind):
            counts[place] += count
    return tuple(counts)


@lru_cache(maxsize=1024)
def _places(kind: DecisionKind) -> tuple[int, ...]:
    """Where in the order of the header decisions of a kind count."""
    one = example(kind)
    words = {one.word} if one.action is not Action.UNKNOWN else set()
    if one.unmatched:
        words.add(ReplayWord.TIED if one.tied else ReplayWord.MISSED)
    return tuple([HEADER_ORDER.index(word) for word in words])


def count_words(decisions: Iterable[ReplayDecision]) -> dict[ReplayWord, int]:
    """Count the outputs by word, zeros included: see `word_counts`."""
    return dict(zip(HEADER_ORDER, word_counts(count_kinds(decisions)), strict=True))


def new_decisions(replay: Sequence[ReplayDecision], parent: str) -> Sequence[ReplayDecision]:
    """Return the decisions of a turn about outputs that no request before it has decided about.

    Those are the output of its parent, and what comes after that: the parent's own request has
    decided about all before. They may be written again, where what follows has changed the reason.
    """
    if not parent:
        return replay
    for place, made in enumerate(replay):
        if made.entry == parent:
            return replay[place:]
    return ()  # the parent failed, and nothing is sent of it


# -- what a turn repeats of the one before -------------------------------------------------------


class RollingMark:
    """The mark of the first decisions of a request, from which that of more of them is made."""

    __slots__ = ("_state", "count")

    def __init__(self, count: int = 0, state: Any = None) -> None:
        self.count = count  # decisions
        self._state = state or blake2b(b"[", digest_size=12)

    def __str__(self) -> str:
        if not self.count:
            return ""
        state = self._state.copy()
        state.update(b"]")
        return f"{self.count}.{state.hexdigest()}"

    def followed_by(self, decisions: Sequence[ReplayDecision]) -> "RollingMark":
        """Return the mark of these and more decisions."""
        if not decisions:
            return self
        state = self._state.copy()
        state.update((b"," if self.count else b"") + _encode(decisions)[1:-1])
        return RollingMark(self.count + len(decisions), state)


NO_MARK = RollingMark()


def mark(decisions: Sequence[ReplayDecision], first: RollingMark = NO_MARK) -> str:
    """Return the number of settled decisions and a digest of them; empty for none.

    The last one is not settled: nothing follows its output yet, and what follows is evidence.
    `first` is the mark of the first ones, where that is known.
    """
    return str(first.followed_by(decisions[first.count : -1]))


def repeated(
    decisions: Sequence[ReplayDecision], mark_before: str, first: RollingMark = NO_MARK
) -> int:
    """Return how many of the first decisions the mark stands for: all of those, or none."""
    count = int(mark_before.partition(".")[0] or 0)
    if not 0 < count <= len(decisions):
        return 0
    known = first if first.count <= count else NO_MARK
    same = str(known.followed_by(decisions[known.count : count])) == mark_before
    return count if same else 0


def alike(decisions: Sequence[ReplayDecision], before: Sequence[ReplayDecision]) -> int:
    """Return how many of the first decisions equal those of the turn before."""
    count = 0
    for decision, known in zip(decisions, before, strict=False):
        if decision != known:
            break
        count += 1
    return count
