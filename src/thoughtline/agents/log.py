"""The log: a store of sessions, opened by URL, with the calls that create, resume and move them.

    async with thoughtline.open("sqlite:///agent.db") as log:
        chat = await log.create(provider=Provider("deepseek", model="deepseek-v4-pro"))

The log holds everything that happened in a session, and its system prompt. What it does not hold
(the provider and its key, the tools) is given when a session is created or resumed.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any, Self
from weakref import WeakSet

from thoughtline.agents import export
from thoughtline.agents.chat import Chat, ChatOptions
from thoughtline.agents.provider import Provider, as_provider
from thoughtline.agents.run import Run
from thoughtline.agents.session_writer import SessionWriter
from thoughtline.agents.tools import Permission, Tool, Toolbox
from thoughtline.agents.tools.execute import ToolLimits
from thoughtline.clock import Clock, SystemClock
from thoughtline.engine.caller import Unobserved
from thoughtline.engine.exchange import Engine
from thoughtline.engine.folders import store_file
from thoughtline.engine.secrets import CredentialHash, store_secret
from thoughtline.errors import InvalidArgument, SessionExists, SessionNotFound
from thoughtline.log.events import Event, SessionForked
from thoughtline.log.sessions import Session
from thoughtline.log.turns import system_prompt
from thoughtline.stores import open_store
from thoughtline.stores.base import INTERNAL_PREFIX, EntryFilter, SessionSummary, Store
from thoughtline.stores.deletions import PURGE, NeighbourDeletions, tell_deletion
from thoughtline.stores.sealing import open_keychain
from thoughtline.wires.base import Wire
from thoughtline.wires.websocket.http_adapter import http_fallback
from thoughtline.wires.websocket.wire import ResponsesWire, WebSocketOptions

TENANT = "local"
"""The tenant of sessions that the library makes; a gateway's have the client's."""


class Log:
    """A store of sessions. Made by `thoughtline.open`."""

    def __init__(
        self,
        store: Store,
        *,
        tenant: str,
        clock: Clock,
        wire: Wire | None,
        secret: Callable[[], bytes],
        file: Path | None = None,
    ) -> None:
        """`file` is that of a store that only this machine has."""
        self.store = store
        self.tenant = tenant
        self.clock = clock
        self.deletions = NeighbourDeletions(store, file, clock)
        self.runs: WeakSet[Run] = WeakSet()  # those that may be running
        self._wire = wire
        self._own_wire = wire is None
        self._sockets: list[ResponsesWire] = []
        self._make_secret = secret
        self._hash: CredentialHash | None = None
        self.engine = Engine(store, observer=Unobserved(), clock=clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancel runs that are under way, then close the store and all connections."""
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
        provider: Provider | str | None = None,
        system: str = "",
        tools: Iterable[Tool | Callable[..., Any]] = (),
        permit: Permission | None = None,
        max_exchanges: int = 50,
        tool_timeout: float | None = 120.0,
        id: str = "",
    ) -> Chat:
        """Create a session. It is in the store once its first turn has started.

        Args:
            provider: the provider and model to ask; also as a string, `deepseek/deepseek-v4-pro`.
            system: the system prompt; the log holds it, for `resume`.
            tools: what the model may call: plain functions, or made by `tool`.
            permit: asked before a tool is called; without it, every call is made.
            max_exchanges: exchanges that one run may take before it is capped.
            tool_timeout: seconds that a call of a tool without its own `timeout` may take.
            id: the session's id; a new one when empty.
        """
        options = _options(
            provider=provider,
            system=system,
            tools=tools,
            permit=permit,
            max_exchanges=max_exchanges,
            tool_timeout=tool_timeout,
        )
        writer = self._session_writer(id or self.clock.new_id())
        if id and await writer.refresh():
            raise SessionExists(f"session {id!r} is there already; resume it, or choose another id")
        return Chat(self, writer, options)

    async def resume(
        self,
        session: str,
        *,
        at: str = "",
        provider: Provider | str | None = None,
        system: str | None = None,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        permit: Permission | None = None,
        max_exchanges: int = 50,
        tool_timeout: float | None = 120.0,
    ) -> Chat:
        """Open a session of the store, at the turn that started last, or at the one given.

        Args:
            session: its id.
            at: the turn to go on from; the one that started last when empty.
            provider: as for `create`: the log does not hold it.
            system: the system prompt from now on. None: as it was at this turn; empty: none.
            tools: as for `create`: the log does not hold them.
            permit: as for `create`.
            max_exchanges: as for `create`.
            tool_timeout: as for `create`.
        """
        writer = await self._existing(session)
        chat = Chat(self, writer, ChatOptions())
        if at:
            chat.switch(at)
        chat.options = _options(
            provider=provider,
            system=system_prompt(chat.turns) if system is None else system,
            tools=tools,
            permit=permit,
            max_exchanges=max_exchanges,
            tool_timeout=tool_timeout,
        )
        return chat

    async def fork(self, session: str, turn: str, *, options: ChatOptions | None = None) -> Chat:
        """Make a new session that goes on from any turn of another one, by reference."""
        origin = self._session_writer(session)
        await origin.refresh()
        path = origin.path(turn)  # raises for an unknown turn
        owner = next(found.session for found in path if found.id == turn)
        writer = self._session_writer(self.clock.new_id())
        forked = writer.draft(SessionForked(session=owner, turn=turn), "")
        await writer.write([forked], alone=True)
        await writer.refresh()
        return Chat(self, writer, options or ChatOptions(system=system_prompt(path)))

    async def sessions(
        self, *, limit: int = 50, before: float | None = None
    ) -> list[SessionSummary]:
        """Sessions, the last used first, including those of gateways on the same store."""
        found = await self.store.sessions(limit=limit + 1, before=before)  # one may be internal
        return [one for one in found if not one.session.startswith(INTERNAL_PREFIX)][:limit]

    async def read(self, session: str) -> Session:
        """Read a session: its turns, branches and heads."""
        return (await self._existing(session)).session

    def watch(self, session: str, *, after: int = -1) -> AsyncIterator[Event]:
        """A session's events, then those that any process writes to it from now on."""
        return self.store.watch(session, after=after)

    async def delete(self, session: str) -> bool:
        """Delete a session, unless a fork goes on from it; whether it was deleted."""
        which = EntryFilter(session=session)
        await self.deletions.note(PURGE, which)
        if not await self.store.purge(session=session):
            return False
        await tell_deletion(self.store, self.clock, PURGE, which)
        return True

    # -- export and import -----------------------------------------------------------------------

    def export_lines(self, session: str, *, alone: bool = False) -> AsyncIterator[str]:
        """A session as lines of JSON, with those it was forked from unless `alone`. Lossless."""
        return export.export_lines(self.store, session, alone=alone)

    async def import_lines(
        self, lines: Iterable[str | bytes], *, rename: bool = False
    ) -> list[str]:
        """Import sessions from lines that `export_lines` gave; their ids here.

        A session that is there already is extended if the lines go on from it, and left alone if
        they hold nothing new. If they differ from it, that is a `Conflict`, or with `rename` a
        session of its own under a new id.
        """
        return await export.import_lines(
            self.store, lines, tenant=self.tenant, clock=self.clock, rename=rename
        )

    # -- for chats -------------------------------------------------------------------------------

    @property
    def wire(self) -> Wire:
        """The wire that moves bytes to providers; HTTP unless another was given."""
        if self._wire is None:
            from thoughtline.agents.default_wire import DefaultWire

            self._wire = DefaultWire()
        return self._wire

    def socket(self) -> ResponsesWire:
        """A WebSocket for one chat; it connects when it is used, and falls back to HTTP."""
        fallback = http_fallback(self.wire)
        options = WebSocketOptions(stream_ids=True)  # a server without parallel streams says so
        self._sockets.append(ResponsesWire(fallback=fallback, clock=self.clock, options=options))
        return self._sockets[-1]

    def account(self, credential: str) -> str:
        """The account of a credential: its keyed hash."""
        if not credential:
            return ""
        self._hash = self._hash or CredentialHash(self._make_secret())
        return self._hash(credential)

    def _session_writer(self, session: str) -> SessionWriter:
        return SessionWriter(self.store, session, tenant=self.tenant, clock=self.clock)

    async def _existing(self, session: str) -> SessionWriter:
        writer = self._session_writer(session)
        if not await writer.refresh():
            raise SessionNotFound(
                f"there is no session {session!r} in this store; `await log.sessions()` lists them"
            )
        return writer


def _options(
    *,
    provider: Provider | str | None,
    system: str,
    tools: Iterable[Tool | Callable[..., Any]],
    permit: Permission | None,
    max_exchanges: int,
    tool_timeout: float | None,
) -> ChatOptions:
    if max_exchanges < 1:
        raise InvalidArgument(f"max_exchanges={max_exchanges}: a run takes at least one exchange")
    return ChatOptions(
        provider=as_provider(provider),
        system=system,
        tools=Toolbox(tools),
        permit=permit,
        max_exchanges=max_exchanges,
        limits=ToolLimits(timeout=tool_timeout),
    )


def open_log(
    url: str = "memory://",
    *,
    tenant: str = TENANT,
    wire: Wire | None = None,
    clock: Clock | None = None,
    secret: bytes | None = None,
    keys: str = "",
    seal: bool = True,
    require_sealed: bool = False,
) -> Log:
    """Open a store of sessions, to be used in an `async with` block.

    Args:
        url: `sqlite:///agent.db`, `sqlite:////absolute/path.db` or `memory://`.
        tenant: the owner of new sessions.
        wire: moves bytes to providers; HTTP when not given.
        clock: gives time and ids.
        secret: the key that credentials are hashed with; the store's own when not given.
        keys: where the master keys are that seal what is stored: `file:PATH`, `env:NAME` or
            `exec:COMMAND`.
        seal: whether what is written is sealed; False: what is sealed is only opened.
        require_sealed: refuse what is stored plainly.
    """
    clock = clock or SystemClock()
    keychain = open_keychain(keys, os.environ, seals=seal, requires=require_sealed)

    def key() -> bytes:
        return secret or store_secret(url, os.environ)

    store = open_store(url, clock=clock, keychain=keychain)
    return Log(store, tenant=tenant, clock=clock, wire=wire, secret=key, file=store_file(url))
