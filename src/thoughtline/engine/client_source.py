"""A client's own request: looked up in the store, and its body patched."""

from collections.abc import Collection, Sequence
from functools import partial

from msgspec.structs import replace

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.dialects.base import Dialect, Request
from thoughtline.dialects.joined_outputs import with_joined_outputs
from thoughtline.engine.decision import (
    Composed,
    Fields,
    Found,
    RequestDecision,
    Source,
    path_of,
)
from thoughtline.engine.offload import run_for
from thoughtline.engine.parted_calls import regrouped
from thoughtline.engine.server_state import completed, expanded, path_to, recall
from thoughtline.engine.settled_prefix import Resumed, SettledPrefix
from thoughtline.errors import StoreError
from thoughtline.log import keys as k
from thoughtline.log.events import Quarantined, draft
from thoughtline.log.turns import Turn
from thoughtline.replay.match import RequestPath, undecided_key
from thoughtline.replay.plan import ReplayPlan
from thoughtline.stores.base import Batch, Store


class ClientSource:
    """Looks turns up in the store, and patches the client's own body."""

    def __init__(
        self,
        store: Store,
        tenant: str,
        clock: Clock,
        dialect: Dialect,
        resumed: Resumed | None = None,
        *,
        settles: bool = False,  # whether the beginning of the body may be settled afterwards
    ) -> None:
        self._store = store
        self._resumed = resumed  # where the beginning of the body is settled
        self._dialect = dialect
        self._tenant = tenant
        self._clock = clock
        self._settles = settles
        self.epoch: int | None = None  # of the store, before the last look-up

    @property
    def written(self) -> frozenset[str]:
        """The members of the body that are ours: none, it is the client's own."""
        return frozenset()

    async def look_up(self, path: RequestPath, known_turns: Collection[str]) -> tuple[Found, str]:
        """The index entries of a path; where a turn is known to be in it, no other is meant.

        A store that is down never stops a request: what could not be looked up counts as not found.
        """
        resumed = self._resumed
        keys = path.lookup_keys()
        if self._settles:
            self.epoch = self._store.epoch()
        try:
            if resumed is None:
                found = await self._store.find(self._tenant, keys)
            else:
                found = await self._find_behind(resumed.prefix, keys)
            if not known_turns and _each_once(path, found):
                return found, ""  # the usual case
            unfound = [
                index
                for index, keys in enumerate(path.keys)
                if keys is not None and keys.full not in found
            ]
        except StoreError as error:
            return {}, str(error)
        trouble = self._store.trouble if unfound else ""
        if known_turns:
            found = {
                key: [entry for entry in entries if entry.turn in known_turns] or entries
                for key, entries in found.items()
            }
        key = undecided_key(path, found)
        return (found if key is None else await self._with_continued(found, key)), trouble

    async def _find_behind(self, prefix: SettledPrefix, keys: list[bytes]) -> Found:
        """Return what is filed under keys behind a settled beginning, and under those in it.

        What its outputs were taken for is asked for again only where it may have changed.
        """
        find = partial(self._store.find, self._tenant)
        if prefix.stands(self.epoch):
            found = await find([*keys, *prefix.seal_keys])
            if prefix.stands(self._store.epoch()) and keys:
                found = {**prefix.filed, **found}
                if prefix.seal_keys:
                    prefix.check_entries(found)
                return found
        found = await find([*keys, *prefix.filed])
        prefix.check_entries(found)
        return found

    async def _with_continued(self, found: Found, key: bytes) -> Found:
        """What was found, the entries under this key with how far they were continued."""
        entries = found[key]
        try:
            depths = await self._store.continued(self._tenant, [entry.turn for entry in entries])
        except StoreError:
            return found  # a tie stays a tie
        told = [replace(entry, continued=depths.get(entry.turn, 0)) for entry in entries]
        return {**found, key: told}

    def compose(
        self, request: Request, path: RequestPath, plan: ReplayPlan, fields: Fields
    ) -> Composed:
        edits = self._dialect.edits(request, plan.revisions, fields)
        if self._resumed is not None:
            return Composed(self._resumed.apply(edits), edits)
        return Composed(splice.apply(request.body, edits), edits)

    def params(self, request: Request) -> bytes:
        return request.body

    def readable(self, decision: RequestDecision) -> Request:
        return decision.request

    def joined(
        self, decision: RequestDecision, groups: Sequence[range]
    ) -> tuple[Source, Request, RequestPath] | None:
        dialect, asked = decision.dialect, decision.request
        if dialect.item_list:
            request = regrouped(asked, groups)
        elif body := with_joined_outputs(dialect, asked, groups):
            request = replace(dialect.read(body), model=asked.model, stream=asked.stream)
        else:
            return None
        path = path_of(
            request, dialect=dialect, target=decision.target, predecessor=decision.predecessor
        )
        hints, unique = decision.path.hints, decision.path.unique_hints
        return self, request, replace(path, hints=hints, unique_hints=unique)

    async def continued(self, decision: RequestDecision) -> tuple[Turn, ...]:
        if decision.predecessor is not None:
            return decision.predecessor.turns
        if not decision.request.previous_response:
            return ()
        name = k.reference_key("response", decision.request.previous_response)
        entry = completed(decision.found.get(name, ()), decision.target.origin.endpoint)
        return await path_to(self._store, entry) if entry else ()

    async def quarantine(self, session: str, bodies: Sequence[Quarantined]) -> None:
        clock = self._clock
        drafts = tuple(
            draft(body, id=clock.new_id(), parent=body.turn, at=clock.wall()) for body in bodies
        )
        id = drafts[0].id if drafts else ""
        await self._store.append(Batch(id=id, session=session, tenant=self._tenant, drafts=drafts))

    async def with_items(self, decision: RequestDecision) -> RequestDecision:
        request, dialect = decision.request, decision.dialect
        endpoint = decision.target.origin.endpoint
        recalled = await recall(
            request, dialect, self._tenant, self._store, remembered=False, endpoint=endpoint
        )
        if recalled.request is request:
            return decision
        return await self._revised(decision, recalled.request, recalled.known_turns)

    async def in_full(self, decision: RequestDecision, turns: Sequence[Turn]) -> RequestDecision:
        body = decision.request.body
        writing = partial(expanded, decision.request, decision.dialect, turns)
        request = await run_for(body, writing)
        return await self._revised(decision, request, [turn.id for turn in turns])

    async def _revised(
        self, decision: RequestDecision, request: Request, known_turns: Collection[str]
    ) -> RequestDecision:
        """Decide again about another request, without a predecessor."""
        finding = partial(path_of, request, dialect=decision.dialect, target=decision.target)
        path = await run_for(request.body, finding)
        path = replace(path, hints=decision.path.hints, unique_hints=decision.path.unique_hints)
        found, error = await self.look_up(path, known_turns)
        revising = partial(
            decision.revise,
            request=request,
            path=path,
            found=found,
            lookup_error=error,
            predecessor=None,
        )
        return await run_for(request.body, revising)


def _each_once(path: RequestPath, found: Found) -> bool:
    """Whether exactly one turn is filed under the full key of each output."""
    for keys in path.keys:  # noqa: SIM110 (a generator costs twice as much)
        if keys is not None and len(found.get(keys.full, ())) != 1:
            return False
    return True
