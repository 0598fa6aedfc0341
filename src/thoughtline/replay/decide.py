"""Decides which thought goes back where, and why. Pure: index entries in, decisions out.

`plan_replay` looks at each output of a request's path: what the client echoed, what was found for
it, and what the target's policy row demands and binds. It returns a decision per output (put back,
exact, replaced, absent, placeholder, dropped; with reason and match level) and the revisions that a
dialect's `patch` needs. Decisions are sticky: what a request to this target once went out without,
later ones go out without. Nothing is made up; dangling, refused or foreign thoughts are not sent.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from thoughtline.clock import time_of_id
from thoughtline.dialects.base import PlacedThought, Revision
from thoughtline.log.decisions import (
    CLIENTS_OWN,
    REFUSED,
    TIED,
    UNMATCHED,
    UNREADABLE,
    Action,
    MatchLevel,
    ReplayDecision,
    count_kinds,
)
from thoughtline.log.index import IndexEntry
from thoughtline.log.keys import TurnKeys
from thoughtline.log.parts import RIDING, Carrier, Text, Thought
from thoughtline.log.quirks import Need, Scope
from thoughtline.log.turns import Place, Turn
from thoughtline.replay.candidates import TurnMatch
from thoughtline.replay.client_words import MADE_UP, is_clients_own
from thoughtline.replay.echo import (
    HANDLE,
    echo_is_blank,
    echo_is_identical,
    echo_is_respelled,
    echo_stands_in,
    echo_suffices,
    echoed,
    echoed_in_place,
    foreign_field,
    has_foreign_blob,
    has_own_item_ids,
    output_was_reshaped,
    thoughts_with_places,
    with_joined_signatures,
)
from thoughtline.replay.gaps import last_gap, stays
from thoughtline.replay.guard import (
    UNFINISHED,
    Target,
    render,
    sendable,
    without_item_ids,
)
from thoughtline.replay.match import UNKNOWN, RequestPath, match_turns
from thoughtline.replay.needs import NEVER, last_question, loop_start, needs
from thoughtline.replay.plan import (
    NO_LIMITS,
    NOTHING_SETTLED,
    ReplayLimits,
    ReplayPlan,
    SettledTurns,
)

# Used at every output, and looking up a member of an enumeration is slow in Python 3.11.
_RESTORED = Action.RESTORED
_REQUIRED, _IGNORED, _ITEM = Need.REQUIRED, Need.IGNORED, Carrier.ITEM
_LOOPS = (Scope.LOOP, Scope.FIRST_CALL)
_DECISIVE = frozenset({_REQUIRED, _IGNORED, *NEVER})
"""Needs that decide something; others say how much is lost without a thought."""
_OVER_LIMIT = "over the limit"
_ONLY_OURS = UNFINISHED | {UNREADABLE}
"""Reasons for which a logged thought is not put back, and that say nothing against the client's."""
_TAKEN_OUT = frozenset({REFUSED, _OVER_LIMIT, "quarantined"})
"""Reasons for which also a block that the client itself sends was taken out, and stays out."""


def plan_replay(
    path: RequestPath,
    found: Mapping[bytes, Sequence[IndexEntry]],
    target: Target,
    limits: ReplayLimits = NO_LIMITS,
    refused: Collection[str] = (),
    *,
    settled: SettledTurns = NOTHING_SETTLED,
) -> ReplayPlan:
    """Decide about every output of the path; `refused` are full keys of outputs not in the log.

    What is `settled` stands before the path, and its decisions before those that are made here.
    """
    planner = _Planner(path, found, target, limits, settled)
    if refused:
        planner.refuse(refused)
    return planner.run()


class _Planner:
    """Makes the decisions of one request."""

    def __init__(
        self,
        path: RequestPath,
        found: Mapping[bytes, Sequence[IndexEntry]],
        target: Target,
        limits: ReplayLimits,
        settled: SettledTurns,
    ) -> None:
        self.path = path
        self.found = found
        self.settled = settled
        self.matched = matched = match_turns(path, found)
        self.matches = matched.turns
        self.target = target
        self.policy = policy = target.policy
        self.items = _ITEM in policy.reads
        self.limits = limits
        self.needs = needs(path, policy)
        self.skipped_before = {**settled.skipped, **skipped_at(path.keys, matched.turns, target)}
        self.decisions: list[ReplayDecision] = []
        self.revisions: list[Revision] = []
        self.fields: dict[str, bytes] = {}
        self.skipped: dict[str, str] = dict(settled.newly_skipped)

    def refuse(self, keys: Iterable[str]) -> None:
        """Leave out what the client itself brings at these outputs."""
        for key in keys:
            if self.skipped_before.get(key) != REFUSED:
                self.skipped_before[key] = self.skipped[key] = REFUSED

    def run(self) -> ReplayPlan:
        """Decide about every output, from the oldest to the newest."""
        gap = -1
        if self.policy.prefix:
            gap = last_gap(self.path, self.matches, self.target, self.skipped_before)
        for index, keys in enumerate(self.path.keys):
            if keys is not None:
                turn = self.path.turns[index]
                match = self.matches[index] or TurnMatch(None, MatchLevel.NONE, UNKNOWN)
                if match.entry is None and is_clients_own(turn):
                    match = TurnMatch(None, MatchLevel.NONE, MADE_UP)
                self._decide(index, turn, match, before_gap=index <= gap)
        return ReplayPlan(
            decisions=(*self.settled.decisions, *self.decisions),
            revisions=tuple(self.revisions),
            fields=self.fields,
            skipped=self.skipped,
            skipped_before=self.skipped_before,
            parent=self.matched.last,
            matches=self.matched,
            gap=gap,
            loop=self._counted_loop(),
            first_mark=self.settled.mark,
            counted=count_kinds(self.decisions, self.settled.kinds),
        )

    # -- one output ------------------------------------------------------------------------------

    def _decide(self, index: int, turn: Turn, match: TurnMatch, *, before_gap: bool) -> None:
        """Decide about one output: by what the target wants, then by what is known of it."""
        within, beyond = self.needs
        need = within if within is beyond or self._inside(index, turn) else beyond
        echo = echoed(turn)
        foreign = foreign_field(echo, self.found, self.target) if echo else ""
        if need in NEVER:
            self._forbid(index, echo, match, need)
        elif match.entry is not None and need is not _IGNORED:
            own = [] if foreign == HANDLE else echo
            self._known(index, turn, match, match.entry, need, echo=own, before_gap=before_gap)
        elif match.entry is None and self._sticky(index) == REFUSED:
            self._without(index, turn, match, need, REFUSED, drop=True)
        elif foreign:
            self._without(index, turn, match, need, f"foreign {foreign}", drop=True)
        elif need is not _IGNORED:
            self._unknown(index, turn, match, need, echo)
        elif echo and match.entry and match.entry.quarantined:
            self._without(index, turn, match, need, "quarantined", drop=True)
        else:
            self._record(index, Action.EXACT if echo else Action.ABSENT, "ignored there", match)
        if self.revisions and self.revisions[-1].turn == index:
            return
        if foreign == HANDLE:
            self._revise(index, [])
        elif has_foreign_blob(turn, self.found, self.target) or self._lost_phases(index):
            self._revise(index, echoed_in_place(turn))

    def _known(
        self,
        index: int,
        turn: Turn,
        match: TurnMatch,
        entry: IndexEntry,
        need: Need,
        *,
        echo: list[Thought],
        before_gap: bool,
    ) -> None:
        """Decide about an output whose turn is in the log."""
        if not entry.thoughts:
            self._had_none(index, turn, match, need, echo)
            return
        prefix = self.policy.prefix
        behind = self._prefix(index) if prefix else ""
        from_log = self.path.from_log
        placed, reasons = sendable(turn, entry, self.target, behind, from_log=from_log)
        sticky = self._sticky(index) if self.skipped_before else None
        if prefix and echo and sticky not in _TAKEN_OUT and stays(reasons):
            if reasons:  # the provider itself drops what it cannot read
                self._record(index, Action.EXACT, reasons[0], match, thoughts=len(echo))
                return
        elif before_gap or (sticky is not None and (prefix or not echo)):
            placed, reasons = [], [sticky] if sticky else reasons or ["before a gap"]
        elif prefix and reasons:
            placed = []  # all blocks of an output, or none
        if placed and need is not _REQUIRED and self._over_limit(index):
            placed, reasons = [], [_OVER_LIMIT]
        if placed and reasons and self._lacks_signature(turn, need, placed):
            self._sign(index, turn, match, placed, reasons[0])
        elif placed:
            self._send(index, turn, match, entry, echo=echo, placed=placed, reasons=reasons)
        elif need is _REQUIRED and sticky not in _TAKEN_OUT and self._stands(echo, reasons):
            self._record(index, Action.EXACT, reasons[0], match, thoughts=len(echo))
        else:
            self._without(index, turn, match, need, reasons[0], drop=True, left=len(reasons))

    def _had_none(
        self, index: int, turn: Turn, match: TurnMatch, need: Need, echo: list[Thought]
    ) -> None:
        """Decide about a turn that was made without a thought: it lacks none."""
        refused = need is _REQUIRED and self.policy.demands_all
        if refused or self._sticky(index) == REFUSED:  # the provider does not take it without
            self._without(index, turn, match, need, REFUSED, drop=True)
        elif echo and not echo_is_blank(echo):
            self._record(index, Action.EXACT, CLIENTS_OWN, match, thoughts=len(echo))
        else:
            self._record(index, Action.ABSENT, "had none", match)

    def _stands(self, echo: Sequence[Thought], reasons: Iterable[str]) -> bool:
        """Whether the client brings a thought that is good there, and only the log's is not."""
        if echo_is_blank(echo) or not _ONLY_OURS.issuperset(reasons):
            return False
        reads, signed = self.policy.reads, self.policy.signed
        return all(t.carrier in reads and (t.sealed or not signed) for t in echo)

    def _send(
        self,
        index: int,
        turn: Turn,
        match: TurnMatch,
        entry: IndexEntry,
        *,
        echo: list[Thought],
        placed: list[PlacedThought],
        reasons: list[str],
    ) -> None:
        """Send the thoughts of a logged turn: put back, left as they came, or corrected."""
        if echo:
            placed = with_joined_signatures(turn, placed)
        enough = echo and self.policy.copies and echo_suffices(echo, placed, self.policy)
        anonymous = False
        if self.items:
            kept = self.path.from_log  # in the order that the provider knows
            reshaped = not kept and output_was_reshaped(turn, entry, placed)
            if reshaped:
                placed = without_item_ids(placed)
            anonymous = reshaped or bool(reasons) or has_own_item_ids(turn, entry)
        if echo and not reasons and (enough or echo_is_identical(turn, echo, placed)):
            action = Action.EXACT
            if anonymous or echo_is_respelled(echo, placed):
                self._revise(index, placed, anonymous=anonymous)
        else:
            action = Action.REPLACED if echo else _RESTORED
            self._revise(index, placed, anonymous=anonymous)
        reason = reasons[0] if reasons else match.reason
        self._record(index, action, reason, match, thoughts=len(placed), left=len(reasons))

    def _unknown(
        self, index: int, turn: Turn, match: TurnMatch, need: Need, echo: list[Thought]
    ) -> None:
        """Decide about an output whose turn is not in the log: only the client's own can go."""
        if not echo or echo_is_blank(echo):
            self._without(index, turn, match, need, match.reason)
            return
        placed = echoed_in_place(turn)
        if self._lacks_signature(turn, need, placed):
            self._sign(index, turn, match, placed, match.reason)
            return
        if all(t.carrier in self.policy.reads or t.carrier is Carrier.REFERENCE for t in echo):
            self._record(index, Action.EXACT, CLIENTS_OWN, match, thoughts=len(echo))
            return
        placed = render(thoughts_with_places(turn.output), turn, self.policy)
        if placed:
            self._revise(index, placed)
            self._record(index, Action.REPLACED, "renamed", match, thoughts=len(placed))
        else:
            self._without(index, turn, match, need, UNREADABLE, drop=True)

    def _lacks_signature(self, turn: Turn, need: Need, placed: Sequence[PlacedThought]) -> bool:
        """Whether a call must be signed, and what goes out with it is only readable."""
        if need is not _REQUIRED or not self.policy.lost or self.policy.reads[0] not in RIDING:
            return False
        signed = [p.place for p in placed if p.carrier is self.policy.reads[0]]
        return _first(turn) not in signed

    def _sign(
        self,
        index: int,
        turn: Turn,
        match: TurnMatch,
        placed: Sequence[PlacedThought],
        reason: str,
    ) -> None:
        """Send what is left of an output's thoughts, with a placeholder for its signature."""
        stand_in = PlacedThought(_first(turn), self.policy.reads[0], self.policy.lost)
        self._revise(index, [*placed, stand_in])
        self._record(index, Action.PLACEHOLDER, reason, match, thoughts=len(placed), left=1)

    def _forbid(self, index: int, echo: list[Thought], match: TurnMatch, need: Need) -> None:
        """Send nothing to a target that takes no thoughts."""
        if any(t.carrier is not Carrier.THINK for t in echo):
            self._revise(index, [])
            self._record(index, Action.DROPPED, need.value, match, left=len(echo))
        else:
            self._record(index, Action.ABSENT, need.value, match)

    def _without(
        self,
        index: int,
        turn: Turn,
        match: TurnMatch,
        need: Need,
        reason: str,
        *,
        drop: bool = False,
        left: int = 0,
    ) -> None:
        """Send this output without its thought: absent, as a placeholder, or with thinking off."""
        echo = echoed(turn)
        lost = match.entry.thoughts if match.entry is not None else ()
        action = Action.DROPPED if drop and (echo or lost) else Action.ABSENT
        if need is _REQUIRED and self.policy.lost:
            action = Action.PLACEHOLDER
            placed = [PlacedThought(_first(turn), self.policy.reads[0], self.policy.lost)]
            if not echo_stands_in(turn, echo, placed):
                self._revise(index, placed)
        else:
            if need is _REQUIRED and self.policy.off:
                name, value = self.policy.off
                self.fields[name] = value.encode()
            items = drop and self.items
            if (drop and echo) or items:
                self._revise(index, [], anonymous=items)
        if self._full_key(index) not in self.skipped_before:
            self.skipped[self._full_key(index)] = reason
        if (match.entry is None and not echo) or (match.reason == TIED and reason in UNMATCHED):
            reason = match.reason
        self._record(index, action, reason, match, left=left or (len(echo) if drop else 0))

    # -- what the target wants, and what was done before -----------------------------------------

    def _inside(self, index: int, turn: Turn) -> bool:
        """Whether an output is one of those that the target wants thoughts with."""
        match self.policy.scope:
            case Scope.ALL:
                return True
            case Scope.LOOP:
                return index >= self._loop
            case Scope.CALLS:
                return bool(turn.calls)
            case Scope.FIRST_CALL:
                return index >= self._loop and bool(turn.calls)

    def _counted_loop(self) -> int | None:
        """Where the running tool loop begins, if that makes a difference."""
        within, beyond = self.needs
        if within is beyond:
            return None
        counts = self.policy.scope in _LOOPS and {within, beyond} & _DECISIVE
        return self._loop + self.settled.turns if counts else None

    @cached_property
    def _loop(self) -> int:
        """The first turn of the running tool loop; it may be one of those that are settled."""
        settled = self.settled
        if not settled.turns:
            return loop_start(self.path.turns)
        asked = last_question(self.path.turns, 0)
        return settled.loop - settled.turns if asked is None else asked

    def _over_limit(self, index: int) -> bool:
        if self.limits.loop_only and index < self._loop:
            return True
        return self.limits.last is not None and index not in self._recent

    @cached_property
    def _recent(self) -> set[int]:
        last = self.limits.last
        outputs = [index for index, keys in enumerate(self.path.keys) if keys is not None]
        return set(outputs[max(0, len(outputs) - last) :]) if last else set()

    def _lost_phases(self, index: int) -> tuple[str, ...]:
        """Return the phases of an output's texts that the client lost, for their own provider."""
        if not self.policy.phases:
            return ()
        match = self.matches[index]
        entry = match.entry if match else None
        if entry is None or not entry.phases:
            return ()
        if entry.origin.provider != self.target.origin.provider:
            return ()
        texts = [part for part in self.path.turns[index].output if isinstance(part, Text)]
        if len(texts) != len(entry.phases):
            return ()
        lost = ["" if t.phase else phase for t, phase in zip(texts, entry.phases, strict=True)]
        return tuple(lost) if any(lost) else ()

    def _prefix(self, index: int) -> str:
        return self.path.prefixes[index] if index < len(self.path.prefixes) else ""

    def _sticky(self, index: int) -> str | None:
        """Return why this output went out without its thoughts before, if it did."""
        return self.skipped_before.get(self._full_key(index))

    def _full_key(self, index: int) -> str:
        keys = self.path.keys[index]
        return keys.full.hex() if keys else ""

    def _revise(
        self, index: int, placed: Sequence[PlacedThought], *, anonymous: bool = False
    ) -> None:
        self.revisions.append(
            Revision(
                turn=index,
                thoughts=tuple(placed),
                verbatim=True,
                anonymous=anonymous,
                unsealed=has_foreign_blob(self.path.turns[index], self.found, self.target),
                phases=self._lost_phases(index),
            )
        )

    def _record(
        self,
        index: int,
        action: Action,
        reason: str,
        match: TurnMatch,
        *,
        thoughts: int = 0,
        left: int = 0,
    ) -> None:
        self.decisions.append(
            ReplayDecision(
                turn=index + self.settled.turns,
                action=action,
                reason=reason,
                level=match.level,
                entry=match.entry.turn if match.entry else "",
                thoughts=thoughts,
                left=left,
            )
        )


def skipped_at(
    keys: Sequence[TurnKeys | None], matches: Sequence[TurnMatch | None], target: Target
) -> dict[str, str]:
    """Return what the requests of these turns to this target went out without."""
    before: dict[str, str] = {}
    there = target.origin
    for match in matches:
        if match is None or match.entry is None or not match.entry.skipped:
            continue
        origin = match.entry.origin
        if (origin.provider, origin.endpoint, origin.account) == (
            there.provider,
            there.endpoint,
            there.account,
        ) and {origin.model, origin.asked} & {there.model, there.asked}:
            skipped = match.entry.skipped
            if not target.policy.prefix and UNKNOWN in skipped.values():
                skipped = _without_late(skipped, match.entry, keys, matches)
            before |= skipped
    return before


def _without_late(
    skipped: Mapping[str, str],
    entry: IndexEntry,
    keys: Sequence[TurnKeys | None],
    matches: Sequence[TurnMatch | None],
) -> dict[str, str]:
    """Leave out the turns that had ended when they were not known: a store was behind.

    One that ended later, or in the same millisecond, is another one, which looks the same.
    """
    asked = time_of_id(entry.turn) or 0
    ended = {
        own.full.hex(): int(match.entry.at * 1000)
        for own, match in zip(keys, matches, strict=True)
        if own is not None and match is not None and match.entry is not None
    }
    return {
        key: why for key, why in skipped.items() if why != UNKNOWN or ended.get(key, asked) >= asked
    }


def _first(turn: Turn) -> Place:
    return Place("call", 0) if turn.calls else Place("text", 0)
