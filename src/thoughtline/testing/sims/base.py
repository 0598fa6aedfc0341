"""The frame of every simulated provider: account, faults, conversation, script, ledger, usage.

A dialect subclasses `Simulator` with three methods: `respond` (parse, check, answer), `error` (a
failure in the provider's own shape) and `models`. Around them `answer` records each request, asks
for a credential, plays faults and puts the audit of the history into the reply's header
`x-sim-thoughts`. Nothing here does I/O, and nothing a client sends makes `answer` raise.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from thoughtline.testing.sims.faults import HEADER as FAULT_HEADER
from thoughtline.testing.sims.faults import Fault, Pace
from thoughtline.testing.sims.ledger import Audit, Carried, Echo, Emission, Ledger
from thoughtline.testing.sims.oddities import Oddities, Oddity
from thoughtline.testing.sims.problems import Problem
from thoughtline.testing.sims.records import Exchange, Record, Usage
from thoughtline.testing.sims.script import default_script
from thoughtline.testing.sims.seals import Style, seal, unseal
from thoughtline.testing.sims.sockets import Lanes, Socket
from thoughtline.testing.sims.tokens import token_account
from thoughtline.testing.sims.values import (
    Piece,
    Reply,
    Request,
    Say,
    Think,
    Tool,
    Use,
    decode,
    deltas,
    encode,
    json_reply,
    sse,
    stream_reply,
)

__all__ = [
    "Audit",
    "Carried",
    "Echo",
    "Emission",
    "Exchange",
    "Factory",
    "Fault",
    "Lanes",
    "Ledger",
    "Pace",
    "Piece",
    "Record",
    "Reply",
    "Request",
    "Say",
    "Script",
    "Simulator",
    "Socket",
    "Style",
    "Think",
    "Tool",
    "Usage",
    "Use",
    "decode",
    "deltas",
    "encode",
    "json_reply",
    "seal",
    "sse",
    "stream_reply",
    "unseal",
]

AUDIT_HEADER = "x-sim-thoughts"
READ_HEADER = "x-sim-read"
"""How many of its thoughts the model gets to see again."""
_REMEMBERED = 8
"""Requests per conversation that count as cached: agents put other calls in between."""


Script: TypeAlias = "Callable[[int, Simulator], tuple[Piece, ...]]"
"""Number of assistant turns so far → what the model does next."""
Factory: TypeAlias = "Callable[..., Simulator]"
"""Takes `script`, `serials`, `seed`, `account` and the options of its provider, by keyword."""


class Simulator(ABC):
    """One simulated provider, with its memory of everything it emitted."""

    dialect: str = "chat"
    """`chat`, `responses`, `messages` or `gemini`."""
    base_path: str = "/v1"
    """Where its API hangs under its root; what a client's base URL ends in."""
    summary: str = ""
    """What it enforces, in one sentence."""

    def __init__(
        self,
        provider: str,
        *,
        script: Script | None = None,
        serials: bool = True,
        seed: int = 0,
        account: str | None = None,
        token_secret: bytes | None = None,
        account_header: str = "",
        escaped: bool = False,
        clock: Callable[[], float] = time.time,
        exchanges: int = 0,
        realistic: bool | None = None,
        oddities: tuple[str, ...] = (),
    ) -> None:
        self.provider = provider
        self.script: Script = script or default_script
        self.serials = serials
        self.seed = seed
        self.account = account
        """The only credential accepted; None accepts any."""
        self.token_secret = token_secret
        """Only tokens that are signed with it are accepted, and their subject is the account."""
        self.account_header = account_header
        """A header that names the account, whatever the credential is."""
        self.escaped = escaped
        """Escape all JSON, and cut emoji in two halves when streaming."""
        self.clock = clock
        self.oddities = Oddities.chosen(realistic, oddities)
        """The odd shapes of its answers; strict by default, but realistic in our tests."""
        self.secret = hashlib.sha256(f"{provider}:{seed}".encode()).digest()
        self.requests: list[Record] = []
        self.ledger = Ledger(f"{provider}-{seed}-")
        self.now: Exchange = Exchange(request=Request("GET", "/", {}, b""))
        """The exchange being answered: what a script may look at."""
        self._faults: deque[Fault] = deque()
        self._seen: dict[str, deque[bytes]] = {}
        self._count = exchanges  # before this one began: serials go on from there
        self._lock = threading.RLock()

    # What a dialect provides

    @abstractmethod
    def respond(self, exchange: Exchange) -> Reply:
        """Answer a request whose credential is good. Must not raise, whatever the body is."""

    @abstractmethod
    def refuse(self, problem: Problem) -> Reply:
        """A failure in the provider's shape; None in it: what it usually says for the status."""

    @abstractmethod
    def models(self) -> tuple[str, ...]:
        """The models it lists."""

    def error(self, status: int, message: str) -> Reply:
        """A failure of which no more is known than this."""
        return self.refuse(Problem(status, message))

    def connect(self, request: Request) -> Socket | Reply:
        """Accept a WebSocket, or answer the upgrade with a plain reply."""
        return self.error(404, "Not Found")

    # What everybody else calls

    def answer(self, request: Request) -> Reply:
        """Answer one request as the provider would."""
        with self._lock:
            exchange = self.begin(request)
            reply = self._answer(exchange)
            return self.finish(exchange, reply)

    def fail_next(self, fault: str | Fault, times: int = 1) -> None:
        """Let the next request (or several) fail, as the header `x-sim-fault` would."""
        parsed = Fault.parse(fault) if isinstance(fault, str) else fault
        if parsed is None:
            raise ValueError(f"not a fault: {fault!r}; try 500, 429, stall, cut:3 or garbage:3")
        self._faults.extend([parsed] * times)

    @property
    def emitted(self) -> list[Emission]:
        """Every thought emitted so far."""
        return self.ledger.emitted

    # What a dialect uses

    def begin(self, request: Request) -> Exchange:
        """Start an exchange: give it a serial and find the account."""
        self._count += 1
        serial = f"{self.provider}-{self.seed}-{self._count:04d}"
        self.now = Exchange(request=request, account=self._account_of(request), serial=serial)
        return self.now

    def _account_of(self, request: Request) -> str:
        shown = credential(request)
        if self.token_secret is not None:
            shown = token_account(self.token_secret, shown)
        named = request.headers.get(self.account_header, "") if self.account_header else ""
        return (named or shown) if shown else ""

    def finish(self, exchange: Exchange, reply: Reply) -> Reply:
        """Put the headers on, and remember the exchange."""
        headers = {
            **reply.headers,
            AUDIT_HEADER: str(exchange.audit),
            READ_HEADER: str(len(exchange.read)),
            "x-request-id": f"req-{exchange.serial}",
        }
        reply = msgspec.structs.replace(reply, headers=headers)
        record = Record(
            exchange.request,
            exchange.account,
            exchange.marker,
            exchange.audit,
            reply,
            exchange.read,
        )
        self.requests.append(record)
        return reply

    def enter(self, exchange: Exchange, first_user_text: str, echoes: Sequence[Echo]) -> Audit:
        """Say which conversation this is and what its history holds; gives the audit."""
        secret = f"{exchange.account}\0{first_user_text}".encode("utf-8", "surrogatepass")
        exchange.marker = hashlib.sha256(secret).hexdigest()
        exchange.turn = len(echoes)
        exchange.audit = self.ledger.audit(exchange.marker, echoes)
        self.show(exchange, echoes)
        return exchange.audit

    def show(self, exchange: Exchange, echoes: Sequence[Echo]) -> None:
        """Let the model see the thoughts in these turns, and no others."""
        thoughts = [carried.value for echo in echoes for carried in echo.thoughts]
        exchange.read = tuple(value for value in thoughts if self.ledger.find(value))

    def play(
        self, exchange: Exchange, tools: Sequence[Tool], *, parallel: bool = True
    ) -> tuple[Piece, ...]:
        """Let the script act; without declared tools it calls none, but always says something."""
        exchange.tools = tuple(tools)
        pieces = self.script(exchange.turn, self)
        if not tools:
            pieces = tuple(p for p in pieces if not isinstance(p, Use))
        elif not parallel:
            uses = [at for at, piece in enumerate(pieces) if isinstance(piece, Use)]
            pieces = tuple(p for at, p in enumerate(pieces) if at not in uses[1:])
        if all(isinstance(piece, Think) for piece in pieces):
            pieces = (*pieces, Say(f"Done. {self.mark}".strip()))
        shown = [piece[-1] for piece in pieces if not isinstance(piece, Think)]
        exchange.marked = any(exchange.serial in text for text in shown)
        self.ledger.answer(exchange.serial, exchange.marker, exchange.turn, marked=exchange.marked)
        return pieces

    def add_oddities(
        self,
        exchange: Exchange,
        sent: list[Any],
        table: Mapping[str, Oddity],
        emits: Mapping[str, tuple[str, ...]],
        body: Mapping[str, Any],
    ) -> list[Any]:
        """Give what is about to be sent the odd shapes that this provider's answers have."""
        seed = f"{self.seed}/{exchange.marker}/{exchange.turn}"
        return self.oddities.apply(sent, table, emits.get(self.provider, ()), body, seed)

    def emit(self, exchange: Exchange, carrier: str, value: str, slot: str = "") -> str:
        """Enter a thought into the ledger, exactly as it goes out; gives the value back."""
        emission = Emission(exchange.serial, exchange.marker, exchange.turn, carrier, value, slot)
        self.ledger.add(emission, marked=exchange.marked)
        return value

    def measure(self, exchange: Exchange, canonical: bytes) -> Usage:
        """Count prompt tokens, and those a prompt cache would have saved; call once when accepted.

        `canonical` is the model's whole input in its order: tools, system, then the messages. Leave
        out closing brackets, so that a request and the same with more messages share all of it.
        """
        seen = self._seen.setdefault(exchange.marker, deque(maxlen=_REMEMBERED))
        cached = max((_common(canonical, earlier) for earlier in seen), default=0)
        seen.append(canonical)
        return Usage(len(canonical) // 4, cached // 4)

    def seal(self, claims: str, style: Style, *, size: int = 240) -> str:
        """Seal claims with this simulator's secret."""
        return seal(self.secret, claims.encode(), style, size=size)

    def unseal(self, text: str, style: Style) -> str | None:
        """Open a seal of this simulator; None for any other text."""
        claims = unseal(self.secret, text, style)
        return None if claims is None else claims.decode()

    def mac(self, *parts: str) -> bytes:
        """A keyed hash over several texts."""
        joined = encode(list(parts), escaped=True)
        return hmac.digest(self.secret, joined, "sha256")

    # What a script uses

    @property
    def serial(self) -> str:
        """Names this exchange; for thoughts, which are always unique."""
        return self.now.serial

    @property
    def mark(self) -> str:
        """The serial for visible output, or nothing when conversations are to look alike."""
        return self.now.serial if self.serials else ""

    @property
    def remembered(self) -> int:
        """How many of its own thoughts the model sees in this request."""
        return len(self.now.read)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that this request declares."""
        return self.now.tools

    def _answer(self, exchange: Exchange) -> Reply:
        if not exchange.account or self.account not in (None, exchange.account):
            return self.error(401, "Authentication Fails (no such user)")
        fault = self._fault(exchange.request)
        if fault is None:
            return self._respond(exchange)
        if fault.status is not None:
            reply = self.error(fault.status, fault.message)
            extra = {"retry-after": "1"} if fault.status in (429, 503) else {}
            return msgspec.structs.replace(reply, headers={**reply.headers, **extra})
        return fault.spoil(self._respond(exchange))

    def _respond(self, exchange: Exchange) -> Reply:
        try:
            return self.respond(exchange)
        except RecursionError:  # JSON may be as deep as it is long
            return self.error(400, "The request body is nested too deeply.")

    def _fault(self, request: Request) -> Fault | None:
        asked = Fault.parse(request.headers.get(FAULT_HEADER, ""))
        if asked is not None:
            return asked
        return self._faults.popleft() if self._faults else None


def credential(request: Request) -> str:
    """The account: whatever key the request carries, in any provider's header or query."""
    for name in ("authorization", "x-api-key", "api-key", "x-goog-api-key"):
        value = request.headers.get(name, "").strip()
        if name == "authorization" and value.lower().startswith("bearer"):
            value = value[6:].strip()
        if value:
            return value
    for pair in request.query.split("&"):
        name, _, value = pair.partition("=")
        if name == "key" and value:
            return value
    return ""


def _common(one: bytes, other: bytes) -> int:
    """How many leading bytes are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
