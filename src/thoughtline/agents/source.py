"""A request folded from the log: which turns, which words, which thoughts.

`engine.history` makes a history of a path of the log; `LogSource` hands it to the engine, where
every turn is certain because the log itself names it, and has the dialect write the request. The
same log and the same template give the same bytes.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence

from msgspec.structs import replace

from thoughtline.dialects import splice
from thoughtline.dialects.base import Request
from thoughtline.engine.caller import Incoming
from thoughtline.engine.decision import (
    NO_OVERRIDES,
    Composed,
    Fields,
    Found,
    Overrides,
    RequestDecision,
)
from thoughtline.engine.history import history_for, left_behind, with_thoughts, without_thoughts
from thoughtline.engine.normalise import Normalised, quirk_fields, quirk_rewrites
from thoughtline.engine.request_template import RequestTemplate
from thoughtline.log.events import Outcome, Quarantined
from thoughtline.log.index import index_entry
from thoughtline.log.parts import Origin
from thoughtline.log.quirks import Quirk
from thoughtline.log.turns import Turn
from thoughtline.replay.match import RequestPath, request_path
from thoughtline.replay.plan import ReplayPlan

Note = Callable[[Sequence[Quarantined]], Awaitable[None]]
"""Writes into the session which thoughts were refused."""


class LogSource:
    """Writes a request from turns of the log, and looks them up in the log itself."""

    def __init__(
        self,
        template: RequestTemplate,
        turns: Sequence[Turn],
        note: Note,
        *,
        in_full: bool = False,
        pending: bool = False,
    ) -> None:
        """`pending`: results are to come, so that there is no body to be written yet."""
        self.template = template
        self._turns = turns  # the history; the last one is to be answered
        self._note = note
        self._pending = pending
        self._previous = "" if in_full else _previous(turns, template)

    @property
    def written(self) -> frozenset[str]:
        """The request params that the dialect writes by itself."""
        return frozenset(splice.members(self.template.write(()))) - self.template.options.keys()

    async def look_up(self, path: RequestPath, known_turns: Collection[str]) -> tuple[Found, str]:
        """The turns themselves, each under its own full key."""
        keyed = [pair for pair in zip(self._turns, path.keys, strict=True) if pair[1]]
        full_keys = {turn.id: keys.full.hex() for turn, keys in keyed if keys}
        return {
            keys.full: [index_entry(turn, keys, skipped=left_behind(turn, full_keys))]
            for turn, keys in keyed
            if keys
        }, ""

    def compose(
        self, request: Request, path: RequestPath, plan: ReplayPlan, fields: Fields
    ) -> Composed:
        if self._pending:
            return Composed(b"")
        placed = {revision.turn: revision.thoughts for revision in plan.revisions}
        turns = [
            replace(turn, output=with_thoughts(turn.output, placed.get(index, ())))
            for index, turn in enumerate(path.turns)
        ]
        return Composed(self.write(turns, fields))

    def write(self, turns: Sequence[Turn], fields: Fields | None = None) -> bytes:
        """The body with these turns, as far as the server does not remember them."""
        fields = dict(fields or {})
        if self.template.stateful:
            fields.setdefault("store", b"true")
        if self._previous:
            fields["previous_response_id"] = splice.dumps(self._previous)
        return self.template.write(turns[-1:] if self._previous else turns, fields)

    def params(self, request: Request) -> bytes:
        return request.body or self.template.params

    def readable(self, decision: RequestDecision) -> Request:
        return self.template.read(self.write(decision.path.turns))

    def joined(self, decision: RequestDecision, groups: Sequence[range]) -> None:
        return None  # the log knows what was one output

    async def continued(self, decision: RequestDecision) -> tuple[Turn, ...]:
        return decision.path.turns[:-1] if self._previous else ()

    async def quarantine(self, session: str, bodies: Sequence[Quarantined]) -> None:
        await self._note(bodies)  # a fork says it of the turns before it, too

    async def with_items(self, decision: RequestDecision) -> RequestDecision:
        return decision  # it names none

    async def in_full(self, decision: RequestDecision, turns: Sequence[Turn]) -> RequestDecision:
        source = LogSource(self.template, self._turns, self._note, in_full=True)
        request = self.template.read(source.write(decision.path.turns))
        return decision.revise(source=source, request=request)


def incoming(
    turns: Sequence[Turn],
    template: RequestTemplate,
    *,
    quirk: Quirk | None,
    tenant: str,
    session: str,
    turn: str,
    note: Note,
    pending: bool = False,
) -> Incoming:
    """What goes on from a path of the log; its last turn has the new input, but what is pending."""
    target = template.target
    if quirk is not None and quirk.no_store:
        template = replace(template, stateful=False)
    history = history_for(turns, target.origin)
    visible = [replace(turn, output=without_thoughts(turn.output)) for turn in history]
    source = LogSource(template, history, note, pending=pending)
    request = template.unwritten(visible)
    path = request_path(
        visible,
        tools=request.tools,
        thinking=request.thinking,
        prefixes=template.prefixes(visible, len(visible)),
    )
    return Incoming(
        request=request,
        dialect=template.dialect,
        target=target,
        tenant=tenant,
        session=session,
        turn=turn,
        source=source,
        path=path,
        normalised=Normalised(
            request=request, overrides=NO_OVERRIDES if pending else _overrides(source, quirk)
        ),
    )


def _overrides(source: LogSource, quirk: Quirk | None) -> Overrides:
    """What is changed at the end; of the body, only the members beside the history matter."""
    template, known = source.template, quirk or Quirk()
    body = template.params if quirk is None else source.write(())
    request = replace(template.unwritten(()), body=body)
    fields = quirk_fields(request, template.dialect, known)
    if known.no_encrypted_reasoning and "include" not in template.options:
        fields["include"] = None
    rewrites = quirk_rewrites(request, template.dialect, template.target.policy, known)
    return Overrides(fields=fields, rewrites=rewrites)


def _previous(turns: Sequence[Turn], template: RequestTemplate) -> str:
    """The response that the server remembers everything up to, if there is one."""
    if not template.stateful or len(turns) < 2:
        return ""
    last, there = turns[-2], template.target.origin
    origin = last.target or Origin()
    same = (origin.dialect, origin.provider, origin.endpoint, origin.account) == (
        there.dialect,
        there.provider,
        there.endpoint,
        there.account,
    )
    return last.response if same and last.outcome is Outcome.COMPLETED else ""
