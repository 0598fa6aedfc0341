"""Small conversations of two requests; each is new, and each of its answers is another one.

What is measured is the second request: it goes on from a turn that was written a moment ago, and
the thought of that turn is put back. The client has thrown it away. So conversations are begun
first, some at a time, and what is measured begins with the requests that `begin` returns.
"""

import asyncio
import itertools
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.loads import Asked, Connection, connected, load_on, request
from benchmarks.stands import Stand

_SYSTEM = "Be brief. " * 40
_SHAPES: dict[str, dict[str, Any]] = {
    "chat": {
        "model": "deepseek-v4-pro",
        "messages": [{"role": "system", "content": _SYSTEM}],
        "tools": [{"type": "function", "function": {"name": "run", "parameters": {}}}],
    },
    "messages": {
        "model": "deepseek-v4-pro",
        "max_tokens": 4096,
        "system": _SYSTEM,
        "messages": [],
        "tools": [{"name": "run", "input_schema": {"type": "object"}}],
        "stream": True,  # as all clients of this API do
    },
}
"""What a request has beside its words."""

_serial = itertools.count(1)


class TwoRequests(NamedTuple):
    """A conversation, as its requests stand on the wire."""

    first: bytes
    second: bytes


def new_conversation(stand: Stand, dialect: str = "chat") -> TwoRequests:
    """Return a new conversation, whose second request knows the answer to the first."""
    path = stand.path if dialect == "chat" else stand.path.replace("chat/completions", dialect)
    streamed = "stream" in _SHAPES[dialect]
    answer = "Done. {}" if streamed else "All done, the file is mended. {}"
    number = next(_serial)
    asked = _said("user", f"Please mend the file {number}. " * 10)
    answered = _said("assistant", answer.format(number))
    more = _said("user", f"And now the file {next(_serial)}.")
    first, second = (_body(dialect, said) for said in ([asked], [asked, answered, more]))
    return TwoRequests(request(path, first, *stand.headers), request(path, second, *stand.headers))


async def begin(
    stand: Stand, connections: Sequence[Connection], count: int, *, dialect: str = "chat"
) -> Asked:
    """Begin so many new conversations, and return the second request of each, by its number."""
    made = [new_conversation(stand, dialect) for _ in range(count)]
    await load_on(connections, [one.first for one in made].__getitem__, count)
    return [one.second for one in made].__getitem__


def first_request() -> bytes:
    """The body of the first request of a new conversation."""
    return _body("chat", [_said("user", f"Please mend the file {next(_serial)}. " * 10)])


def streamed(stand: Stand, chunks: int, seconds: float) -> Asked:
    """Requests for streams with this pace, each in a new conversation."""
    pace = f"x-pace: {chunks}/{seconds}"

    def asked(_: int) -> bytes:
        body = first_request()[:-1] + b',"stream":true}'
        return request(stand.path, body, pace, *stand.headers)

    return asked


def warm_up(stand: Stand) -> None:
    """Let a server do its work for a while."""

    async def work(count: int) -> None:
        async with connected(stand.port, 16) as connections:
            await load_on(connections, await begin(stand, connections, count), count)

    asyncio.run(work(20 if stand.slow else 300))


def _said(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


def _body(dialect: str, messages: list[dict[str, str]]) -> bytes:
    shape = _SHAPES[dialect]
    return json.dumps({**shape, "messages": [*shape["messages"], *messages]}).encode()
