"""What the engine expects of its callers (`Caller`) and of observers (`ExchangeObserver`)."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct

from thoughtline.dialects.base import Dialect, Request
from thoughtline.engine.decision import Fields, Source
from thoughtline.engine.normalise import Normalised
from thoughtline.engine.prefix_cache import Owner
from thoughtline.engine.recording import Recording
from thoughtline.engine.settled_prefix import Resumed
from thoughtline.engine.translation import Translation
from thoughtline.errors import WireError
from thoughtline.replay.guard import Target
from thoughtline.replay.match import RequestPath
from thoughtline.replay.plan import ReplayLimits

if TYPE_CHECKING:
    from thoughtline.engine.exchange import Exchange


class Incoming(Struct, frozen=True, kw_only=True):
    """What is asked of a provider, and by whom."""

    request: Request
    dialect: Dialect
    target: Target
    tenant: str
    claimed: bool = False  # who asks is known by a name that the provider has yet to accept
    hints: Sequence[str] = ()  # session ids that came along with the request
    strict: bool = False  # an error instead of a placeholder, or of thinking switched off
    limits: ReplayLimits | None = None  # None: the engine's
    fields: Fields = {}  # members of the body to set, whatever the client says
    received: int = 0  # when, by the monotonic clock
    heavy: bool = False  # it takes long to decide about it: not on the event loop
    session: str = ""  # to write the turn to; empty: the one that is continued, or a new one
    turn: str = ""  # the turn's id; empty: a new one
    # where the request is not a client's own
    source: Source | None = None
    path: RequestPath | None = None
    normalised: Normalised | None = None
    # where the client speaks another dialect
    effort: str = ""  # to ask for, whatever the client says; empty: what it says
    translation: Translation | None = None
    # where the client repeats its own conversation
    owner: Owner | None = None  # under which its settled beginning is kept
    resumed: Resumed | None = None  # a prefix-cache hit: `request` is only the part after it


class ProviderAnswer(Protocol):
    """A provider's answer, before anything of it was handed on."""

    @property
    def status(self) -> int: ...


AnswerT = TypeVar("AnswerT", bound=ProviderAnswer)


class Caller(Protocol[AnswerT]):
    """The asking side: an HTTP client, a stream of a WebSocket, the agents' loop."""

    def authenticate(self) -> None:
        """Find out who asks; raises what the caller is to be told instead."""

    async def read(self) -> Incoming | None:
        """What is asked; None where there is no history in it: then it has passed through."""

    async def decided(self, exchange: "Exchange") -> None:
        """It is decided what goes upstream, and nothing has gone yet."""

    def send(self, exchange: "Exchange") -> AbstractAsyncContextManager[AnswerT]:
        """Take the request to the provider."""

    async def refusal(self, answer: AnswerT) -> bytes:
        """The body of a refusal, unpacked, as far as it is looked at."""

    async def relay(self, exchange: "Exchange", answer: AnswerT) -> None:
        """Hand the answer on as it comes, and feed the recording."""

    async def commit(self, exchange: "Exchange") -> None:
        """Write the turn, unless the end of the answer has waited for that."""

    async def retries(self, exchange: "Exchange", error: WireError) -> bool:
        """Whether a request whose line broke is sent once more."""


class ExchangeObserver(Protocol):
    """An observer of exchanges: metrics, logs, traces."""

    def replayed(self, exchange: "Exchange") -> None: ...
    def recovered(self, exchange: "Exchange", strategy: str, *, changed: bool) -> None: ...
    def ended(self, exchange: "Exchange", status: int, reason: str) -> None: ...
    def lost(self, recording: Recording, error: Exception) -> None: ...


class Unobserved:
    """An observer that looks at nothing."""

    def replayed(self, exchange: "Exchange") -> None: ...
    def recovered(self, exchange: "Exchange", strategy: str, *, changed: bool) -> None: ...
    def ended(self, exchange: "Exchange", status: int, reason: str) -> None: ...
    def lost(self, recording: Recording, error: Exception) -> None: ...
