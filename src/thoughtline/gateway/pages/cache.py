"""The cache API: which thoughts can be put back, and how to clear or erase them.

`GET /api/cache/reasoning` gives statistics and entries; the text of thoughts only when it is asked
for, and that is logged. `DELETE /api/cache/reasoning` clears entries: what is cleared is not put
back any more, and stays in the log. `DELETE /api/log/reasoning` erases thoughts from the log, too,
and `DELETE /api/tenants/{tenant}` deletes all sessions of a tenant. What takes long goes on in the
background, see `/api/deletions`.
"""

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from thoughtline.clock import Clock
from thoughtline.gateway.deletions import Deletion, Deletions
from thoughtline.gateway.failed_requests import erase_failed_requests
from thoughtline.gateway.pages.page import (
    ANONYMOUS,
    NOT_FOUND,
    Json,
    PageError,
    PageResponse,
    client_address,
    integer,
    page,
    required,
    row_limit,
    segment,
    string,
    tenant_named,
)
from thoughtline.gateway.telemetry import Telemetry
from thoughtline.gateway.upstream_entries import UpstreamEntries
from thoughtline.log.index import readable
from thoughtline.stores.base import (
    ALL_ENTRIES,
    EntryCount,
    EntryFilter,
    Progress,
    StoreStats,
    ThoughtEntry,
)
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.deletions import ERASE, FORGET, PURGE, tell_deletion

_FILTERS = (
    string("provider", "Only entries of this provider: a policy's or an upstream's name."),
    string("model", "Only entries of this model, as it was asked for."),
    string("toolCallId", "Only the entries of tool calls with this id."),
    string("tenant", "Only entries of this tenant."),
    string("session", "Only entries of this session."),
    string("turn", "Only entries of this turn."),
)
_CONFIRM = required(
    string(
        "confirm",
        "`erase`: what is erased from the log cannot be brought back.",
        enum=["erase"],
        expected="erase",
    ),
    "this erases thoughts from the log for good, those of sessions made by library or command line "
    "included; say `confirm=erase`, or clear `/api/cache/reasoning`, which leaves the log alone",
)
_IN_BACKGROUND = {
    202: PageResponse("It goes on; ask the page that `location` names how far it is.", (Deletion,))
}
_PAGING = (
    row_limit("Entries on a page; clamped to 1..200."),
    string(
        "cursor",
        "The `nextCursor` of the page before.",
        pattern=r"^[0-9]{1,18}\.[0-9]{1,9}$",
        expected="the `nextCursor` of the page before",
    ),
    integer("offset", "Entries to leave out first.", 0, expected="0 or more", default=0),
    string(
        "include",
        "`reasoning`: show thoughts, which is logged.",
        enum=["reasoning"],
        expected="reasoning, or nothing",
    ),
)


class Share(Struct, frozen=True, kw_only=True):
    """How much of the cache something takes."""

    entries: int
    chars: int


class CacheStats(Struct, frozen=True, kw_only=True, rename="camel"):
    """How much is remembered, and how look-ups went since the start or the last reset."""

    memory_entries: int
    db_entries: int
    total_entries: int
    listed_entries: int
    total_chars: int
    hits: int
    misses: int
    replays: int
    replay_rate: str
    by_provider: dict[str, Share]
    by_model: dict[str, Share]
    oldest_entry: str | None
    newest_entry: str | None


class CacheEntry(Struct, frozen=True, kw_only=True, rename="camel"):
    """One remembered turn, under one of its tool calls."""

    tool_call_id: str | None  # null: a turn without calls, or with calls that have no ids
    provider: str
    upstream: str | None  # its name in the settings; null where none fits now, or several do
    model: str
    reasoning: str | None  # null unless it was asked for with `include=reasoning`
    char_count: int
    created_at: str
    expires_at: str | None  # null: never; moves on while the conversation is used
    turn: str
    session: str
    tenant: str
    outcome: str


class CachePage(Struct, frozen=True, kw_only=True, rename="camel"):
    """Statistics and one page of entries, the newest first."""

    stats: CacheStats
    entries: list[CacheEntry]
    next_cursor: str | None


class Cleared(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many entries were cleared."""

    cleared: int
    upstreams: tuple[str, ...] = ()  # of these, where `provider` cannot be told from others


class Erased(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many thoughts were erased from the log."""

    erased: int
    upstreams: tuple[str, ...] = ()  # of these, where `provider` cannot be told from others


class Purged(Struct, frozen=True, kw_only=True):
    """How many sessions were deleted."""

    purged: int


class DeletionList(Struct, frozen=True, kw_only=True):
    """Deletions that run and the last ones that are over, the newest first."""

    deletions: list[Deletion]


class CachePages:
    """Serves the cache API to the administrator."""

    def __init__(
        self,
        store: CachedStore,
        telemetry: Telemetry,
        deletions: Deletions,
        clock: Clock,
        *,
        upstreams: UpstreamEntries,
        retention: float = 0.0,
    ) -> None:
        self._store = store
        self._telemetry = telemetry
        self._deletions = deletions
        self._clock = clock
        self._retention = retention
        self._upstreams = upstreams

    @page(
        "/api/cache/reasoning",
        response="A page.",
        parameters=[*_FILTERS, *_PAGING],
    )
    async def show(self, request: Request, query: dict[str, Any]) -> CachePage:
        """What is remembered: statistics, and entries, the newest first."""
        limit, thoughts = query["limit"], query["include"] is not None
        found = await self._store.entries(
            self._filter(query),
            limit=limit + 1,  # one more than is shown says whether there is a next page
            after=_cursor(query["cursor"]),
            offset=query["offset"],
            thoughts=thoughts,
        )
        entries, more = found[:limit], len(found) > limit
        if thoughts:
            self._telemetry.log.info(
                "thoughts_shown",
                peer=client_address(request.scope),
                turns=sorted({entry.turn for entry in entries}),
            )
        live = [entry for entry in entries if not self._expired(entry)]
        return CachePage(
            stats=self._stats(await self._store.stats(sessions=False)),
            entries=[self._entry(entry, thoughts=thoughts) for entry in live],
            next_cursor="{}.{}".format(*entries[-1].position) if more else None,
        )

    @page(
        "/api/cache/reasoning",
        method="DELETE",
        response="It is cleared.",
        parameters=_FILTERS,
        errors=_IN_BACKGROUND,
    )
    async def clear(self, request: Request, query: dict[str, Any]) -> Cleared | Response:
        """Clear entries, which are then not put back any more; the log keeps the thoughts."""
        which = await self._unambiguous(self._filter(query))
        alike = self._upstreams.alike(query["provider"])

        async def delete(progress: Progress) -> int:
            cleared = await self._store.forget(which, progress=progress)
            if cleared:
                await tell_deletion(self._store, self._clock, FORGET, which)
            if which == ALL_ENTRIES:
                self._telemetry.reset()
            self._log("cleared", request, entries=cleared, **_named(alike))
            return cleared

        done = await self._deletions.run("cache", delete, **_named(alike))
        return _accepted(done) or Cleared(cleared=done.deleted or 0, upstreams=alike)

    @page(
        "/api/log/reasoning",
        method="DELETE",
        response="It is erased.",
        parameters=[*_FILTERS, _CONFIRM],
        errors=_IN_BACKGROUND,
    )
    async def erase(self, request: Request, query: dict[str, Any]) -> Erased | Response:
        """Erase thoughts from the log, for good; what was said beside them stays."""
        which = await self._unambiguous(self._filter(query))
        alike = self._upstreams.alike(query["provider"])

        async def delete(progress: Progress) -> int:
            erased = await self._store.erase(which, progress=progress)
            if erased:
                await tell_deletion(self._store, self._clock, ERASE, which)
            self._log("erased", request, thoughts=erased, **_named(alike))
            return erased

        done = await self._deletions.run("log", delete, **_named(alike))
        return _accepted(done) or Erased(erased=done.deleted or 0, upstreams=alike)

    @page(
        "/api/tenants/{tenant}",
        method="DELETE",
        response="It is deleted.",
        parameters=[segment("tenant", "As entries name it.")],
        errors=_IN_BACKGROUND,
    )
    async def purge(self, request: Request, _: dict[str, Any]) -> Purged | Response:
        """Delete everything of a tenant."""
        tenant = tenant_named(request.path_params["tenant"])

        async def delete(progress: Progress) -> int:
            purged = await self._store.purge(tenant=tenant, progress=progress)
            await erase_failed_requests(self._store)  # a refusal may quote what the tenant said
            await tell_deletion(self._store, self._clock, PURGE, EntryFilter(tenant=tenant))
            self._log("purged", request, tenant=tenant, sessions=purged)
            return purged

        done = await self._deletions.run("tenant", delete, tenant=tenant)
        return _accepted(done) or Purged(purged=done.deleted or 0)

    @page("/api/deletions", response="They.")
    async def deletions(self, _: Request, __: dict[str, Any]) -> DeletionList:
        """Deletions that run, and the last ones that are over."""
        return DeletionList(deletions=self._deletions.known)

    @page(
        "/api/deletions/{id}",
        parameters=[segment("id", "As the answer to the deletion names it.")],
        errors=NOT_FOUND,
    )
    async def deletion(self, request: Request, _: dict[str, Any]) -> Deletion:
        """One deletion, and how far it is."""
        id = request.path_params["id"]
        found = self._deletions.find(id)
        if found is None:
            raise PageError(f"there is no deletion {id[:80]!r}", "not_found", 404)
        return found

    def _log(self, event: str, request: Request, **said: Any) -> None:
        self._telemetry.log.info(event, peer=client_address(request.scope), **said)

    def _filter(self, query: dict[str, Any]) -> EntryFilter:
        tenant = query["tenant"]
        return replace(
            self._upstreams.selected(query["provider"]),
            model=query["model"],
            call=query["toolCallId"],
            tenant=None if tenant is None else tenant_named(tenant),
            session=query["session"],
            turn=query["turn"],
        )

    async def _unambiguous(self, which: EntryFilter) -> EntryFilter:
        """The filter with the tenant whose call is meant; an error where several have that id."""
        exact = (which.tenant, which.session, which.turn) != (None, None, None)
        if which.call is None or exact:
            return which
        tenants = sorted(await self._store.count_calls(which.call))
        if len(tenants) > 1:
            names = ", ".join(name or ANONYMOUS for name in tenants[:5])
            raise PageError(
                f"{len(tenants)} tenants have a tool call {which.call[:80]!r} ({names}); "
                "say which one is meant with `tenant`",
                "tenant_needed",
            )
        return replace(which, tenant=tenants[0]) if tenants else which

    def _stats(self, stats: StoreStats) -> CacheStats:
        counts = self._telemetry.counts
        return CacheStats(
            memory_entries=self._store.remembered,
            db_entries=stats.entries,
            total_entries=stats.entries,
            listed_entries=stats.listed,
            total_chars=stats.chars,
            hits=counts.hits,
            misses=counts.misses,
            replays=counts.replays,
            replay_rate=counts.rate,
            by_provider=_shares(stats.by_provider),
            by_model=_shares(stats.by_model),
            oldest_entry=_time(stats.oldest_entry),
            newest_entry=_time(stats.newest_entry),
        )

    def _expires(self, entry: ThoughtEntry) -> float | None:
        """When it is not found any more; None: never."""
        return entry.touched + self._retention if self._retention and not entry.kept else None

    def _expired(self, entry: ThoughtEntry) -> bool:
        """Whether it is not put back any more, and is only not swept away yet."""
        expires = self._expires(entry)
        return expires is not None and expires < self._clock.wall()

    def _entry(self, entry: ThoughtEntry, *, thoughts: bool) -> CacheEntry:
        return CacheEntry(
            tool_call_id=entry.call or None,
            provider=entry.provider,
            upstream=self._upstreams.made_by(entry),
            model=entry.model,
            reasoning=readable(entry.thoughts) if thoughts else None,
            char_count=entry.chars,
            created_at=_time(entry.at) or "",
            expires_at=_time(self._expires(entry)),
            turn=entry.turn,
            session=entry.session,
            tenant=entry.tenant or ANONYMOUS,
            outcome=entry.outcome.value,
        )


def _named(alike: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """What a log line says of upstreams that cannot be told apart."""
    return {"upstreams": alike} if alike else {}


def _shares(tallies: dict[str, EntryCount]) -> dict[str, Share]:
    return {name: Share(entries=t.entries, chars=t.chars) for name, t in tallies.items()}


def _time(at: float | None) -> str | None:
    """ISO 8601 with milliseconds and a Z."""
    if at is None:
        return None
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _accepted(deletion: Deletion) -> Json | None:
    """The answer to a deletion that goes on; None: it is over."""
    if deletion.status != "running":
        return None
    return Json(deletion, 202, headers={"location": f"/api/deletions/{deletion.deletion}"})


def _cursor(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    entry, _, call = text.partition(".")
    return int(entry), int(call)
