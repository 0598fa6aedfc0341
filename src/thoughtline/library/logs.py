"""The log: a store of sessions, opened by URL, and the way to create, resume, list and move them.

    async with thoughtline.open("sqlite:///agent.db") as log:
        chat = await log.create(provider=Provider("deepseek", model="deepseek-v4-pro"))

Everything that is known about a session is in its log; what is not in the log (the provider's key,
the tools, the system prompt) is given when it is created or resumed.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet

from msgspec.structs import replace

from thoughtline.clock import Clock, SystemClock
from thoughtline.dialects.sse import Splitter
from thoughtline.errors import ThoughtlineError
from thoughtline.events import Event, SessionForked
from thoughtline.library import accounts, transfers
from thoughtline.library.chats import Chat, Options
from thoughtline.library.ledgers import Ledger
from thoughtline.library.providers import Provider
from thoughtline.library.runs import Run
from thoughtline.library.transcripts import Terms
from thoughtline.parts import Origin
from thoughtline.policies import Policy
from thoughtline.sessions import Session
from thoughtline.stores.base import Store, Summary
from thoughtline.stores.urls import open_store
from thoughtline.tools import Permission, Tool, Toolbox
from thoughtline.tools.running import Limits
from thoughtline.wires.base import Wire
from thoughtline.wires.fallback import over_http
from thoughtline.wires.websocket import Options as WebSockets
from thoughtline.wires.websocket import ResponsesWire

TENANT = "local"
"""To whom sessions belong that were made here and not through a gateway."""


class Log:
    """Sessions, and everything that can be done with them. Made by `open_log`."""

    def __init__(
        self,
        store: Store,
        *,
        tenant: str,
        clock: Clock,
        wire: Wire | None,
        secret: Callable[[], bytes],
    ) -> None:
        self.store = store
        self.tenant = tenant
        self.clock = clock
        self.runs: WeakSet[Run] = WeakSet()  # those that may be under way
        self._wire = wire
        self._own_wire = wire is None
        self._sockets: list[ResponsesWire] = []
        self._make_secret = secret
        self._secret = b""
        self._taught: dict[Origin, tuple[Policy, bool, bool]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancel what is under way, then let go of the store and of all connections."""
        for run in [run for run in self.runs if run.running]:
            run.cancel()
            await run.over()
        for socket in self._sockets:
            await socket.close()
        if self._own_wire and self._wire is not None:
            await self._wire.close()
        await self.store.close()

    # -- sessions --------------------------------------------------------------------------------

    async def create(
        self,
        *,
        provider: Provider | None = None,
        system: str = "",
        tools: Iterable[Tool | Callable[..., Any]] = (),
        permit: Permission | None = None,
        most: int = 50,
        tool_timeout: float | None = 120.0,
        id: str = "",
    ) -> Chat:
        """A new session. It is in the store once something was said in it.

        Args:
            provider: whom to ask.
            system: the system prompt; it is no part of the log.
            tools: what the model may call: plain functions, or made by `tool`.
            permit: asked before a tool is called; without it, every tool may be called.
            most: exchanges that one run may take before it is capped.
            tool_timeout: seconds that a tool may take, unless it says otherwise itself.
            id: the session's id; made up when empty.
        """
        if most < 1:
            raise ThoughtlineError(f"most={most}: a run takes at least one exchange")
        options = Options(
            provider=provider,
            system=system,
            tools=Toolbox(tools),
            permit=permit,
            most=most,
            limits=Limits(timeout=tool_timeout),
        )
        ledger = self._ledger(id or self.clock.new_id())
        if id and await ledger.refresh():
            raise ThoughtlineError(f"session {id!r} is there already; resume it, or fork it")
        return Chat(self, ledger, options)

    async def resume(
        self,
        session: str,
        *,
        at: str = "",
        provider: Provider | None = None,
        system: str = "",
        tools: Iterable[Tool | Callable[..., Any]] = (),
        permit: Permission | None = None,
        most: int = 50,
        tool_timeout: float | None = 120.0,
    ) -> Chat:
        """A session that is in the store, at the turn that started last, or at the one given."""
        ledger = self._ledger(session)
        if not await ledger.refresh():
            raise ThoughtlineError(
                f"there is no session {session!r} here; `sessions` says which are"
            )
        chat = await self.create(
            provider=provider,
            system=system,
            tools=tools,
            permit=permit,
            most=most,
            tool_timeout=tool_timeout,
        )
        made = Chat(self, ledger, chat.options)
        return made.switch(at) if at else made

    async def fork(self, session: str, turn: str, *, options: Options | None = None) -> Chat:
        """A new session that goes on from any turn of another one, by reference."""
        origin = self._ledger(session)
        await origin.refresh()
        origin.path(turn)  # raises for one that is not there
        owner = next(made.session for made in origin.path(turn) if made.id == turn)
        ledger = self._ledger(self.clock.new_id())
        forked = ledger.draft(SessionForked(session=owner, turn=turn), "")
        await ledger.write([forked], alone=True)
        await ledger.refresh()
        return Chat(self, ledger, options or Options())

    async def sessions(self, *, limit: int = 50, before: float | None = None) -> list[Summary]:
        """Sessions, the last used first, of gateways on the same store, too."""
        return await self.store.sessions(limit=limit, before=before)

    async def read(self, session: str) -> Session:
        """A session, folded: its turns, branches and heads."""
        ledger = self._ledger(session)
        if not await ledger.refresh():
            raise ThoughtlineError(
                f"there is no session {session!r} here; `sessions` says which are"
            )
        return ledger.session

    def watch(self, session: str, *, after: int = -1) -> AsyncIterator[Event]:
        """A session's events, then those that any process writes to it from now on."""
        return self.store.watch(session, after=after)

    async def delete(self, session: str) -> bool:
        """Delete a whole session, unless a fork goes on from it."""
        return bool(await self.store.purge(session=session))

    # -- moving ----------------------------------------------------------------------------------

    def export_lines(self, session: str, *, alone: bool = False) -> AsyncIterator[str]:
        """A session as lines of JSON, with those it was forked from unless `alone`. Lossless."""
        return transfers.export_lines(self.store, session, alone=alone)

    async def import_lines(
        self, lines: Iterable[str | bytes], *, rename: bool = False
    ) -> list[str]:
        """Sessions from lines that `export_lines` gave; their ids here.

        A session that is there already is extended if the lines go on from it and left alone if
        they say nothing new. If they say something else it is a `Conflict`, or with `rename` a
        session of its own under a new id.
        """
        return await transfers.import_lines(
            self.store, lines, tenant=self.tenant, clock=self.clock, rename=rename
        )

    # -- for chats -------------------------------------------------------------------------------

    @property
    def wire(self) -> Wire:
        """What moves bytes to providers."""
        if self._wire is None:
            from thoughtline.wires.http import HttpWire

            self._wire = HttpWire()
        return self._wire

    def socket(self) -> ResponsesWire:
        """A WebSocket for one chat; opened when it is used, and HTTP where there is none."""
        fallback = over_http(self.wire, Splitter)
        lanes = WebSockets(lanes=True)  # a server that knows none says so
        self._sockets.append(ResponsesWire(fallback=fallback, clock=self.clock, options=lanes))
        return self._sockets[-1]

    def account(self, credential: str) -> str:
        """Under which name a credential is known here."""
        if credential and not self._secret:
            self._secret = self._make_secret()
        return accounts.fingerprint(self._secret, credential)

    def learn(self, before: Terms, after: Terms) -> None:
        """Remember what an endpoint taught, as long as this log is open."""
        stateless = before.stateful and not after.stateful
        lesson = (after.target.policy, after.renamed, stateless)
        if lesson != (before.target.policy, before.renamed, False):
            self._taught[after.target.origin] = lesson

    def taught(self, terms: Terms) -> Terms:
        """The terms with what the endpoint taught."""
        if (known := self._taught.get(terms.target.origin)) is None:
            return terms
        policy, renamed, stateless = known
        target = replace(terms.target, policy=policy)
        stateful = terms.stateful and not stateless
        return replace(terms, target=target, renamed=renamed, stateful=stateful)

    def _ledger(self, session: str) -> Ledger:
        return Ledger(self.store, session, tenant=self.tenant, clock=self.clock)


def open_log(
    url: str = "memory://",
    *,
    tenant: str = TENANT,
    wire: Wire | None = None,
    clock: Clock | None = None,
    secret: bytes | None = None,
) -> Log:
    """Open a store of sessions, to be used in an `async with` block.

    Args:
        url: `sqlite:///agent.db`, `sqlite:////absolute/path.db` or `memory://`.
        tenant: to whom new sessions belong.
        wire: what moves bytes to providers; HTTP when not given.
        clock: where time and ids come from.
        secret: the key under which credentials are hashed; the store's own when not given.
    """
    clock = clock or SystemClock()

    def key() -> bytes:
        return secret or accounts.secret(url, os.environ)

    return Log(open_store(url, clock=clock), tenant=tenant, clock=clock, wire=wire, secret=key)
