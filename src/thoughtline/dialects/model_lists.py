"""Lists of models, as the clients of three APIs expect them."""

from collections.abc import Callable, Sequence

from msgspec import Struct


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


class ModelShape(Struct, frozen=True):
    """How an API says which models there are: all, and one."""

    many: Callable[[Sequence[Model]], Struct]
    one: Callable[[Model], Struct]


def openai_list(models: Sequence[Model]) -> Models:
    """The list for OpenAI's clients."""
    return Models(data=[*models])


def anthropic_list(models: Sequence[Model]) -> ModelInfos:
    """The list for Anthropic's clients."""
    infos = [anthropic_model(model) for model in models]
    ends = (infos[0].id, infos[-1].id) if infos else (None, None)
    return ModelInfos(data=infos, first_id=ends[0], last_id=ends[1])


def anthropic_model(model: Model) -> ModelInfo:
    """One model for Anthropic's clients."""
    return ModelInfo(id=model.id, display_name=model.id)


def google_list(models: Sequence[Model]) -> GeminiModels:
    """The list for Google's clients."""
    return GeminiModels(models=[google_model(model) for model in models])


def google_model(model: Model) -> GeminiModel:
    """One model for Google's clients."""
    return GeminiModel(name=f"models/{model.id}", displayName=model.id)


OPENAI = ModelShape(openai_list, lambda model: model)
ANTHROPIC = ModelShape(anthropic_list, anthropic_model)
GOOGLE = ModelShape(google_list, google_model)
