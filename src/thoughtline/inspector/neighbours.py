"""What runs in the other workers of a gateway: they are asked when somebody looks, and only then.

Each worker answers at a socket in a folder that they share and nobody else may enter. Who asks says
what is known already, so a turn in which nothing has happened since costs a few bytes. One that is
too busy to answer is taken to be as it was; one that is gone takes its turns along.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thoughtline.turns import Turn

PATIENCE = 0.5
"""Seconds that a neighbour may take."""

Pulse = tuple[bool, ...]


class Running(Protocol):
    """A turn while it runs: an exchange of this process, or what a neighbour said of one of its."""

    @property
    def tenant(self) -> str:
        """Whose it is."""

    @property
    def session(self) -> str:
        """The session that it will be written to."""

    @property
    def turn(self) -> str:
        """Its id."""

    @property
    def pulse(self) -> Pulse:
        """Changes whenever a thought opens or closes, or the model speaks."""

    @property
    def spoke(self) -> bool:
        """Whether anything but thoughts has come."""

    def glimpse(self) -> Turn:
        """The turn as far as it has come."""


class Sight(Struct, frozen=True, kw_only=True):
    """A turn that runs in another process, as it was when its pulse last changed."""

    tenant: str
    session: str
    turn: str
    pulse: Pulse
    spoke: bool
    seen: Turn | None = None  # None: nothing new for the one who asked

    def glimpse(self) -> Turn:
        """The turn as far as it had come."""
        return self.seen or Turn(id=self.turn, session=self.session)


_encode = msgspec.msgpack.Encoder().encode
_known = msgspec.msgpack.Decoder(dict[str, Pulse])
_told = msgspec.msgpack.Decoder(list[Sight])


class Neighbours:
    """The other workers, by the names of their sockets."""

    def __init__(self, folder: Path, own: Callable[[], Iterable[Running]]) -> None:
        self._folder = folder
        self._own = own
        self._name = f"{os.getpid()}-{id(self):x}.sock"
        self._sights: dict[str, dict[str, Sight]] = {}
        self._asking = asyncio.Lock()

    def running(self) -> Iterator[Sight]:
        """What runs there, as of the last look."""
        return (sight for sights in self._sights.values() for sight in sights.values())

    async def look(self) -> None:
        """Ask all of them at once."""
        async with self._asking:  # an answer that is overtaken would bring back what is over
            there = {path.name for path in self._folder.glob("*.sock")} - {self._name}
            for gone in self._sights.keys() - there:
                del self._sights[gone]
            await asyncio.gather(*(self._ask(name) for name in there))

    async def _ask(self, name: str) -> None:
        before = self._sights.get(name, {})
        known = {turn: sight.pulse for turn, sight in before.items()}
        try:
            told = _told.decode(await _exchanged(self._folder / name, _encode(known)))
        except TimeoutError:
            return
        except (OSError, msgspec.MsgspecError):
            self._sights.pop(name, None)
            return
        self._sights[name] = {sight.turn: _whole(sight, before.get(sight.turn)) for sight in told}

    # -- being asked -----------------------------------------------------------------------------

    async def answer(self) -> None:
        """Answer the others, until this is cancelled."""
        path = self._folder / self._name
        server = await asyncio.start_unix_server(self._answer, path)
        try:
            await server.serve_forever()
        finally:
            path.unlink(missing_ok=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                known = _known.decode(await reader.read())
                writer.write(_encode([_sight(one, known) for one in self._own()]))
                await writer.drain()
        except (OSError, msgspec.MsgspecError):
            return  # it left, did not go on, or spoke of something else
        finally:
            writer.close()


async def _exchanged(path: Path, asked: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path)  # at once, or not at all
    try:
        async with asyncio.timeout(PATIENCE):
            writer.write(asked)
            writer.write_eof()
            return await reader.read()
    finally:
        writer.transport.abort()


def _sight(one: Running, known: dict[str, Pulse]) -> Sight:
    return Sight(
        tenant=one.tenant,
        session=one.session,
        turn=one.turn,
        pulse=one.pulse,
        spoke=one.spoke,
        seen=None if known.get(one.turn) == one.pulse else one.glimpse(),
    )


def _whole(sight: Sight, before: Sight | None) -> Sight:
    return replace(sight, seen=before.seen) if sight.seen is None and before else sight
