"""What the proxy is given: options from the settings, and who watches it."""

from typing import Protocol

from msgspec import Struct

from thoughtline.engine.caller import ExchangeObserver
from thoughtline.replay.plan import NO_LIMITS, ReplayLimits
from thoughtline.wires.websocket.response import SentRequest


class GatewayObserver(ExchangeObserver, Protocol):
    """Who watches the gateway: metrics, logs, traces."""

    def passed(self, upstream: str, dialect: str, status: int, request: str = "") -> None: ...
    def refused(
        self, upstream: str, dialect: str, status: int, code: str, request: str = ""
    ) -> None: ...
    def sent(self, upstream: str, sent: SentRequest) -> None: ...


class ProxyOptions(Struct, frozen=True, kw_only=True):
    """What of the settings the proxy needs."""

    max_body_bytes: int = 64 << 20
    keepalive: float = 15.0  # seconds of silence before a keep-alive; 0: never
    commit_wait: float = 2.0  # how long the end of a response waits for the store
    many_processes: bool = False  # the next request of a conversation may reach another one
    finish_on_disconnect: bool = False  # read on and keep the turn when the client leaves
    strict: bool = False  # answer an error instead of sending a placeholder
    records_all: bool = True  # the log holds what is said, so that it can be said again
    limits: ReplayLimits = NO_LIMITS
    prefix_bytes: int = 64 << 20  # of memory for settled beginnings of conversations; 0: none
