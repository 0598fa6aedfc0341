"""What goes upstream for one request, decided once: frozen.

`decide` takes a request, the history it stands on and what was found for it, asks `replay` which
thoughts go back, and makes the body. A `RequestDecision` never changes. Recovery makes another one
from it (`revise`): for another target, with other index entries, with other overrides.

How the body is made is the `Source`'s business: a client's own body is patched (`ClientSource`); a
request that is folded from the log, or told for another dialect, is written (`request_template`).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.dialects.base import Dialect, Prefixes, Request, Rewrite
from thoughtline.dialects.splice import Edit
from thoughtline.engine.legal_values import legal_fields
from thoughtline.engine.switches import switch_fields
from thoughtline.errors import Unreadable
from thoughtline.log import keys as k
from thoughtline.log.decisions import Action
from thoughtline.log.events import Quarantined
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Carrier
from thoughtline.log.quirks import Need
from thoughtline.log.turns import Turn
from thoughtline.replay.decide import plan_replay
from thoughtline.replay.guard import LostThought, Target
from thoughtline.replay.match import NO_HINTS, RequestPath, hint_digests
from thoughtline.replay.plan import (
    NO_LIMITS,
    NOTHING_SETTLED,
    ReplayLimits,
    ReplayPlan,
    SettledTurns,
    without_thoughts,
)

Found = Mapping[bytes, Sequence[IndexEntry]]
Fields = Mapping[str, bytes | None]
"""Top-level members of a body to set, or to remove (None)."""


class Overrides(Struct, frozen=True, kw_only=True):
    """What changes in a request beside its thoughts."""

    fields: Fields = {}
    headers: Mapping[str, str] = {}  # to be added to the client's own
    rewrites: tuple[Rewrite, ...] = ()
    refused: frozenset[str] = frozenset()  # full keys of outputs whose own thoughts were refused
    noted: Mapping[str, str] = {}  # kept with the turn, for the next request of the conversation


NO_OVERRIDES = Overrides()
NO_PREFIXES = Prefixes()


class Predecessor(Struct, frozen=True):
    """The turns that a request continues by naming a response, without repeating them."""

    entry: IndexEntry
    turns: tuple[Turn, ...]


class Composed(Struct, frozen=True):
    """A body, and the edits of a client's own by which it was made, if it was."""

    body: bytes
    edits: Sequence[Edit] = ()


class Source(Protocol):
    """Where a request comes from: how its history is looked up, and how its body is made."""

    @property
    def written(self) -> frozenset[str]:
        """Names of the request params that the program, and not its user, put into the body."""

    async def look_up(self, path: RequestPath, known_turns: Collection[str]) -> tuple[Found, str]:
        """The index entries for a path, and why they could not be looked up, if so."""

    def compose(
        self, request: Request, path: RequestPath, plan: ReplayPlan, fields: Fields
    ) -> Composed:
        """The body as planned, with these top-level members set or removed."""

    def params(self, request: Request) -> bytes:
        """A JSON object with the members that say what is asked, perhaps with others."""

    def readable(self, decision: "RequestDecision") -> Request:
        """The request without thoughts as its dialect reads it, also where no body was needed."""

    def joined(
        self, decision: "RequestDecision", groups: Sequence[range]
    ) -> "tuple[Source, Request, RequestPath] | None":
        """The same history with the outputs of each group as one; None: they cannot be one."""

    async def continued(self, decision: "RequestDecision") -> tuple[Turn, ...]:
        """The turns before a request that names a response instead of repeating them."""

    async def quarantine(self, session: str, bodies: Sequence[Quarantined]) -> None:
        """Write down which thoughts of a session were refused; raises `StoreError`."""

    async def with_items(self, decision: "RequestDecision") -> "RequestDecision":
        """The same request with the items that it only names written out, if they are known."""

    async def in_full(
        self, decision: "RequestDecision", turns: Sequence[Turn]
    ) -> "RequestDecision":
        """The same request with these turns before its own, and no previous response."""


class RequestDecision(Struct, frozen=True, eq=False, kw_only=True):
    """What goes upstream, and why."""

    source: Source
    request: Request  # in the provider's dialect, before thoughts are put in; perhaps unwritten
    original: Request  # as the client sent it
    dialect: Dialect
    target: Target
    path: RequestPath
    found: Found
    limits: ReplayLimits = NO_LIMITS
    overrides: Overrides = NO_OVERRIDES
    predecessor: Predecessor | None = None
    lookup_error: str = ""  # why nothing could be looked up, if so
    settled: SettledTurns = NOTHING_SETTLED  # that stand before those of the request
    # what follows from the above: see `decide`
    replay_plan: ReplayPlan = ReplayPlan(decisions=())
    body: bytes = b""
    edits: Sequence[Edit] | None = None  # that made the body of the request's; None: more than they
    adjusted: tuple[str, ...] = ()  # values in place of which the endpoint takes others
    unpatchable: str = ""  # why the body cannot be changed, if it should be

    __repr__ = object.__repr__  # nothing of what is said in it, wherever it is printed

    @property
    def altered(self) -> bool:
        """Whether anything but the client's own bytes goes out."""
        return self.body is not self.original.body

    @property
    def stands_in(self) -> bool:
        """Whether a placeholder goes out in the place of a thought, or thinking is switched off."""
        made = self.replay_plan
        return bool(made.fields) or made.count(Action.PLACEHOLDER) > 0

    def with_body(self) -> "RequestDecision":
        """The same, with a request that has a body, which its readers need."""
        if self.request.body:
            return self
        request = self.source.readable(self)
        return replace(self, request=request, original=request)

    def revise(self, **changes: Any) -> "RequestDecision":
        """Decide again: with another target, other entries, another path, request or overrides."""
        return decide(replace(self, **changes))


def decide(asked: RequestDecision) -> RequestDecision:
    """Decide which thoughts go back, and make the body: all that follows from what is asked."""
    overrides, lookup_error = asked.overrides, asked.lookup_error
    plan = plan_replay(
        asked.path,
        asked.found,
        asked.target,
        asked.limits,
        overrides.refused,
        settled=asked.settled,
    )
    if plan.fields:
        plan = _with_thinking_off(asked, plan)
    if asked.predecessor is not None or overrides.noted:
        parent = plan.parent or (asked.predecessor.entry if asked.predecessor else None)
        plan = replace(plan, parent=parent, skipped={**plan.skipped, **overrides.noted})
    unpatchable, policy = "", asked.target.policy
    adjusted: tuple[str, ...] = ()
    edits: Sequence[Edit] | None = None
    try:
        fields = {**plan.fields, **overrides.fields}
        if policy.asks and not plan.fields and asked.path.thinking is not False:
            fields |= switch_fields(asked.source.params(asked.request), policy.asks, fields)
        if policy.legal or policy.moves:  # also of what the dialect itself writes
            readable = asked.with_body().request.body
            fields, adjusted = legal_fields(readable, fields, policy.legal, policy.moves)
        composed = asked.source.compose(asked.request, asked.path, plan, fields)
        body = composed.body
        for rewrite in overrides.rewrites:
            body = rewrite(body)
        edits = composed.edits if body is composed.body else None
    except Unreadable as error:  # a key twice: which one counts is not for us to say
        if not asked.request.body:
            raise
        body = asked.request.body
        unpatchable = lookup_error = str(error)
    return replace(
        asked,
        lookup_error=lookup_error,
        replay_plan=plan,
        body=body,
        edits=edits,
        unpatchable=unpatchable,
        adjusted=adjusted,
    )


def _with_thinking_off(asked: RequestDecision, plan: ReplayPlan) -> ReplayPlan:
    """The plan of a request that lacks a thought which its target demands."""
    target = asked.target
    if target.lost_thought is LostThought.FORWARD:
        return replace(plan, fields={})
    if Carrier.BLOCK not in target.policy.reads:
        return plan
    # With thinking switched off this API takes no thought in the message it goes on from.
    without = replace(target, policy=replace(target.policy, need=Need.FORBIDDEN))
    refused = asked.overrides.refused
    return without_thoughts(
        plan, plan_replay(asked.path, asked.found, without, asked.limits, refused)
    )


def path_of(
    request: Request,
    *,
    dialect: Dialect,
    target: Target,
    hints: Sequence[str] = (),
    predecessor: Predecessor | None = None,
    prefixes: Prefixes | None = None,
    settled: int = 0,
    after: k.RollingKey | None = None,
) -> RequestPath:
    """The path of a client's request: its turns with their keys.

    `settled` turns stand before them: `after` is the rolling key there, and `prefixes` go on.
    """
    if prefixes is None:
        made = dialect.rolling_prefixes(request) if target.policy.prefix else None
        prefixes = made or NO_PREFIXES
    keys, rolling_key = k.rolling_keys(request.turns, after=after)
    if predecessor is not None:
        rolling_key = k.rolling_keys([*predecessor.turns, *request.turns])[1]
    named = (*request.hints, *hints) if hints else request.hints
    digests, unique = hint_digests(named, request.shared_hint) if named else NO_HINTS
    return RequestPath(
        turns=request.turns,
        keys=tuple(keys),
        rolling_key=rolling_key,
        tools=request.tools,
        thinking=request.thinking,
        hints=digests,
        unique_hints=unique,
        prefixes=prefixes.digests,
        previous=request.previous_response,
        target=target.origin,
        settled=settled,
        prefix_states=prefixes.states,
    )
