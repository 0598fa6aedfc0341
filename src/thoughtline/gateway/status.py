"""The pages that anybody may see: whether we are there, whether we are ready, and what we do.

Nothing here says what was thought or by whom. Why the store does not answer is told in full to the
administrator only, because it names files.
"""

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

import thoughtline
from thoughtline.errors import StoreError
from thoughtline.gateway.models import Catalogue
from thoughtline.gateway.pages import Json, admitted
from thoughtline.gateway.proxy import Proxy
from thoughtline.gateway.shapes import Health, Readiness, Version
from thoughtline.stores.hot import HotStore
from thoughtline.telemetry import Metrics

PATIENCE = 2.0
"""Seconds within which a store answers, or counts as not answering."""

VAGUE = "the store does not answer; the log says why"


class Status:
    """Answers them."""

    def __init__(
        self,
        proxy: Proxy,
        store: HotStore,
        metrics: Metrics,
        catalogue: Catalogue,
        described: dict[str, Any],
    ) -> None:
        self._proxy = proxy
        self._store = store
        self._metrics = metrics
        self._catalogue = catalogue
        self._openapi = described

    def routes(self) -> list[Route]:
        """Paths and who answers there."""
        pages = {
            "/": self.root,
            "/health": self.health,
            "/health/liveness": self.health,
            "/health/readiness": self.ready,
            "/ready": self.ready,
            "/metrics": self.metrics,
            "/version": self.version,
            "/openapi.json": self.openapi,
            "/v1/models": self._catalogue.every,
            "/v1/models/{id:path}": self._catalogue.one,
        }
        return [Route(path, page, methods=["GET"]) for path, page in pages.items()]

    async def root(self, request: Request) -> Response:
        """One line for whoever looks with a browser."""
        return PlainTextResponse("Thoughtline is running\n")

    async def health(self, request: Request) -> Response:
        """The process runs; nothing else is asked."""
        return Json(Health())

    async def ready(self, request: Request) -> Response:
        """Whether requests should come here."""
        reasons = []
        if self._proxy.draining:
            reasons.append("the gateway is shutting down")
        if trouble := await self._trouble():
            reasons.append(trouble if admitted(self._proxy.door, request) else VAGUE)
        if reasons:
            return Json(Readiness(status="not ready", reasons=reasons), 503)
        return Json(Readiness())

    async def _trouble(self) -> str:
        """Why the store cannot be relied on right now; empty when it can."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._store.read("", limit=1)
        except TimeoutError:
            return f"the store did not answer within {PATIENCE:g} s"
        except StoreError as error:
            return str(error)
        if self._store.backlog:
            return f"{self._store.backlog} turns wait for the store: {self._store.trouble}"
        return ""

    async def metrics(self, request: Request) -> Response:
        """For Prometheus."""
        page, kind = self._metrics.page(request.headers.get("accept", ""))
        return Response(page, headers={"content-type": kind})

    async def version(self, request: Request) -> Response:
        """Who answers."""
        return Json(Version(name="thoughtline", version=thoughtline.__version__))

    async def openapi(self, request: Request) -> Response:
        """What can be asked here."""
        return Json(self._openapi)
