"""Conversations that grow: each request is one exchange longer than the last, as agents send them.

An exchange is a tool call of the model and its result. The client keeps no thoughts, so that all of
them are put back each time. What a request costs is given over the number of its messages.
"""

import asyncio
import itertools
import json
import random
from typing import NamedTuple

from benchmarks.loads import Connection, ask, connected, request
from benchmarks.stands import Stand, cpu
from benchmarks.upstream import calling

Curve = dict[int, float]
"""Seconds of processor time per request, by the number of messages."""

STEPS = 5
"""Exchanges that one point of a curve stands for."""

_serial = itertools.count(1)


class Growth(NamedTuple):
    """How far conversations grow, and how many of them do at once."""

    messages: int
    size: int  # bytes of the last request
    conversations: int


GROWTHS = (Growth(82, 100_000, 4), Growth(300, 500_000, 2))


class Conversation:
    """One conversation; its client keeps the messages as they stand on the wire."""

    def __init__(self, stand: Stand, growth: Growth, connection: Connection) -> None:
        self._stand = stand
        self._connection = connection
        self._name = next(_serial)
        self._calls = 0
        self._words = random.Random(self._name)
        self._result_size = 2 * growth.size // growth.messages - 200  # the call takes the rest
        self._messages = [
            _message("system", "Be brief. " * 40),
            _message("user", f"Please mend the files of project {self._name}."),
        ]

    async def ask(self) -> None:
        """Ask, and take the answer and the result of its call into the conversation."""
        self._calls += 1
        call = f"call_{self._name}_{self._calls}"
        body = b'{"model":"deepseek-v4-pro","tools":[{"type":"function","function":'
        body += b'{"name":"run","parameters":{}}}],"messages":[' + b",".join(self._messages) + b"]}"
        asked = request(self._stand.path, body, *self._stand.headers)
        await ask(*self._connection, asked)
        words = self._words.choices(_WORDS, k=self._result_size // 8)
        result = {"role": "tool", "tool_call_id": call, "content": " ".join(words)}
        self._messages += [json.dumps(calling(call)).encode(), json.dumps(result).encode()]


_WORDS = [f"word{number:03}" for number in range(500)]


def _message(role: str, content: str) -> bytes:
    return json.dumps({"role": role, "content": content}).encode()


def grow(stand: Stand, growth: Growth) -> Curve:
    """What the requests of growing conversations cost, by their length."""
    return asyncio.run(_grow(stand, growth))


async def _grow(stand: Stand, growth: Growth) -> Curve:
    async with connected(stand.port, growth.conversations) as connections:
        talks = [Conversation(stand, growth, connection) for connection in connections]
        curve: Curve = {}
        exchanges = growth.messages // 2
        before, counted = cpu(stand.pid), 0
        for number in range(1, exchanges + 1):
            await asyncio.gather(*(talk.ask() for talk in talks))
            if (exchanges - number) % STEPS == 0:
                now = cpu(stand.pid)
                curve[2 * number] = (now - before) / ((number - counted) * len(talks))
                before, counted = now, number
    return curve
