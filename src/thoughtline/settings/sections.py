"""The settings as values: one struct per table of the file, one field per key.

The annotations are the single source: types and bounds are what loading checks, descriptions are
what `thoughtline init` and the reference print. A field marked `DERIVED` is no key; loading fills
it in. Everything here is frozen and shows no secret.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from thoughtline.policies import Override
from thoughtline.settings.masks import Secret, mask

DERIVED = {"derived": True}
Seconds = Annotated[float, Meta(ge=0, extra={"unit": "seconds"})]
Timeout = Annotated[float, Meta(gt=0, extra={"unit": "seconds"})]
Size = Annotated[int, Meta(ge=1, extra={"unit": "bytes"})]
ADMIN_TOKEN = "env:THOUGHTLINE_ADMIN_TOKEN"  # noqa: S105 (where it is found, not what it is)
Standing = Literal["configured", "environment", "known"]


class Section(Struct, frozen=True, kw_only=True):
    """A table of the file."""

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__)
        return mask(f"{type(self).__name__}({', '.join(shown)})")


class Server(Section, frozen=True, kw_only=True):
    """Where the gateway listens, and its limits."""

    host: Annotated[str, Meta(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[
        int, Meta(ge=0, le=65535, description="Port to listen on; 0 takes any free one.")
    ] = 7337
    workers: Annotated[
        int, Meta(ge=1, le=256, description="Processes that serve, on this machine.")
    ] = 1
    allow_remote: Annotated[
        bool,
        Meta(description="Listen elsewhere than on loopback although no client keys are set."),
    ] = False
    max_body_bytes: Annotated[
        Size,
        Meta(
            description="Largest request body; a larger one is answered 413. "
            "A larger answer passes, and is not kept."
        ),
    ] = 64 << 20
    max_header_bytes: Annotated[
        Size, Meta(description="Largest request head; a larger one is answered 431.")
    ] = 64 << 10
    max_connections: Annotated[
        int, Meta(ge=1, description="Open client connections per worker; more are answered 503.")
    ] = 2048
    connect_timeout: Annotated[
        Timeout, Meta(description="How long connecting to an upstream may take.")
    ] = 10.0
    first_byte_timeout: Annotated[
        Timeout, Meta(description="How long an upstream may take to send its response headers.")
    ] = 600.0
    idle_timeout: Annotated[
        Timeout, Meta(description="How long an upstream may be silent in mid-response.")
    ] = 300.0
    keepalive_interval: Annotated[
        Seconds, Meta(description="Silence after which a streaming client gets a ping; 0: never.")
    ] = 15.0
    shutdown_grace: Annotated[
        Seconds, Meta(description="How long open streams may go on after a request to stop.")
    ] = 30.0
    finish_on_disconnect: Annotated[
        bool, Meta(description="Finish and keep a turn whose client left, instead of cancelling.")
    ] = False


class Store(Section, frozen=True, kw_only=True):
    """What is kept, where, and for how long."""

    url: Annotated[
        str,
        Meta(description="Where sessions live; empty: SQLite in the user's data directory."),
    ] = ""
    cache_url: Annotated[
        str, Meta(description="A hot tier shared by machines (redis://…); empty: none.")
    ] = ""
    retention: Annotated[
        Seconds, Meta(description="How long an unused conversation is kept; 0: for ever.")
    ] = 30 * 86400.0
    memory_entries: Annotated[
        int, Meta(ge=0, description="Remembered turns held in memory, in front of the store.")
    ] = 20000
    memory_bytes: Annotated[Size, Meta(description="Most memory these may take.")] = 256 << 20
    record: Annotated[
        Literal["sessions", "thoughts", "off"],
        Meta(description="What is written: everything, only what replay needs, or nothing."),
    ] = "sessions"
    commit_wait: Annotated[
        Seconds,
        Meta(description="Most time the end of a response waits for its turn to be written."),
    ] = 2.0


class Client(Section, frozen=True, kw_only=True):
    """Somebody who may use the gateway."""

    key: Annotated[Secret, Meta(description="The key this client sends.")] = Secret()


class Access(Section, frozen=True, kw_only=True):
    """Who may come in. Without client keys, each client's own credential goes upstream."""

    admin_token: Annotated[
        Secret,
        Meta(
            description="Bearer token for /api and /inspect; without one, loopback only.",
            extra={"shown": ADMIN_TOKEN},
        ),
    ] = Secret()
    origins: Annotated[
        tuple[str, ...],
        Meta(
            description="Web pages that may ask without a client key, beside those of this machine."
        ),
    ] = ()
    clients: dict[str, Client] = {}


class Replay(Section, frozen=True, kw_only=True):
    """How thoughts go back."""

    strict: Annotated[
        bool, Meta(description="Answer an error instead of going on without a demanded thought.")
    ] = False
    keep_last: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description='Put back thoughts of the last so many turns only; "none": of all.'),
    ] = None
    loop_only: Annotated[
        bool, Meta(description="Put back thoughts of the running tool loop only.")
    ] = False
    policies: Annotated[
        str,
        Meta(
            description="File of `thoughtline verify --write`; "
            "empty: policies.toml in the config folder."
        ),
    ] = ""
    overrides: Annotated[tuple[Override, ...], Meta(extra=DERIVED)] = ()


class Upstream(Section, frozen=True, kw_only=True):
    """One provider's endpoint. Most are known by name and need no configuration."""

    base_url: Annotated[
        str, Meta(description="Where it is; a version at its end stands for the client's own.")
    ] = ""
    env_key: Annotated[
        str,
        Meta(description="Variable whose value goes upstream instead of the client's credential."),
    ] = ""
    policy: Annotated[
        str, Meta(description="Row of the policy table; inferred from host, then name, if absent.")
    ] = ""
    models: Annotated[
        tuple[str, ...], Meta(description="Patterns of the model names that come here.")
    ] = ()
    supports_websockets: Annotated[
        bool, Meta(description="Whether it speaks Responses over a WebSocket.")
    ] = False
    headers: Annotated[dict[str, Secret], Meta(description="Headers added to each request.")] = {}
    endpoints: Annotated[
        dict[str, str],
        Meta(description="Base of a dialect that lives elsewhere, with its version."),
    ] = {}
    connect_timeout: Annotated[
        Timeout | None, Meta(description="As in [server], for this upstream.")
    ] = None
    first_byte_timeout: Annotated[
        Timeout | None, Meta(description="As in [server], for this upstream.")
    ] = None
    idle_timeout: Annotated[
        Timeout | None, Meta(description="As in [server], for this upstream.")
    ] = None
    name: Annotated[str, Meta(extra=DERIVED)] = ""
    key: Annotated[Secret, Meta(extra=DERIVED)] = Secret()
    standing: Annotated[Standing, Meta(extra=DERIVED)] = "configured"

    def base(self, dialect: str) -> str:
        """Where a dialect is spoken: its own endpoint, or `base_url`."""
        return self.endpoints.get(dialect, self.base_url)


class Log(Section, frozen=True, kw_only=True):
    """Log lines. Bodies, thoughts and credentials are never in them."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="Least level shown.")
    ] = "info"
    format: Annotated[
        Literal["auto", "json", "text"], Meta(description="auto: text on a terminal, else JSON.")
    ] = "auto"


class Telemetry(Section, frozen=True, kw_only=True):
    """Traces."""

    otel_endpoint: Annotated[
        str, Meta(description="OpenTelemetry collector (OTLP over HTTP); empty: no traces.")
    ] = ""


class Timeouts(Struct, frozen=True, kw_only=True):
    """How long one upstream may take, in seconds."""

    connect: float
    first_byte: float
    idle: float


class Settings(Section, frozen=True, kw_only=True):
    """All of it."""

    server: Server = Server()
    store: Store = Store()
    access: Access = Access()
    replay: Replay = Replay()
    upstreams: dict[str, Upstream] = {}
    log: Log = Log()
    telemetry: Telemetry = Telemetry()

    def timeouts(self, upstream: Upstream) -> Timeouts:
        """An upstream's own, else the server's."""

        def first(own: float | None, general: float) -> float:
            return general if own is None else own

        return Timeouts(
            connect=first(upstream.connect_timeout, self.server.connect_timeout),
            first_byte=first(upstream.first_byte_timeout, self.server.first_byte_timeout),
            idle=first(upstream.idle_timeout, self.server.idle_timeout),
        )
