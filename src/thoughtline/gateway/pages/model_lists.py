"""Asks upstreams which models they serve, with their own keys, and remembers it for a while.

A pattern such as `deepseek-*` says where a model goes, not which models there are: only the
provider knows. An upstream that does not answer is left out, and asked again soon. No credential of
a client is used: an upstream without a key of its own is asked without one.
"""

import asyncio
from contextlib import suppress

from thoughtline.clock import Clock
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.errors import Unreadable, WireError
from thoughtline.gateway.upstream_models import MAX_BYTES, lists_in, models_request
from thoughtline.providers.catalogue import is_pattern
from thoughtline.wires.base import Wire, read_up_to

MAX_AGE_NS = 300 * 1_000_000_000
RETRY_NS = 30 * 1_000_000_000
"""Nanoseconds after which an upstream is asked again: one that answered, and one that did not."""


class ModelLists:
    """The models of upstreams, as these list them."""

    def __init__(self, directory: Directory, wire: Wire, clock: Clock) -> None:
        self._directory = directory
        self._wire = wire
        self._clock = clock
        self._lists: dict[str, tuple[int, list[str]]] = {}  # upstream → until when, its models
        self._asking: dict[str, asyncio.Task[list[str]]] = {}

    async def owners(self) -> dict[str, str]:
        """Model → its upstream, for upstreams that are configured or have a key."""
        used = [upstream for upstream in self._directory if upstream.configured or upstream.key]
        lists = await asyncio.gather(*(self._models(upstream) for upstream in used))
        rows = self._directory.model_names.rows
        owners = {row.pattern: row.upstream for row in rows if not is_pattern(row.pattern)}
        for upstream, models in zip(used, lists, strict=True):
            exact = [name for name in upstream.models if not is_pattern(name)]
            for name in dict.fromkeys([*exact, *models]):
                picked = self._directory.pick("", name)  # where asking for it leads
                if picked is not None and (picked is upstream or picked.asked):
                    owners.setdefault(name, picked.name)
        return owners

    async def _models(self, upstream: Upstream) -> list[str]:
        until, models = self._lists.get(upstream.name, (-1, []))
        if until >= self._clock.mono():
            return models
        task = self._asking.get(upstream.name)
        if task is None:  # requests at the same time share one question
            task = self._asking[upstream.name] = asyncio.ensure_future(self._ask(upstream))
            task.add_done_callback(lambda _: self._asking.pop(upstream.name, None))
        return await asyncio.shield(task)

    async def _ask(self, upstream: Upstream) -> list[str]:
        models: list[str] = []
        with suppress(WireError, Unreadable):
            models = await self._listed(upstream)
        age = MAX_AGE_NS if models else RETRY_NS
        self._lists[upstream.name] = self._clock.mono() + age, models
        return models

    async def _listed(self, upstream: Upstream) -> list[str]:
        request = models_request(upstream, upstream.key)
        async with (upstream.wire or self._wire).send(request) as answer:
            if answer.status != 200:
                return []
            return lists_in(upstream).model_names(await read_up_to(answer, MAX_BYTES))
