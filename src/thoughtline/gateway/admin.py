"""The cache API: what is remembered, and how to have it forgotten.

`GET /api/cache/reasoning` shows statistics and entries; thoughts only when they are asked for, and
then that is logged. `DELETE` forgets what its filters mean, or everything. A parameter that does
not exist is refused, because a misspelt filter must not clear the whole cache. Only for the
administrator (see `pages.AdminOnly`).
"""

import re
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from thoughtline.gateway.pages import Json, Mistaken, peer
from thoughtline.gateway.parameters import ANONYMOUS, asked_for, tenant_named, whole
from thoughtline.gateway.shapes import CacheEntry, CachePage, CacheStats, Cleared, Purged, Share
from thoughtline.memories import readable
from thoughtline.stores.base import EVERYTHING, Entry, Filter, Stats, Tally
from thoughtline.stores.hot import HotStore
from thoughtline.telemetry import Telemetry

MOST = 200
USUAL = 50
FILTERS = {"provider": "provider", "model": "model", "toolCallId": "call", "tenant": "tenant"}
"""Parameter → field of the store's filter."""

_CURSOR = re.compile(r"([0-9]{1,18})\.([0-9]{1,9})")


class Admin:
    """Answers the administrator."""

    def __init__(self, store: HotStore, telemetry: Telemetry, *, retention: float = 0.0) -> None:
        self._store = store
        self._telemetry = telemetry
        self._retention = retention

    def routes(self) -> list[Route]:
        """Paths and who answers there."""
        return [
            Route("/api/cache/reasoning", self.show, methods=["GET"]),
            Route("/api/cache/reasoning", self.clear, methods=["DELETE"]),
            Route("/api/tenants/{tenant}", self.purge, methods=["DELETE"]),
        ]

    # -- answers ---------------------------------------------------------------------------------

    async def show(self, request: Request) -> Response:
        """`GET /api/cache/reasoning`."""
        asked = asked_for(request, (*FILTERS, "limit", "cursor", "offset", "include"))
        limit = min(max(whole(asked, "limit", USUAL), 1), MOST)
        offset = whole(asked, "offset", 0)
        if offset < 0:
            raise Mistaken(f"`offset` is {offset}; expected 0 or more")
        shown = _included(asked)
        found = await self._store.entries(
            _filter(asked),
            limit=limit + 1,  # one more than is shown says whether there is a next page
            after=_cursor(asked),
            offset=offset,
            thoughts=shown,
        )
        entries, more = found[:limit], len(found) > limit
        if shown:
            self._telemetry.log.info(
                "thoughts_shown",
                peer=peer(request.scope),
                turns=sorted({entry.turn for entry in entries}),
            )
        page = CachePage(
            stats=self._stats(await self._store.stats()),
            entries=[self._entry(entry, shown=shown) for entry in entries],
            next_cursor="{}.{}".format(*entries[-1].position) if more else None,
        )
        return Json(page)

    async def clear(self, request: Request) -> Response:
        """`DELETE /api/cache/reasoning`."""
        which = _filter(asked_for(request, FILTERS))
        cleared = await self._store.forget(which)
        if which == EVERYTHING:
            self._telemetry.reset()
        self._telemetry.log.info("cleared", peer=peer(request.scope), entries=cleared)
        return Json(Cleared(cleared=cleared))

    async def purge(self, request: Request) -> Response:
        """`DELETE /api/tenants/{tenant}`: everything of theirs, sessions and all."""
        asked_for(request, ())
        tenant = tenant_named(request.path_params["tenant"])
        purged = await self._store.purge(tenant=tenant)
        self._telemetry.log.info("purged", peer=peer(request.scope), tenant=tenant, sessions=purged)
        return Json(Purged(purged=purged))

    # -- shapes ----------------------------------------------------------------------------------

    def _stats(self, stats: Stats) -> CacheStats:
        counts = self._telemetry.counts
        return CacheStats(
            memory_entries=self._store.remembered,
            db_entries=stats.entries,
            total_entries=stats.entries,
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

    def _entry(self, entry: Entry, *, shown: bool) -> CacheEntry:
        expires = entry.touched + self._retention if self._retention else None
        return CacheEntry(
            tool_call_id=entry.call or None,
            provider=entry.provider,
            model=entry.model,
            reasoning=readable(entry.thoughts) if shown else None,
            char_count=entry.chars,
            created_at=_time(entry.at) or "",
            expires_at=_time(expires),
            turn=entry.turn,
            session=entry.session,
            tenant=entry.tenant or ANONYMOUS,
            outcome=entry.outcome.value,
        )


def _shares(tallies: dict[str, Tally]) -> dict[str, Share]:
    return {name: Share(entries=t.entries, chars=t.chars) for name, t in tallies.items()}


def _time(at: float | None) -> str | None:
    """ISO 8601 with milliseconds and a Z."""
    if at is None:
        return None
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


# -- parameters ----------------------------------------------------------------------------------


def _filter(asked: dict[str, str]) -> Filter:
    said = {field: asked[name] for name, field in FILTERS.items() if name in asked}
    if "tenant" in said:
        said["tenant"] = tenant_named(said["tenant"])
    return Filter(**said)


def _cursor(asked: dict[str, str]) -> tuple[int, int] | None:
    value = asked.get("cursor")
    if value is None:
        return None
    found = _CURSOR.fullmatch(value)
    if found is None:
        raise Mistaken(f"`cursor` is {value[:40]!r}; expected the `nextCursor` of the page before")
    return int(found[1]), int(found[2])


def _included(asked: dict[str, str]) -> bool:
    value = asked.get("include")
    if value not in (None, "reasoning"):
        raise Mistaken(f"`include` is {value[:40]!r}; expected reasoning, or nothing")
    return value is not None
