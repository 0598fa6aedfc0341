"""`/v1/models`: the models that a client can ask for without naming an upstream in its path.

Those are the models of upstreams that were configured or have a key, as the settings name them and
as the upstreams list them. Where there is no such upstream, they are the simulated models of the
client's API. The list has OpenAI's shape, or Anthropic's for clients that send `anthropic-version`,
and Google's at `/v1beta/models`.
"""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from thoughtline.dialects import DEFAULT, dialect_by_headers
from thoughtline.dialects.base import Dialect
from thoughtline.dialects.model_lists import (
    ANTHROPIC,
    GeminiModels,
    Model,
    ModelInfo,
    ModelInfos,
    Models,
    anthropic_list,
    anthropic_model,
    google_list,
    openai_list,
)
from thoughtline.engine.endpoints import Directory
from thoughtline.gateway.auth import Auth
from thoughtline.gateway.errors import GatewayError, invalid_key
from thoughtline.gateway.pages.model_lists import ModelLists
from thoughtline.gateway.pages.page import PageResponse, header, page, segment

_VERSION = header("anthropic-version", "Any value: the answer has Anthropic's shape.")
_UNAUTHENTICATED = {401: PageResponse("A client key is needed.")}


class ModelPages:
    """Serves `/v1/models`, `/v1/models/{id}` and `/v1beta/models`."""

    def __init__(
        self,
        directory: Directory,
        auth: Auth,
        lists: ModelLists,
        simulated: Mapping[str, str] | None = None,
    ) -> None:
        """`simulated` are the names of simulated models, and the dialect that each speaks."""
        self._directory = directory
        self._auth = auth
        self._lists = lists
        self._simulated = simulated or {}

    async def listed(self, *, spoken: tuple[str, ...]) -> list[Model]:
        """All models; simulated ones, of the client's API, only where there are no others."""
        if any(upstream.configured or upstream.key for upstream in self._directory):
            owners = await self._lists.owners()
        else:
            owners = {id: "sim" for id, dialect in self._simulated.items() if dialect in spoken}
        return [Model(id=id, owned_by=owner) for id, owner in owners.items()]

    @page(
        "/v1/models",
        response="The list.",
        parameters=[_VERSION],
        errors=_UNAUTHENTICATED,
    )
    async def every(self, request: Request, _: dict[str, Any]) -> Models | ModelInfos | Response:
        """Models that can be asked for."""
        if not self._authenticated(request):
            return _error(request, invalid_key())
        if _client(request).model_shape is ANTHROPIC:
            return anthropic_list(await self.listed(spoken=("messages",)))
        return openai_list(await self.listed(spoken=("chat", "responses")))

    @page("/v1beta/models", response="The list.", errors=_UNAUTHENTICATED)
    async def gemini(self, request: Request, _: dict[str, Any]) -> GeminiModels | Response:
        """The same as Google lists them."""
        if not self._authenticated(request):
            return _error(request, invalid_key())
        return google_list(await self.listed(spoken=("gemini",)))

    @page(
        "/v1/models/{id:path}",
        response="Some upstream takes it.",
        parameters=[segment("id", "The model's name."), _VERSION],
        errors=_UNAUTHENTICATED | {404: PageResponse("No upstream does.")},
    )
    async def one(self, request: Request, _: dict[str, Any]) -> Model | ModelInfo | Response:
        """One model."""
        if not self._authenticated(request):
            return _error(request, invalid_key())
        id: str = request.path_params["id"]
        upstream = self._directory.pick("", id) if id else None
        if upstream is None:
            message = f"no upstream serves a model {id!r}; GET /v1/models lists what is known"
            return _error(request, GatewayError(404, message, "model_not_found"))
        model = Model(id=id, owned_by=upstream.name)
        return anthropic_model(model) if _client(request).model_shape is ANTHROPIC else model

    def _authenticated(self, request: Request) -> bool:
        return self._auth.authenticate(request.scope["headers"], request.url.query) is not None


def _client(request: Request) -> Dialect:
    """The dialect that a client speaks, as its headers say."""
    return dialect_by_headers(request.headers) or DEFAULT


def _error(request: Request, error: GatewayError) -> Response:
    """The error in the shape of the client's API."""
    body = _client(request).error(error.status, error.message, code=error.code)
    return Response(body, error.status, media_type="application/json")
