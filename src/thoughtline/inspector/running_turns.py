"""Turns that run right now: in this worker, in other workers of the gateway, and on other nodes.

Nothing is written down for this: a request's reader knows anyway when a thought opened, and it is
asked when somebody looks. Each worker answers the others on a socket in a folder that only they
may enter. The question says which version of each turn is known, so that an unchanged turn costs a
few bytes. Nodes that share a store show one another their turns in it, while somebody looks.
A run of the library in another process is seen once it is written.
"""

import asyncio
import os
import uuid
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thoughtline.engine.recording import Recording
from thoughtline.errors import StoreError
from thoughtline.log.turns import Turn
from thoughtline.stores.base import Store

PEER_TIMEOUT = 0.5
"""Seconds that a peer worker may take to answer."""

SHOW_EVERY = 1.0
"""Seconds after which a node shows again what runs on it."""

MAX_SHOWN = 4 << 20
"""Bytes of running turns that a node shows at most."""

TurnVersion = tuple[bool, ...]
"""A value that changes whenever a thought of a turn opens or closes, or the model speaks."""


class PeerTurn(Struct, frozen=True, kw_only=True):
    """A turn that runs in a peer worker, as it was when its version last changed."""

    tenant: str
    session: str
    turn: str
    version: TurnVersion
    spoke: bool
    contents: Turn | None = None  # None: the asking worker knows this version already

    def snapshot(self) -> Turn:
        """The turn as far as it had come."""
        return self.contents or Turn(id=self.turn, session=self.session)


RunningTurn = Recording | PeerTurn
"""A turn while it runs, in this process or in a peer worker."""

_encode = msgspec.msgpack.Encoder().encode
_decode_question = msgspec.msgpack.Decoder(dict[str, TurnVersion]).decode
_decode_answer = msgspec.msgpack.Decoder(list[PeerTurn]).decode


class RunningTurns:
    """Finds running turns; those of peer workers too, where they share a `folder`."""

    def __init__(
        self,
        recordings: Iterable[Recording],
        folder: Path | None = None,
        store: Store | None = None,
    ) -> None:
        self._recordings = recordings
        self._peers: PeerWorkers | PeerNodes | None = None
        if store is not None and store.shared:  # its workers are nodes, too
            self._peers = PeerNodes(store, self.own)
        elif folder:
            self._peers = PeerWorkers(folder, self.own)

    async def refresh(self) -> None:
        """Ask the peers what runs there."""
        if self._peers is not None:
            await self._peers.refresh()

    @property
    def tasks(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """What must run for as long as peers may ask: nothing where there are none."""
        return [self._peers.serve] if self._peers else []

    def own(self) -> Iterator[Recording]:
        """The exchanges of this process whose turn is not written yet."""
        return (recording for recording in self._recordings if recording.running)

    def running(self) -> Iterator[RunningTurn]:
        """The exchanges of this process, then the peers' turns as of the last refresh."""
        yield from self.own()
        if self._peers is not None:
            yield from self._peers.running()

    def turns(self, session: str | None = None) -> list[tuple[str, Turn]]:
        """Tenant and snapshot of each running turn, in the order the turns started."""
        found = [
            (running.tenant, running.snapshot())
            for running in self.running()
            if session in {None, running.session}
        ]
        return sorted(found, key=lambda pair: (pair[1].started, pair[1].id))


class PeerWorkers:
    """The other workers of this gateway, by the names of their sockets.

    A peer that is too busy to answer in time is taken to be as it was; the turns of one that is
    gone are forgotten.
    """

    def __init__(self, folder: Path, own: Callable[[], Iterable[RunningTurn]]) -> None:
        self._folder = folder
        self._own = own
        self._name = f"{os.getpid()}-{id(self):x}.sock"
        self._turns: dict[str, dict[str, PeerTurn]] = {}  # socket → turn id → turn
        self._asking = asyncio.Lock()

    def running(self) -> Iterator[PeerTurn]:
        """What runs there, as of the last refresh."""
        return (turn for turns in self._turns.values() for turn in turns.values())

    async def refresh(self) -> None:
        """Ask all peers at once."""
        async with self._asking:  # an answer that is overtaken would bring back what is over
            present = {path.name for path in self._folder.glob("*.sock")} - {self._name}
            for gone in self._turns.keys() - present:
                del self._turns[gone]
            await asyncio.gather(*(self._ask(name) for name in present))

    async def _ask(self, name: str) -> None:
        known = self._turns.get(name, {})
        question = _encode({id: turn.version for id, turn in known.items()})
        try:
            answer = _decode_answer(await _roundtrip(self._folder / name, question))
        except TimeoutError:
            return
        except (OSError, msgspec.MsgspecError):
            self._turns.pop(name, None)
            return
        self._turns[name] = {turn.turn: _completed(turn, known.get(turn.turn)) for turn in answer}

    async def serve(self) -> None:
        """Answer the peers until this is cancelled."""
        path = self._folder / self._name
        server = await asyncio.start_unix_server(self._answer, path)
        try:
            await server.serve_forever()
        finally:
            path.unlink(missing_ok=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PEER_TIMEOUT):
                known = _decode_question(await reader.read())
                writer.write(_encode([_peer_turn(turn, known) for turn in self._own()]))
                await writer.drain()
        except (OSError, msgspec.MsgspecError):
            return  # the peer hung up, did not go on, or sent something else than a question
        finally:
            writer.close()


class PeerNodes:
    """The other nodes that share the store, which show there what runs on them."""

    def __init__(
        self, store: Store, own: Callable[[], Iterable[RunningTurn]], *, every: float = SHOW_EVERY
    ) -> None:
        self._store = store
        self._own = own
        self._every = every
        self._name = uuid.uuid4().hex
        self._turns: list[PeerTurn] = []

    def running(self) -> Iterator[PeerTurn]:
        """What runs there, as of the last refresh."""
        return iter(self._turns)

    async def refresh(self) -> None:
        """Read what they show; a store that does not answer leaves it as it was."""
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(PEER_TIMEOUT):
                shown = await self._store.look_at_running(self._name)
            turns: list[PeerTurn] = []
            for data in shown.values():
                with suppress(msgspec.MsgspecError):  # of a node with another version
                    turns += _decode_answer(data)
            self._turns = turns

    async def serve(self) -> None:
        """Show what runs here, until this is cancelled."""
        looked_at = False
        while True:
            shown = _encode([_peer_turn(turn, {}) for turn in self._own()]) if looked_at else None
            if shown is not None and len(shown) > MAX_SHOWN:
                shown = None
            try:
                async with asyncio.timeout(PEER_TIMEOUT):
                    looked_at = await self._store.show_running(self._name, shown)
            except (StoreError, TimeoutError):
                looked_at = False
            await asyncio.sleep(self._every)


async def _roundtrip(path: Path, question: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path)  # at once, or not at all
    try:
        async with asyncio.timeout(PEER_TIMEOUT):
            writer.write(question)
            writer.write_eof()
            return await reader.read()
    finally:
        writer.transport.abort()


def _peer_turn(running: RunningTurn, known: dict[str, TurnVersion]) -> PeerTurn:
    unchanged = known.get(running.turn) == running.version
    return PeerTurn(
        tenant=running.tenant,
        session=running.session,
        turn=running.turn,
        version=running.version,
        spoke=running.spoke,
        contents=None if unchanged else running.snapshot(),
    )


def _completed(turn: PeerTurn, known: PeerTurn | None) -> PeerTurn:
    """The turn with the contents that are known, where the peer left them out."""
    return replace(turn, contents=known.contents) if turn.contents is None and known else turn
