"""`/v1/models`: the models that a client can ask for without naming an upstream in its path.

Those are the models of upstreams that were configured or have a key, as the settings name them and
as the upstreams list them. Where there is no such upstream, they are the simulated models of the
client's API. The list has OpenAI's shape, or Anthropic's for clients that send `anthropic-version`,
and Google's at `/v1beta/models`.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from thoughtline.dialects import DIALECTS
from thoughtline.engine.endpoints import Directory
from thoughtline.gateway.auth import Auth
from thoughtline.gateway.errors import GatewayError, invalid_key
from thoughtline.gateway.pages.model_lists import ModelLists
from thoughtline.gateway.pages.page import PageResponse, header, page, segment

_VERSION = header("anthropic-version", "Any value: the answer has Anthropic's shape.")
_UNAUTHENTICATED = {401: PageResponse("A client key is needed.")}


class Model(Struct, frozen=True, kw_only=True):
    """A model as OpenAI lists it."""

    id: str
    object: str = "model"
    created: int = 0  # not known
    owned_by: str  # the upstream's name


class Models(Struct, frozen=True, kw_only=True):
    """OpenAI's list."""

    object: str = "list"
    data: list[Model]


class ModelInfo(Struct, frozen=True, kw_only=True):
    """The same as Anthropic lists it."""

    type: str = "model"
    id: str
    display_name: str
    created_at: str = "1970-01-01T00:00:00Z"  # not known


class ModelInfos(Struct, frozen=True, kw_only=True):
    """Anthropic's list."""

    data: list[ModelInfo]
    has_more: bool = False
    first_id: str | None = None
    last_id: str | None = None


class GeminiModel(Struct, frozen=True, kw_only=True):
    """A model as Google lists it."""

    name: str
    displayName: str  # noqa: N815 (Google's name for it)
    supportedGenerationMethods: tuple[str, ...] = (  # noqa: N815
        "generateContent",
        "streamGenerateContent",
        "countTokens",
    )


class GeminiModels(Struct, frozen=True, kw_only=True):
    """Google's list."""

    models: list[GeminiModel]


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
        anthropic = _is_anthropic(request)
        spoken = ("messages",) if anthropic else ("chat", "responses")
        models = await self.listed(spoken=spoken)
        if not anthropic:
            return Models(data=models)
        infos = [_info(model) for model in models]
        ends = (infos[0].id, infos[-1].id) if infos else (None, None)
        return ModelInfos(data=infos, first_id=ends[0], last_id=ends[1])

    @page("/v1beta/models", response="The list.", errors=_UNAUTHENTICATED)
    async def gemini(self, request: Request, _: dict[str, Any]) -> GeminiModels | Response:
        """The same as Google lists them."""
        if not self._authenticated(request):
            return _error(request, invalid_key())
        models = await self.listed(spoken=("gemini",))
        return GeminiModels(
            models=[GeminiModel(name=f"models/{m.id}", displayName=m.id) for m in models]
        )

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
        return _info(model) if _is_anthropic(request) else model

    def _authenticated(self, request: Request) -> bool:
        return self._auth.authenticate(request.scope["headers"], request.url.query) is not None


def _is_anthropic(request: Request) -> bool:
    return "anthropic-version" in request.headers


def _info(model: Model) -> ModelInfo:
    return ModelInfo(id=model.id, display_name=model.id)


def _error(request: Request, error: GatewayError) -> Response:
    """The error in the shape of the client's API."""
    dialect = DIALECTS["messages" if _is_anthropic(request) else "chat"]
    body = dialect.error(error.status, error.message, code=error.code)
    return Response(body, error.status, media_type="application/json")
