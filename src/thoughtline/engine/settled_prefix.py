"""The beginning of a conversation that is settled, and a request that goes on from there.

A client sends the whole conversation with every request, and the next request begins with the bytes
of the last one. What was decided about all outputs but the last is decided for good, as long as
those bytes, the target and the index entries are the same. `SettledPrefix` is such a beginning, as
it came and as it went out (`settling` makes it, `prefix_cache` keeps it). A `Resumed` request is
read, looked up, decided and patched without it, and it is put in front of the result.

That gives what the whole walk gives, or else `Unsettled` is raised and the whole walk is made:
every check here is a condition under which an output's decision would be the same again.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.dialects import splice
from thoughtline.dialects.base import Dialect, Prefixes, Request
from thoughtline.dialects.splice import Edit
from thoughtline.engine.decision import Found, RequestDecision, path_of
from thoughtline.engine.normalise import DROP_BLOCK, Normalised
from thoughtline.engine.spoken_thoughts import suspected_turns
from thoughtline.errors import Unreadable
from thoughtline.log.decisions import MatchLevel
from thoughtline.log.index import IndexEntry
from thoughtline.log.keys import RollingKey
from thoughtline.log.quirks import Need
from thoughtline.replay.guard import Target
from thoughtline.replay.match import Matches, RequestPath
from thoughtline.replay.needs import needs
from thoughtline.replay.plan import NO_LIMITS, ReplayLimits, SettledTurns

TURN_SIZE = 600
"""Bytes that a settled turn costs beside its text and its index entries."""
_FULL = MatchLevel.FULL


class Whole(StrEnum):
    """Why the whole history of a request is walked."""

    OFF = "off"  # nothing is reused: the setting says so
    SHORT = "short"  # it is too short to be worth it
    NEW = "new"  # no settled beginning of it is known
    OTHER = "other"  # it is translated, or only its tokens are counted
    CHANGED = "changed"  # more is to be changed in it than thoughts
    TARGET = "target"  # it goes elsewhere, or by other rules
    SESSION = "session"  # the client names another one
    LOOP = "loop"  # a question of the user has begun a new tool loop, and something was lost
    INDEX = "index"  # what is known of the turns has changed
    MATCH = "match"  # what follows is not the turn that followed
    SKIPPED = "skipped"  # thoughts stay behind that went, or the other way round
    REFUSED = "refused"  # the provider refused it


class Unsettled(Exception):
    """A request cannot go on from a settled beginning: the whole walk is made."""

    def __init__(self, why: Whole) -> None:
        super().__init__(why.value)
        self.why = why


class SettledPrefix(Struct, frozen=True, kw_only=True, eq=False):
    """The beginning of a request that is decided for good, and under which conditions."""

    owner: tuple[str, str]  # who asked, and in which dialect
    body: bytes  # of the request
    start: int  # where the elements of its history begin
    end: int  # where those begin that are not settled
    sent: bytes  # the body that went out
    sent_start: int  # where the same elements begin in it
    sent_end: int
    cost: int  # of reading the settled elements, at most: see `limits`
    parts: int  # in them, at most
    # for which requests it holds
    tenant: str
    target: Target
    needs: tuple[Need, Need]
    hints: frozenset[str]  # digests of session ids that no other conversation shares
    loop: int | None  # where the running tool loop began, at most the end; None: it may move on
    aside: bool  # something was said that the log does not hold
    filed: Found  # under the full keys of its outputs and those of the seals that the client brings
    seal_keys: tuple[bytes, ...]  # those of the seals
    epoch: int | None  # of the store, as long as it is the same, so is what is filed
    skipped: Mapping[str, str]  # what had stayed behind when it was decided: full key → why
    full_keys: frozenset[str]  # of the settled outputs
    last: str  # the turn that the last settled output was taken for
    next: str  # the turn that the first output behind it was taken for
    # what the rest of a request goes on from
    turns: SettledTurns
    rolling_key: RollingKey
    prefix_state: Any  # see `Dialect.rolling_prefixes`
    entry_bytes: int  # about how much memory the index entries take

    __repr__ = object.__repr__  # nothing of what is said in it, wherever it is printed

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        sent = 0 if self.sent is self.body else len(self.sent)
        return len(self.body) + sent + self.entry_bytes + TURN_SIZE * self.turns.turns

    def stands(self, epoch: int | None) -> bool:
        """Whether what its outputs were taken for is as it was, by the epoch of the store."""
        return epoch is not None and epoch == self.epoch

    def check_entries(self, found: Found) -> None:
        """Raise `Unsettled` if the index entries have changed.

        A turn that is filed beside others by now, as another node's that was late, may be the one
        that the client's ids or its session point to.
        """
        if self.filed.items() <= found.items():
            return  # mostly it is the very same
        if any(tuple(found.get(key, ())) != tuple(filed) for key, filed in self.filed.items()):
            raise Unsettled(Whole.INDEX)


class Resumed(Struct, frozen=True, eq=False):
    """A request that goes on from a settled beginning; `text` is its body without that."""

    prefix: SettledPrefix
    body: bytes  # as the client sent it
    text: bytes

    __repr__ = object.__repr__

    def apply(self, edits: Sequence[Edit]) -> bytes:
        """The whole body with these edits of the text made."""
        prefix = self.prefix
        if not edits and prefix.sent is prefix.body:
            return self.body
        settled = memoryview(prefix.sent)[prefix.sent_start : prefix.sent_end]
        return splice.apply(self.text, [(prefix.start, prefix.start, settled), *edits])

    def original(self, request: Request) -> Request:
        """The request as the client sent it, but for the turns that are settled."""
        return replace(request, body=self.body)

    def whole(self, request: Request, dialect: Dialect) -> Request:
        """The request with all of its history read."""
        made = dialect.read(self.body)
        return replace(made, model=request.model, stream=request.stream)

    def check_request(
        self, normal: Normalised, tenant: str, target: Target, limits: ReplayLimits
    ) -> None:
        """Raise `Unsettled` where the request is not of the kind that the one before was."""
        prefix, request = self.prefix, normal.request
        if tenant != prefix.tenant or target != prefix.target or limits != NO_LIMITS:
            raise Unsettled(Whole.TARGET)
        changed = request.body is not self.text or request.previous_response
        if changed or normal.predecessor or normal.known_turns or not request.turns:
            raise Unsettled(Whole.CHANGED)

    def path(
        self, normal: Normalised, dialect: Dialect, target: Target, hints: Sequence[str]
    ) -> RequestPath:
        """The path of the turns behind the settled ones."""
        prefix, prefixes = self.prefix, Prefixes()
        try:
            splice.layout(self.text, dialect.history_member)
        except Unreadable:  # a key twice: the history may be another one
            raise Unsettled(Whole.CHANGED) from None
        if target.policy.prefix:
            bound = dialect.rolling_prefixes(normal.request, prefix.prefix_state)
            if bound is None:
                raise Unsettled(Whole.CHANGED)
            prefixes = bound
        path = path_of(
            normal.request,
            dialect=dialect,
            target=target,
            hints=hints,
            prefixes=prefixes,
            settled=prefix.turns.turns,
            after=prefix.rolling_key,
        )
        if needs(path, target.policy) != prefix.needs:
            raise Unsettled(Whole.TARGET)
        if prefix.hints != set(path.unique_hints):
            raise Unsettled(Whole.SESSION)
        return path

    def check_decision(self, decision: RequestDecision) -> None:
        """Raise `Unsettled` where the whole walk may have decided otherwise."""
        prefix, plan = self.prefix, decision.replay_plan
        within_output = decision.dialect.item_list and decision.path.turns[-1].output
        if decision.lookup_error or decision.unpatchable or within_output:
            raise Unsettled(Whole.CHANGED)
        if not keeps_history(decision) or suspected_turns(decision):
            raise Unsettled(Whole.CHANGED)
        first = first_known(plan.matches)
        if first is None or first.turn != prefix.next or first.parent != prefix.last:
            raise Unsettled(Whole.MATCH)
        if prefix.loop is not None and prefix.loop != at_most(plan.loop, prefix.turns.turns):
            raise Unsettled(Whole.LOOP)
        if plan.fields or plan.gap >= 0 or DROP_BLOCK in plan.skipped_before:
            raise Unsettled(Whole.SKIPPED)
        if plan.skipped_before != prefix.skipped:
            others = plan.skipped_before.items() ^ prefix.skipped.items()
            if any(key in prefix.full_keys for key, _ in others):
                raise Unsettled(Whole.SKIPPED)


def at_most(loop: int | None, most: int) -> int | None:
    """The tool loop's beginning, clamped to `most`."""
    return None if loop is None else min(loop, most)


def keeps_history(decision: RequestDecision) -> bool:
    """Whether no last edit of the body reaches into its history."""
    harmless = decision.dialect.rewrites.drop_clear_thinking
    return all(rewrite is harmless for rewrite in decision.overrides.rewrites)


def first_known(matches: Matches) -> IndexEntry | None:
    """The turn of the first output; None unless all were recognised, with all before them."""
    first = None
    for match in reversed(matches.turns if matches.at_once else ()):
        if match is not None:
            if match.level is not _FULL:
                return None
            first = match.entry
    return first
