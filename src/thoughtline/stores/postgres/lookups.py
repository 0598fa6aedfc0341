"""Look-ups in groups: those that come at the same time go together, in one statement.

A round trip costs about the same for one look-up and for ten, of whichever tenants. None waits for
others to come. One that comes alone is sent at once by its caller; where several come together, a
task sends what is there when its turn in the loop comes, and what comes later goes with the next.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import asyncpg

from thoughtline.errors import Unavailable
from thoughtline.log.index import MAX_CANDIDATES
from thoughtline.stores.postgres.bodies import Body
from thoughtline.stores.postgres.connections import READERS, Connections
from thoughtline.stores.postgres.migrations import call

MAX_TOGETHER = 256
"""Names in a group. A look-up of more goes alone: others would wait for its answer."""

_FIND = call("find", 6)

_NTH = 9
"""The column that says which of its look-ups a row belongs to."""

Answer = tuple[Sequence[asyncpg.Record], Mapping[bytes, Body]]
"""A row about the tenant, one for each entry, and the bodies of entries that come without."""


class LookUp:
    """A look-up of one tenant, and who waits for it."""

    def __init__(self, tenant: bytes, names: Sequence[bytes], known: Mapping[bytes, Body]) -> None:
        """`known` are the entries that do not have to be sent: id → body."""
        self.asked = tenant, b"".join(names)
        self.names = len(names)
        self.known = known


class _Waiting:
    """A look-up that somebody waits for."""

    def __init__(self, look_up: LookUp) -> None:
        self.look_up = look_up
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.group: _Group | None = None  # with which it is under way


class _Group:
    """Look-ups that are under way together."""

    task: asyncio.Task[None]

    def __init__(self) -> None:
        self.members: list[_Waiting] = []


class LookUps:
    """The look-ups that wait, and the groups that are under way."""

    def __init__(
        self, connections: Connections, times: Callable[[], tuple[float, float, float | None]]
    ) -> None:
        """`times` are the retention, how often uses are noted, and the time for the database."""
        self._connections = connections
        self._times = times
        self._queue: deque[_Waiting] = deque()
        self._running = 0  # groups
        self._starting = False  # one of them has not taken anything from the queue yet
        self._crowded = False  # several came together, the last time

    async def ask(self, look_up: LookUp) -> Answer:
        """Ask the database. Who stops waiting takes nobody else's answer away."""
        if not self._running and not self._crowded:
            return await self._ask_alone(look_up)
        waiting = _Waiting(look_up)
        self._queue.append(waiting)
        self._start()
        try:
            return await waiting.answer
        except asyncio.CancelledError:
            self._leave(waiting)
            raise

    async def _ask_alone(self, look_up: LookUp) -> Answer:
        self._running += 1
        try:
            return await self._find([look_up.asked], look_up.known), look_up.known
        finally:
            self._ended()

    def _start(self) -> None:
        if not self._starting and self._running < READERS:
            self._starting = True
            self._running += 1
            group = _Group()
            group.task = asyncio.get_running_loop().create_task(self._run(group))

    def _ended(self) -> None:
        self._running -= 1
        if self._queue:
            self._start()

    def _leave(self, waiting: _Waiting) -> None:
        if waiting.group is None:
            self._queue.remove(waiting)
        elif all(one.answer.done() for one in waiting.group.members):
            waiting.group.task.cancel()  # nobody waits for it any more

    async def _run(self, group: _Group) -> None:
        self._fill(group)
        self._starting = False
        if self._queue:
            self._start()
        try:
            if group.members:
                await self._ask(group.members)
        finally:
            for one in group.members:
                one.answer.cancel()  # that of all who have none: the loop is being closed
            self._ended()

    def _fill(self, group: _Group) -> None:
        """Take from the queue what goes together."""
        names = 0
        while self._queue:
            names += self._queue[0].look_up.names
            if group.members and names > MAX_TOGETHER:
                break
            waiting = self._queue.popleft()
            waiting.group = group
            group.members.append(waiting)
        self._crowded = len(group.members) > 1

    async def _ask(self, members: Sequence[_Waiting]) -> None:
        """Ask for several; each of them is told what came of it."""
        try:
            answers = await self._find_several([one.look_up for one in members])
        except Exception as error:  # noqa: BLE001 — who waits is told, whatever it is
            if len(members) == 1 or isinstance(error, Unavailable):
                for one in members:
                    if not one.answer.done():
                        one.answer.set_exception(error)
                return
            for one in members:  # one may be at fault, and the others are not
                await self._ask([one])
            return
        for one, answer in zip(members, answers, strict=True):
            if not one.answer.done():
                one.answer.set_result(answer)

    async def _find(
        self, asked: Sequence[tuple[bytes, bytes]], known: Mapping[bytes, Body]
    ) -> Sequence[asyncpg.Record]:
        return await self._connections.read(
            _FIND, asked, _tokens(known), MAX_CANDIDATES, *self._times()
        )

    async def _find_several(self, look_ups: Sequence[LookUp]) -> list[Answer]:
        known: dict[bytes, Body] = {}
        for one in look_ups:
            known.update(one.known)
        rows = await self._find([one.asked for one in look_ups], known)
        parts: list[list[asyncpg.Record]] = [[] for _ in look_ups]
        for row in rows:
            parts[row[_NTH]].append(row)
        return [(part, known) for part in parts]


def _tokens(known: Mapping[bytes, Body]) -> bytes:
    return b"".join([body.token for body in known.values()])
