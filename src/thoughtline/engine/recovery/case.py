"""A refusal as evidence: what was sent, what the provider said about it, and what to try instead.

`Case` is gathered before a strategy looks at it, so that strategies are pure: the refusal's words
and the ids it names, the thoughts that went out with the index entries they came from, and what the
log knows of the ids. A `Correction` is one thing to try.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.dialects import splice
from thoughtline.dialects.base import Rewrite, Rewrites
from thoughtline.dialects.thoughts import make_thought, same_json
from thoughtline.engine.decision import Found, Overrides, RequestDecision
from thoughtline.engine.quirks import strengthened
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Carrier, Thought
from thoughtline.log.quirks import Quirk, Scope
from thoughtline.log.turns import Turn
from thoughtline.providers.policy import Policy
from thoughtline.replay.echo import thoughts_with_places
from thoughtline.replay.guard import Target
from thoughtline.replay.match import RequestPath

_ITEM = re.compile(r"\b(?:rs|fc|msg|ctc|cmp)_[A-Za-z0-9_-]+")
_MESSAGE = re.compile(r"messages\.(\d+)\.content(?:\.(\d+))?")


class SentOutput(Struct, frozen=True, kw_only=True):
    """One output of the request as it went out."""

    index: int  # position in the path
    key: str  # its full key
    turn: Turn  # as the client sent it
    entry: IndexEntry | None  # the turn it was taken for
    thoughts: tuple[Thought, ...]  # that went out with it


class Correction(Struct, frozen=True, kw_only=True):
    """One thing to try, and what it means when it helps."""

    quirk: Quirk | None = None  # about the endpoint: goes into the row, and is kept
    target: Target | None = None
    found: Found | None = None
    path: RequestPath | None = None
    overrides: Overrides | None = None
    in_full: bool = False  # with the turns that the request only named
    with_items: bool = False  # with the items that the request only named
    quarantine: Mapping[str, frozenset[int]] = {}  # turn → positions among its thoughts

    @property
    def drops(self) -> bool:
        """Whether thoughts that went out are left out now."""
        return bool(self.quarantine or (self.overrides and self.overrides.refused))


class Case(Struct, frozen=True, kw_only=True):
    """What is known about a refusal."""

    decision: RequestDecision  # what was refused
    words: str  # the refusal's text, as it came
    known: Mapping[str, IndexEntry] = {}  # what the log has for the ids it names
    continued: tuple[Turn, ...] = ()  # the turns of the response that the request continues

    @property
    def text(self) -> str:
        """The words, for matching."""
        return self.words.lower()

    @property
    def policy(self) -> Policy:
        """The row that the request went out by."""
        return self.decision.target.policy

    @property
    def overrides(self) -> Overrides:
        """The overrides that the request went out with."""
        return self.decision.overrides

    @property
    def rewrites(self) -> Rewrites:
        """The last edits that bodies of this dialect can be given."""
        return self.decision.dialect.rewrites

    @property
    def ids(self) -> list[str]:
        """The items it names, in order."""
        return named(self.words)

    @property
    def message(self) -> int | None:
        """The position of the message it names."""
        found = _MESSAGE.search(self.words)
        return int(found[1]) if found else None

    def sent(self) -> list[SentOutput]:
        """The outputs that went out, with their thoughts."""
        decision = self.decision
        entries = {entry.turn: entry for filed in decision.found.values() for entry in filed}
        revised = {revision.turn: revision for revision in decision.replay_plan.revisions}
        made: list[SentOutput] = []
        for replayed in decision.replay_plan.decisions:
            index = replayed.turn
            turn, keys = decision.path.turns[index], decision.path.keys[index]
            if revision := revised.get(index):
                thoughts = [_read(placed.carrier, placed.raw) for placed in revision.thoughts]
            else:
                thoughts = [echoed for echoed, _ in thoughts_with_places(turn.output)]
            made.append(
                SentOutput(
                    index=index,
                    key=keys.full.hex() if keys else "",
                    turn=turn,
                    entry=entries.get(replayed.entry),
                    thoughts=tuple(thoughts),
                )
            )
        return made

    # -- corrections -----------------------------------------------------------------------------

    def with_quirk(self, quirk: Quirk) -> Correction:
        """The same request by a policy row that has this quirk."""
        target = self.decision.target
        target = replace(target, policy=strengthened(target.policy, quirk))
        return Correction(quirk=quirk, target=target)

    def demanding(self, quirk: Quirk) -> Correction:
        """By a row that demands thoughts, also of outputs that had none if it has refused one."""
        only_calls = quirk.scope in (Scope.CALLS, Scope.FIRST_CALL)
        silent = any(
            sent.entry is not None and not sent.entry.thoughts and not sent.thoughts
            for sent in self.sent()
            if sent.turn.calls or not only_calls
        )
        return self.with_quirk(replace(quirk, demands_all=True) if silent else quirk)

    def with_field(self, name: str, raw: bytes | None, quirk: Quirk | None = None) -> Correction:
        """The same request with one top-level member set, or removed."""
        fields = {**self.overrides.fields, name: raw}
        return Correction(overrides=replace(self.overrides, fields=fields), quirk=quirk)

    def with_rewrite(self, rewrite: Rewrite, quirk: Quirk | None = None) -> Correction:
        """The same request with one more last edit of its body."""
        rewrites = (*self.overrides.rewrites, rewrite)
        return Correction(overrides=replace(self.overrides, rewrites=rewrites), quirk=quirk)

    def without(self, culprit: Callable[[SentOutput, Thought], bool]) -> Correction | None:
        """Without these thoughts, for good: those of the log in quarantine, the others refused."""
        gone: dict[str, frozenset[int]] = {}
        refused: set[str] = set()
        for output in self.sent():
            for out in output.thoughts:
                if not culprit(output, out):
                    continue
                at = positions(output.entry, out)
                if output.entry is not None and at:
                    gone[output.entry.turn] = gone.get(output.entry.turn, frozenset()) | at
                else:
                    refused.add(output.key)
        if not gone and not refused:
            return None
        overrides = replace(self.overrides, refused=self.overrides.refused | refused)
        found = quarantined(self.decision.found, gone)
        return Correction(found=found, overrides=overrides, quarantine=gone)

    def without_own(self, keys: Sequence[str]) -> Correction:
        """Without what the client brings at these outputs, and without their ids."""
        refused = self.overrides.refused | set(keys)
        return Correction(overrides=replace(self.overrides, refused=refused))


def named(words: str) -> list[str]:
    """The items that a text names, in order."""
    return list(dict.fromkeys(_ITEM.findall(words)))


def positions(entry: IndexEntry | None, out: Thought) -> frozenset[int]:
    """Where among a turn's thoughts this one stands; by its seals, its id, or its very words."""
    if entry is None:
        return frozenset()
    found = [
        position
        for position, kept in enumerate(entry.thoughts)
        if set(kept.seals) & set(out.seals)
        or (out.id and kept.id == out.id)
        or (kept.carrier is out.carrier and same_json(kept.raw, out.raw))
    ]
    return frozenset(found)


def quarantined(found: Found, gone: Mapping[str, frozenset[int]]) -> Found:
    """The index entries with these thoughts in quarantine."""
    if not gone:
        return found
    return {
        name: [
            replace(entry, quarantined=entry.quarantined | gone[entry.turn])
            if entry.turn in gone
            else entry
            for entry in filed
        ]
        for name, filed in found.items()
    }


def _read(carrier: Carrier, raw: str) -> Thought:
    return make_thought(carrier, splice.loads(raw.encode()), raw)
