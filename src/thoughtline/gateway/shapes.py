"""What our own pages answer with, as structs: the answers and `/openapi.json` come from these.

The names are those that users of such pages know: OpenAI's and Anthropic's lists of models, and
the cache API in camel case.
"""

from msgspec import Struct


class Problem(Struct, frozen=True, kw_only=True):
    """What went wrong."""

    message: str
    type: str
    code: str


class Failure(Struct, frozen=True, kw_only=True):
    """An answer that says no, in the shape that OpenAI's clients read."""

    error: Problem


class Health(Struct, frozen=True, kw_only=True):
    """The process runs."""

    status: str = "ok"


class Readiness(Struct, frozen=True, kw_only=True):
    """Whether requests should come here, and why not."""

    status: str = "ready"
    reasons: list[str] = []


class Version(Struct, frozen=True, kw_only=True):
    """Who answers."""

    name: str
    version: str


# -- models --------------------------------------------------------------------------------------


class Model(Struct, frozen=True, kw_only=True):
    """A model, or a pattern of their names (`*`), as OpenAI lists it."""

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


# -- the cache API -------------------------------------------------------------------------------


class Share(Struct, frozen=True, kw_only=True):
    """How much of the cache something takes."""

    entries: int
    chars: int


class CacheStats(Struct, frozen=True, kw_only=True, rename="camel"):
    """How much is remembered, and how look-ups went since the start or the last reset."""

    memory_entries: int
    db_entries: int
    total_entries: int
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


class Cleared(Struct, frozen=True, kw_only=True):
    """How many entries were forgotten."""

    cleared: int


class Purged(Struct, frozen=True, kw_only=True):
    """How many sessions were deleted."""

    purged: int
