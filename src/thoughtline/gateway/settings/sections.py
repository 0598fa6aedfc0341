"""The settings as values: one struct per table of the file, one field per key.

The annotations are the single source. Types and bounds are what `msgspec` converts to, the text is
what `thoughtline init` and the reference print. A field marked `DERIVED` is no key of the file;
loading fills it in. Every struct is frozen and its repr shows no secret.
"""

import hmac
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct, convert

from thoughtline.providers.overrides import Override
from thoughtline.providers.prices import Price, PriceTable
from thoughtline.stores import is_shared
from thoughtline.stores.sealing import open_keychain
from thoughtline.wires.base import WireTimeouts

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain

DERIVED = Meta(extra={"derived": True})
_NO_CONTROLS = r"\A[^\x00-\x1f\x7f\ud800-\udfff]*\Z"  # nor lone surrogates
Line = Annotated[str, Meta(pattern=_NO_CONTROLS)]
Seconds = Annotated[float, Meta(ge=0)]
Timeout = Annotated[float, Meta(gt=0)]
Dollars = Annotated[float, Meta(ge=0, extra={"unit": "dollars"})]
Size = Annotated[int, Meta(ge=1, extra={"unit": "bytes"})]
ADMIN_TOKEN = "env:THOUGHTLINE_ADMIN_TOKEN"  # noqa: S105 (where it is found, not what it is)
Effort = Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max"]
UpstreamSource = Literal["configured", "environment", "known"]

MASK = "***"
_PASSWORD = re.compile(r"(?<=://)(?:[^/?#\s]*|[^/@?#\s]*:\S*)@")  # one may hold a slash
_PARAMETER = re.compile(r"(?i)([?&][^=&#\s]*(?:key|token|secret|passw)[^=&#\s]*=)[^&#\s]*")


# -- secrets -------------------------------------------------------------------------------------


class Secret:
    """A text that is used and never shown; only `reveal` gives it.

    It is `***` wherever it is printed, formatted, logged or put into an error. It does not
    serialise, so that it cannot get into a JSON answer either.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for where it is used; never for a log line."""
        return self._text

    def matches(self, other: str) -> bool:
        """Whether this is the text, compared in constant time."""
        own = self._text.encode("utf-8", "surrogatepass")
        return hmac.compare_digest(own, other.encode("utf-8", "surrogatepass"))

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return self.matches(other._text) if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __str__(self) -> str:
        return MASK if self._text else ""

    def __repr__(self) -> str:
        return f"Secret({str(self)!r})"

    def __reduce__(self) -> tuple[type["Secret"], tuple[str]]:
        return Secret, (self._text,)  # workers get their settings by pickle


def mask(text: str) -> str:
    """The text with what looks like a credential in a URL left out."""
    return _PARAMETER.sub(rf"\g<1>{MASK}", _PASSWORD.sub(f"{MASK}@", text))


def printable(text: str) -> str:
    """The text on one line, with characters that cannot be shown spelled out."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


# -- tables --------------------------------------------------------------------------------------


class Section(Struct, frozen=True, kw_only=True):
    """A table of the file."""

    def __repr__(self) -> str:
        fields = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__)
        return mask(f"{type(self).__name__}({', '.join(fields)})")


class ServerSettings(Section, frozen=True, kw_only=True):
    """Where the gateway listens, and its limits."""

    host: Annotated[Line, "Address to listen on."] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535), "Port to listen on; 0 takes any free one."] = 7337
    workers: Annotated[int, Meta(ge=1, le=256), "Processes that serve, on this machine."] = 1
    allow_remote: Annotated[
        bool, "Listen elsewhere than on loopback although no client keys are set."
    ] = False
    max_body_bytes: Annotated[
        Size,
        "Largest request body; a larger one is answered 413. "
        "A larger answer passes, and is not kept.",
    ] = 64 << 20
    max_header_bytes: Annotated[Size, "Largest request head; a larger one is answered 431."] = (
        64 << 10
    )
    max_connections: Annotated[
        int, Meta(ge=1), "Open client connections per worker; more are answered 503."
    ] = 2048
    body_timeout: Annotated[
        Timeout, "How long a request body may take for each 8 KiB; a slower one is answered 408."
    ] = 30.0
    connect_timeout: Annotated[Timeout, "How long connecting to an upstream may take."] = 10.0
    first_byte_timeout: Annotated[
        Timeout, "How long an upstream may take to send its response headers."
    ] = 600.0
    idle_timeout: Annotated[Timeout, "How long an upstream may be silent in mid-response."] = 300.0
    keepalive_interval: Annotated[
        Seconds, "Silence after which a streaming client gets a ping; 0: never."
    ] = 15.0
    shutdown_grace: Annotated[
        Seconds, "How long open streams may go on after a request to stop."
    ] = 30.0
    finish_on_disconnect: Annotated[
        bool, "Finish and keep a turn whose client left, instead of cancelling."
    ] = False


class StoreSettings(Section, frozen=True, kw_only=True):
    """What is kept, where, and for how long."""

    url: Annotated[
        Line,
        "Where sessions live: sqlite:///… or postgresql://…; empty: SQLite in the data directory.",
    ] = ""
    secret: Annotated[
        Line,
        "Where the shared store's secret is: env:NAME, file:PATH or exec:COMMAND; SQLite has one.",
    ] = ""
    migrate: Annotated[
        bool,
        "Bring a shared store's tables up to date at start, not by `thoughtline store migrate`.",
    ] = False
    find_wait: Annotated[
        Timeout, "Most time a request waits for the store to say which thoughts belong to it."
    ] = 5.0
    retention: Annotated[
        Seconds,
        "How long an unused conversation that was captured is kept; 0: for ever.",
    ] = 30 * 86400.0
    memory_entries: Annotated[
        int, Meta(ge=0), "Remembered turns held in memory, in front of the store."
    ] = 20000
    memory_bytes: Annotated[
        Size, "Most memory that these, and turns that wait for the store, may take."
    ] = 256 << 20
    record: Annotated[
        Literal["sessions", "thoughts", "off"],
        "What is written: everything, only what replay needs, or nothing.",
    ] = "sessions"
    commit_wait: Annotated[
        Seconds | None,
        "Most time the end of a response waits for its turn: 2 s, or 10 s if the store is shared.",
    ] = None
    keys: Annotated[
        Line,
        "Master keys that seal what is stored: file:PATH, env:NAME or exec:COMMAND; empty: plain.",
    ] = ""
    seal: Annotated[
        bool, "Seal what is written, where keys are set; false: only open what is sealed."
    ] = True
    require_sealed: Annotated[
        bool, "Refuse what is stored plainly: for a store in which everything is sealed."
    ] = False

    def keychain(self, env: Mapping[str, str]) -> "Keychain | None":
        """Read the keys, and seal and refuse as this says; None where no keys are named."""
        return open_keychain(self.keys, env, seals=self.seal, requires=self.require_sealed)

    @property
    def commit_timeout(self) -> float:
        """Seconds that the end of a response waits.

        What is acknowledged before it is in a shared store is not found on other machines, and a
        database that restarts is back in seconds: so it is waited for.
        """
        if self.commit_wait is not None:
            return self.commit_wait
        return 10.0 if is_shared(self.url) else 2.0


class ClientSettings(Section, frozen=True, kw_only=True):
    """Somebody who may use the gateway."""

    key: Annotated[Secret, "The key this client sends."] = Secret()


class AccessSettings(Section, frozen=True, kw_only=True):
    """Who may come in. Without client keys, each client's own credential goes upstream."""

    admin_token: Annotated[
        Secret,
        Meta(extra={"default": ADMIN_TOKEN}),
        "Bearer token for /api and /inspect; without one, loopback only.",
    ] = Secret()
    origins: Annotated[
        tuple[Line, ...],
        "Web pages that may ask without a client key, beside those of this machine.",
    ] = ()
    hosts: Annotated[
        tuple[Line, ...],
        "Names to answer under without client keys, beside this machine's own; `*` stands for any.",
    ] = ()
    identity_header: Annotated[
        Line,
        "Header in which a proxy names the user: no client may be able to send it; it ends here.",
    ] = ""
    clients: dict[str, ClientSettings] = {}


class ReplaySettings(Section, frozen=True, kw_only=True):
    """How thoughts go back."""

    strict: Annotated[bool, "Answer an error instead of going on without a demanded thought."] = (
        False
    )
    keep_last: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        'Put back thoughts of the last so many turns only; "none": of all.',
    ] = None
    loop_only: Annotated[bool, "Put back thoughts of the running tool loop only."] = False
    prefix_bytes: Annotated[
        int,
        Meta(ge=0, extra={"unit": "bytes"}),
        "Most memory for beginnings of conversations that are decided for good; 0: none are kept.",
    ] = 64 << 20
    policies: Annotated[
        Line,
        "File of `thoughtline verify --write`; empty: policies.toml in the config folder.",
    ] = ""
    overrides: Annotated[tuple[Override, ...], DERIVED] = ()


class UpstreamSettings(Section, frozen=True, kw_only=True):
    """One provider's endpoint. Most are known by name and need no configuration."""

    base_url: Annotated[Line, "Where it is; a version at its end stands for the client's own."] = ""
    env_key: Annotated[
        Line, "Variable whose value goes upstream instead of the client's credential."
    ] = ""
    policy: Annotated[
        Line, "Row of the policy table; inferred from host, then name, if absent."
    ] = ""
    models: Annotated[tuple[Line, ...], "Patterns of the model names that come here."] = ()
    supports_websockets: Annotated[bool, "Whether it speaks Responses over a WebSocket."] = False
    headers: Annotated[dict[str, Secret], "Headers added to each request."] = {}
    endpoints: Annotated[
        dict[str, Line], "Base of a dialect that lives elsewhere, with its version."
    ] = {}
    identity: Annotated[
        Literal["auto", "token", "credential"],
        "What names a tenant: its token's subject, if this upstream checks it, or all of it.",
    ] = "auto"
    same_as: Annotated[
        Line, "Another upstream that is the same provider: thoughts go to either."
    ] = ""
    lost_thought: Annotated[
        Literal["thinking_off", "forward", "error"],
        "If a demanded thought is lost: go without thinking, as it is, or not at all.",
    ] = "thinking_off"
    dialects: Annotated[
        tuple[Line, ...],
        "Dialects it speaks, the first one for clients of others; as known by name if absent.",
    ] = ()
    connect_timeout: Annotated[Timeout | None, "As in [server], for this upstream."] = None
    first_byte_timeout: Annotated[Timeout | None, "As in [server], for this upstream."] = None
    idle_timeout: Annotated[Timeout | None, "As in [server], for this upstream."] = None
    name: Annotated[str, DERIVED] = ""
    key: Annotated[Secret, DERIVED] = Secret()
    source: Annotated[UpstreamSource, DERIVED] = "configured"

    def base(self, dialect: str) -> str:
        """Where a dialect is spoken: its own endpoint, or `base_url`."""
        return self.endpoints.get(dialect, self.base_url)


class ModelSettings(Section, frozen=True, kw_only=True):
    """A name that clients ask for, or with `*` a family; `"NAME" = "UPSTREAM/MODEL"` in short."""

    to: Annotated[Line, "The upstream and its model, with a slash between them."] = ""
    effort: Annotated[Effort, "How hard to think, in place of what the client asks for."] = ""
    dialect: Annotated[
        Literal["", "chat", "responses", "messages", "gemini"],
        "The dialect to speak with the upstream, where it speaks several.",
    ] = ""


class PriceSettings(Section, frozen=True, kw_only=True):
    """What a model costs, by its name or a pattern of names; before the table that comes along."""

    input: Annotated[Dollars | None, "A million tokens of the prompt."] = None
    output: Annotated[Dollars | None, "A million tokens that the model writes."] = None
    cached: Annotated[
        Dollars | None, "A million tokens of the prompt from the provider's cache."
    ] = None
    cache_write: Annotated[
        Dollars | None, "A million tokens written to that cache; as `input` if absent."
    ] = None


class LogSettings(Section, frozen=True, kw_only=True):
    """Log lines. Bodies, thoughts and credentials are never in them."""

    level: Annotated[Literal["debug", "info", "warning", "error"], "Least level shown."] = "info"
    format: Annotated[
        Literal["auto", "json", "text"],
        "auto: short text on a terminal, else JSON.",
    ] = "auto"


class TelemetrySettings(Section, frozen=True, kw_only=True):
    """Where OpenTelemetry traces go."""

    otel_endpoint: Annotated[
        Line, "OpenTelemetry collector (OTLP over HTTP); empty: no traces."
    ] = ""


class Settings(Section, frozen=True, kw_only=True):
    """All settings."""

    server: ServerSettings = ServerSettings()
    store: StoreSettings = StoreSettings()
    access: AccessSettings = AccessSettings()
    replay: ReplaySettings = ReplaySettings()
    upstreams: dict[str, UpstreamSettings] = {}
    models: dict[str, ModelSettings] = {}
    prices: dict[str, PriceSettings] = {}
    log: LogSettings = LogSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    def price_table(self) -> PriceTable:
        """The prices of the settings, and behind them those that are known."""
        return PriceTable(convert(self.prices, dict[str, Price], from_attributes=True))

    def timeouts(self, upstream: UpstreamSettings) -> WireTimeouts:
        """An upstream's own timeouts, else the server's."""

        def first(name: str) -> float:
            own: float | None = getattr(upstream, name)
            return getattr(self.server, name) if own is None else own

        return WireTimeouts(
            connect=first("connect_timeout"),
            first_byte=first("first_byte_timeout"),
            idle=first("idle_timeout"),
        )
