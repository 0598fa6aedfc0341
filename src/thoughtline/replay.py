"""Which thought goes back where, and why. Pure: memories in, rulings out.

`restore` looks at each output of a request's path: what the client echoed, what was found for it,
and what the target's policy row demands and binds. It answers with a ruling per output (put back,
exact, replaced, absent, placeholder, dropped; reason and rung) and the revisions a dialect's
`patch` needs. Decisions are sticky: what a request to this target once went out without, it goes
out without again. Nothing is ever made up; a dangling, refused or foreign thought stays behind.
The room before is `matching`, the room after the dialect.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property

from msgspec import Struct

from thoughtline import keys as k
from thoughtline.dialects.base import Placed, Revision
from thoughtline.guards import (
    Target,
    guard,
    identical,
    render,
    reshaped,
    respelled,
    sendable,
    standing,
    suffices,
    unnamed,
)
from thoughtline.matching import Match, Path, Rung, resolve
from thoughtline.memories import Memory
from thoughtline.parts import Blob, Carrier, Result, Text, Thought
from thoughtline.policies import Need, Policy, Scope
from thoughtline.turns import Place, Turn


class Action(StrEnum):
    """What becomes of an output's thoughts."""

    RESTORED = "restored"  # put back
    EXACT = "exact"  # the client sent them as they were
    REPLACED = "replaced"  # the client's echo was altered, or under a key the target cannot read
    ABSENT = "absent"  # legally without
    PLACEHOLDER = "placeholder"  # the shortest value the target accepts
    DROPPED = "dropped"


class Ruling(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What was decided for one output."""

    turn: int  # position in the path
    action: Action
    reason: str = ""
    rung: Rung = Rung.NONE
    memory: str = ""  # id of the remembered turn
    thoughts: int = 0  # how many go out
    left: int = 0  # how many stay behind


class Limits(Struct, frozen=True, kw_only=True):
    """An escape hatch: how many old thoughts may go back, where the target does not demand them."""

    last: int | None = None  # only those of the last so many outputs
    loop_only: bool = False  # only those of the running tool loop


class Restoration(Struct, frozen=True, gc=False, kw_only=True):
    """The whole answer for one request."""

    rulings: tuple[Ruling, ...]
    revisions: tuple[Revision, ...] = ()
    fields: dict[
        str, bytes
    ] = {}  # top-level members to set: thinking off, where nothing else helps
    skipped: dict[str, str] = {}  # newly left out: chain key → reason; to be remembered
    before: dict[str, str] = {}  # what earlier requests to this target went out without
    parent: Memory | None = None  # the last turn of the path that is known

    def count(self, action: Action) -> int:
        """How many outputs were ruled so."""
        return len([ruling for ruling in self.rulings if ruling.action is action])

    @property
    def missed(self) -> int:
        """Outputs whose turn was not found."""
        return sum(
            r.rung is Rung.NONE and r.action in (Action.ABSENT, Action.PLACEHOLDER)
            for r in self.rulings
            if r.reason in ("unknown", "ambiguous", "uncorroborated")
        )


NOTHING = Limits()
# Named at every output, and Python 3.11 takes its time to find a member of an enumeration.
_RESTORED = Action.RESTORED
_REQUIRED, _IGNORED, _NEVER = Need.REQUIRED, Need.IGNORED, (Need.FORBIDDEN, Need.NONE)
_ALL, _ITEM = Scope.ALL, Carrier.ITEM
REFUSED = "refused"
"""Why an output goes without what its client brings: the target refused that once."""


def restore(
    path: Path,
    found: Mapping[bytes, Sequence[Memory]],
    target: Target,
    limits: Limits = NOTHING,
    refused: Iterable[str] = (),
) -> Restoration:
    """Rule on every output of the path; `refused` are chain keys of outputs we do not remember."""
    return _Restorer(path, found, target, limits, refused).run()


class _Restorer:
    """One request's worth of decisions."""

    def __init__(
        self,
        path: Path,
        found: Mapping[bytes, Sequence[Memory]],
        target: Target,
        limits: Limits,
        refused: Iterable[str],
    ) -> None:
        self.path = path
        self.found = found
        self.matches = resolve(path, found)
        self.target = target
        self.policy = target.policy
        self.items = _ITEM in target.policy.reads
        self.limits = limits
        self.needs = needs(path, target.policy)
        self.before = self._skipped_before()
        self.rulings: list[Ruling] = []
        self.revisions: list[Revision] = []
        self.fields: dict[str, bytes] = {}
        self.skipped: dict[str, str] = {}
        for chain in refused:
            if self.before.get(chain) != REFUSED:
                self.before[chain] = self.skipped[chain] = REFUSED

    def run(self) -> Restoration:
        refused = self._broken_run() if self.policy.prefix else -1
        for index, turn in enumerate(self.path.turns):
            if self.path.keys[index] is not None:
                match = self.matches[index] or Match(None, Rung.NONE, "unknown")
                self._rule(index, turn, match, late=index <= refused)
        return Restoration(
            rulings=tuple(self.rulings),
            revisions=tuple(self.revisions),
            fields=self.fields,
            skipped=self.skipped,
            before=self.before,
            parent=self._last_known(),
        )

    def _last_known(self) -> Memory | None:
        for match in reversed(self.matches):
            if match is not None and match.memory is not None:
                return match.memory
        return None

    # -- one output ------------------------------------------------------------------------------

    def _rule(self, index: int, turn: Turn, match: Match, *, late: bool) -> None:
        need = self._need(index, turn)
        echo = _echo(turn)
        foreign = self._foreign(echo) if echo else ""
        if need in _NEVER:
            self._forbid(index, echo, match, need)
        elif match.memory is None and self._sticky(index) == REFUSED:
            self._without(index, turn, match, need, REFUSED, drop=True)
        elif foreign and (need is _IGNORED or match.memory is None):
            self._without(index, turn, match, need, f"foreign {foreign}", drop=True)
        elif need is _IGNORED and echo and match.memory and match.memory.quarantined:
            self._without(index, turn, match, need, "quarantined", drop=True)
        elif need is _IGNORED:
            self._say(index, Action.EXACT if echo else Action.ABSENT, "ignored there", match)
        elif match.memory is None:
            self._unknown(index, turn, match, need, echo)
        else:
            self._known(index, turn, match, need, echo, late=late)
        revised = bool(self.revisions) and self.revisions[-1].turn == index
        if not revised and (self._alien(turn) or self._phases(index)):
            self._revise(index, [Placed(at, t.carrier, t.raw) for t, at in standing(turn.output)])

    def _known(
        self,
        index: int,
        turn: Turn,
        match: Match,
        need: Need,
        echo: list[Thought],
        *,
        late: bool,
    ) -> None:
        memory = match.memory
        assert memory is not None  # noqa: S101 (said by the caller)
        placed, reasons = sendable(turn, memory, self.target, self._prefix(index))
        sticky = self._sticky(index)
        if late or (sticky is not None and (self.policy.prefix or not echo)):
            placed, reasons = [], [sticky] if sticky else reasons or ["before a gap"]
        if placed and need is not _REQUIRED and self._over_limit(index):
            placed, reasons = [], ["over the limit"]
        if placed:
            enough = bool(echo) and self.policy.copies and suffices(echo, placed, self.policy)
            moved = self.items and reshaped(turn, memory, placed)
            if moved:
                placed = unnamed(placed)
            if echo and (enough or identical(turn, echo, placed)) and not reasons:
                action = Action.EXACT
                if respelled(echo, placed):
                    self._revise(index, placed)
            else:
                action = Action.REPLACED if echo else _RESTORED
                anonymous = moved or (bool(reasons) and self.items)
                self._revise(index, placed, anonymous=anonymous)
            reason = reasons[0] if reasons else match.reason
            self._say(index, action, reason, match, thoughts=len(placed), left=len(reasons))
        elif memory.thoughts or reasons:
            self._without(index, turn, match, need, reasons[0], drop=True, left=len(reasons))
        elif sticky == REFUSED:
            self._without(index, turn, match, need, REFUSED, drop=True)
        elif echo and not _blank(echo):
            self._say(index, Action.EXACT, "client's own", match, thoughts=len(echo))
        else:
            self._without(index, turn, match, need, "had none")

    def _unknown(
        self, index: int, turn: Turn, match: Match, need: Need, echo: list[Thought]
    ) -> None:
        if not echo or _blank(echo):
            self._without(index, turn, match, need, match.reason)
            return
        if all(t.carrier in self.policy.reads or t.carrier is Carrier.REFERENCE for t in echo):
            self._say(index, Action.EXACT, "client's own", match, thoughts=len(echo))
            return
        placed = render(standing(turn.output), turn, self.policy)
        if placed:
            self._revise(index, placed)
            self._say(index, Action.REPLACED, "renamed", match, thoughts=len(placed))
        else:
            self._without(index, turn, match, need, "unreadable there", drop=True)

    def _forbid(self, index: int, echo: list[Thought], match: Match, need: Need) -> None:
        if any(t.carrier is not Carrier.THINK for t in echo):
            self._revise(index, [])
            self._say(index, Action.DROPPED, need.value, match, left=len(echo))
        else:
            self._say(index, Action.ABSENT, need.value, match)

    def _without(
        self,
        index: int,
        turn: Turn,
        match: Match,
        need: Need,
        reason: str,
        *,
        drop: bool = False,
        left: int = 0,
    ) -> None:
        """This output goes out without its thought: legally, with the shortest value, or off."""
        echo = _echo(turn)
        action = Action.DROPPED if drop else Action.ABSENT
        if need is _REQUIRED and self.policy.lost:
            action = Action.PLACEHOLDER
            placed = [Placed(_first(turn), self.policy.reads[0], self.policy.lost)]
            if not identical(turn, echo, placed):
                self._revise(index, placed)
        else:
            if need is _REQUIRED and self.policy.off:
                name, value = self.policy.off
                self.fields[name] = value.encode()
            items = drop and self.items
            if (drop and echo) or items:
                self._revise(index, [], anonymous=items)
        if reason != "had none" and self._chain(index) not in self.before:
            self.skipped[self._chain(index)] = reason
        self._say(index, action, reason, match, left=left or (len(echo) if drop else 0))

    # -- what may go -----------------------------------------------------------------------------

    def _broken_run(self) -> int:
        """The last output whose block cannot go: those before it may not go either.

        Blocks bound to their prefix must come back as one unbroken run up to the newest, and one
        that was left out is never put back: it would invalidate those made in its absence.
        """
        for index in range(len(self.path.turns) - 1, -1, -1):
            match, turn = self.matches[index], self.path.turns[index]
            if match is None:
                continue
            if match.memory is None:
                if not turn.thoughts:
                    return index
                continue
            if self._chain(index) in self.before:
                return index
            reasons = sendable(turn, match.memory, self.target, self._prefix(index))[1]
            if match.memory.thoughts and reasons:
                return index
        return -1

    def _foreign(self, echo: Sequence[Thought]) -> str:
        """The guard's word on a sealed thought that the client itself brought from elsewhere."""
        for echoed in echo:
            for digest in echoed.seals:
                homes = [
                    t.origin
                    for memory in self.found.get(k.sealed(digest), ())
                    for t in memory.thoughts
                    if digest in t.seals
                ]
                fields = [guard(home, self.target, sealed=True) for home in homes]
                if fields and all(fields):
                    return fields[0]
        return ""

    def _alien(self, turn: Turn) -> bool:
        """Whether the client brought a sealed summary that was made for another target."""
        for part in turn.output:
            if type(part) is Blob and part.sealed:
                homes = [memory.origin for memory in self.found.get(k.sealed(part.digest), ())]
                if homes and all(guard(home, self.target, sealed=True) for home in homes):
                    return True
        return False

    def _phases(self, index: int) -> tuple[str, ...]:
        """What the texts of an output were for, where the client has lost it; for their maker."""
        match, turn = self.matches[index], self.path.turns[index]
        memory = match.memory if match else None
        if memory is None or not memory.phases:
            return ()
        if memory.origin.provider != self.target.origin.provider:
            return ()
        texts = [part for part in turn.output if isinstance(part, Text)]
        if len(texts) != len(memory.phases):
            return ()
        lost = ["" if t.phase else phase for t, phase in zip(texts, memory.phases, strict=True)]
        return tuple(lost) if any(lost) else ()

    # -- what the target wants, and what was done before -----------------------------------------

    def _need(self, index: int, turn: Turn) -> Need:
        within, beyond = self.needs
        return within if within is beyond or self._inside(index, turn) else beyond

    def _inside(self, index: int, turn: Turn) -> bool:
        match self.policy.scope:
            case Scope.ALL:
                return True
            case Scope.LOOP:
                return index >= self._loop
            case Scope.CALLS:
                return bool(turn.calls)
            case Scope.FIRST_CALL:
                return index >= self._loop and bool(turn.calls)

    @cached_property
    def _loop(self) -> int:
        return loop_start(self.path.turns)

    def _over_limit(self, index: int) -> bool:
        if self.limits.loop_only and index < self._loop:
            return True
        return self.limits.last is not None and index not in self._recent

    @cached_property
    def _recent(self) -> set[int]:
        last = self.limits.last
        outputs = [index for index, keys in enumerate(self.path.keys) if keys is not None]
        return set(outputs[max(0, len(outputs) - last) :]) if last else set()

    def _skipped_before(self) -> dict[str, str]:
        """What earlier requests of this conversation to this very target went out without."""
        there = self.target.origin
        before: dict[str, str] = {}
        for match in self.matches:
            if match is None or match.memory is None or not match.memory.skipped:
                continue
            home = match.memory.origin
            if (home.provider, home.endpoint, home.account) == (
                there.provider,
                there.endpoint,
                there.account,
            ) and {home.model, home.asked} & {there.model, there.asked}:
                before |= match.memory.skipped
        return before

    def _prefix(self, index: int) -> str:
        return self.path.prefixes[index] if index < len(self.path.prefixes) else ""

    def _sticky(self, index: int) -> str | None:
        """Why this output went out without its thoughts before, if it did."""
        return self.before.get(self._chain(index)) if self.before else None

    def _chain(self, index: int) -> str:
        keys = self.path.keys[index]
        return keys.chain.hex() if keys else ""

    def _revise(self, index: int, placed: Sequence[Placed], *, anonymous: bool = False) -> None:
        self.revisions.append(
            Revision(
                turn=index,
                thoughts=tuple(placed),
                verbatim=True,
                anonymous=anonymous,
                unsealed=self._alien(self.path.turns[index]),
                phases=self._phases(index),
            )
        )

    def _say(
        self,
        index: int,
        action: Action,
        reason: str,
        match: Match,
        *,
        thoughts: int = 0,
        left: int = 0,
    ) -> None:
        self.rulings.append(
            Ruling(
                turn=index,
                action=action,
                reason=reason,
                rung=match.rung,
                memory=match.memory.turn if match.memory else "",
                thoughts=thoughts,
                left=left,
            )
        )


def needs(path: Path, policy: Policy) -> tuple[Need, Need]:
    """What a target wants of the outputs in its scope, and of those beyond."""
    if policy.need in _NEVER:
        return policy.need, policy.need
    thinking = path.thinking if path.thinking is not None else policy.thinks
    if not thinking:
        return _IGNORED, _IGNORED
    if policy.with_tools and not path.tools:
        return policy.beyond, policy.beyond
    return policy.need, policy.need if policy.scope is _ALL else policy.beyond


def loop_start(turns: Sequence[Turn]) -> int:
    """The position of the turn that the last message of a person began."""
    for index in range(len(turns) - 1, 0, -1):
        kinds = {type(part) for part in turns[index].input}
        if Result not in kinds and not kinds.isdisjoint((Text, Blob)):
            return index
    return 0


def _echo(turn: Turn) -> list[Thought]:
    echo: list[Thought] = []
    for part in turn.output:
        if type(part) is Thought:
            echo.append(part)  # noqa: PERF401 (mostly there is none)
    return echo


def _blank(echo: Sequence[Thought]) -> bool:
    """Whether the echo is only somebody's placeholder."""
    return all(not t.sealed and not t.id and not t.text.strip() for t in echo)


def _first(turn: Turn) -> Place:
    return Place("call", 0) if turn.calls else Place("text", 0)
