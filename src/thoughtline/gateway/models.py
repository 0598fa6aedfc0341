"""The models that clients may ask for, as far as they are known without asking anybody.

Those are the names and patterns of upstreams that were configured or have a key, and the
simulated models. The list comes in OpenAI's shape, or in Anthropic's for its clients.
"""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from thoughtline.dialects import DIALECTS
from thoughtline.gateway.access import Door
from thoughtline.gateway.pages import Json
from thoughtline.gateway.shapes import Model, ModelInfo, ModelInfos, Models
from thoughtline.gateway.upstreams import Directory


class Catalogue:
    """Answers `/v1/models`."""

    def __init__(self, directory: Directory, door: Door, simulated: Sequence[str] = ()) -> None:
        self._directory = directory
        self._door = door
        self._simulated = simulated

    def listed(self) -> list[Model]:
        """All of them; the first upstream that claims a name has it."""
        owners: dict[str, str] = {}
        for upstream in self._directory:
            if upstream.configured or upstream.key:
                for name in upstream.models:
                    owners.setdefault(name, upstream.name)
        owners |= dict.fromkeys(self._simulated, "sim")
        return [Model(id=id, owned_by=owner) for id, owner in owners.items()]

    async def every(self, request: Request) -> Response:
        """`GET /v1/models`."""
        if (no := self._stranger(request)) is not None:
            return no
        models = self.listed()
        if not _anthropic(request):
            return Json(Models(data=models))
        infos = [_info(model) for model in models]
        ends = (infos[0].id, infos[-1].id) if infos else (None, None)
        return Json(ModelInfos(data=infos, first_id=ends[0], last_id=ends[1]))

    async def one(self, request: Request) -> Response:
        """`GET /v1/models/{id}`: any name that some upstream would take."""
        if (no := self._stranger(request)) is not None:
            return no
        id: str = request.path_params["id"]
        upstream = self._directory.pick("", id) if id else None
        if upstream is None:
            text = f"no upstream serves a model {id!r}; GET /v1/models lists what is known"
            return _error(request, 404, text, "model_not_found")
        model = Model(id=id, owned_by=upstream.name)
        return Json(_info(model) if _anthropic(request) else model)

    def _stranger(self, request: Request) -> Response | None:
        if self._door.admit(request.scope["headers"], request.url.query) is not None:
            return None
        text = "this gateway does not know that key; expected one of its client keys"
        return _error(request, 401, text, "invalid_api_key")


def _anthropic(request: Request) -> bool:
    return "anthropic-version" in request.headers


def _info(model: Model) -> ModelInfo:
    return ModelInfo(id=model.id, display_name=model.id)


def _error(request: Request, status: int, message: str, code: str) -> Response:
    dialect = DIALECTS["messages" if _anthropic(request) else "chat"]
    body = dialect.error(status, message, code=code)
    return Response(body, status, media_type="application/json")
