"""What a translated request costs beside one that goes through untouched.

Both go through the same proxy in this process, to a wire that answers at once: a small request of
three messages, one of a tool loop with 40 turns, and the chunks of a long answer. Processor time,
in turns; the figures are ratios of medians.
"""

import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from thoughtline.engine.caller import Unobserved
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.gateway.auth import Auth
from thoughtline.gateway.proxy import Proxy
from thoughtline.stores.memory import MemoryStore
from thoughtline.wires.base import Headers, Inbound, Outbound

ROUNDS = 7
REQUESTS = 150
CHUNKS = 2000
_DONE = {"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


class _Observer(Unobserved):
    def passed(self, *_: Any) -> None: ...
    def refused(self, *_: Any) -> None: ...
    def sent(self, *_: Any) -> None: ...


class _Answer:
    def __init__(self, chunks: list[bytes]) -> None:
        kind = "text/event-stream" if len(chunks) > 1 else "application/json"
        self.status, self.headers = 200, [("content-type", kind)]
        self._chunks = chunks

    headers: Headers

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


class _Wire:
    """Answers at once, with what it was given."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    @asynccontextmanager
    async def send(self, request: Outbound) -> AsyncIterator[Inbound]:
        yield _Answer(self._chunks)

    async def close(self) -> None: ...


def _proxy(chunks: list[bytes], dialects: tuple[str, ...]) -> Proxy:
    upstream = Upstream(name="up", base_url="http://up", policy="generic", dialects=dialects)
    return Proxy(
        auth=Auth(b"secret" * 8),
        directory=Directory([upstream]),
        store=MemoryStore(),
        wire=_Wire(chunks),
        observer=_Observer(),  # type: ignore[arg-type]
    )


async def _post(proxy: Proxy, path: str, body: bytes) -> None:
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if waiting:
            return waiting.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None: ...

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(b"authorization", b"Bearer key"), (b"content-type", b"application/json")],
    }
    await proxy(scope, receive, send)


def _event(delta: dict[str, Any]) -> bytes:
    chunk = {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


WHOLE = [
    json.dumps(
        {
            "id": "c1",
            "model": "m",
            "choices": [
                {
                    "message": {"role": "assistant", "content": "Hi.", "reasoning_content": "Hm."},
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18},
        }
    ).encode()
]
STREAM = [_event({"reasoning_content": "Hm. "})] * 200
STREAM += [_event({"content": "word "})] * CHUNKS
STREAM += [b"data: " + json.dumps(_DONE).encode() + b"\n\n", b"data: [DONE]\n\n"]


def _chat(turns: int, *, stream: bool = False) -> bytes:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    for number in range(turns):
        call = {"id": f"call_{number}", "type": "function"}
        call |= {"function": {"name": "run", "arguments": json.dumps({"n": number})}}
        messages += [
            {"role": "user", "content": f"Question {number}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": "fine " * 40},
            {"role": "assistant", "content": f"Answer {number}."},
        ]
    messages.append({"role": "user", "content": "And now?"})
    tool = {"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}
    body = {"model": "m", "messages": messages, "tools": [tool], "stream": stream}
    return json.dumps(body).encode()


def _responses(turns: int, *, stream: bool = False) -> bytes:
    items: list[dict[str, Any]] = []
    for number in range(turns):
        id = f"call_{number}"
        arguments = json.dumps({"n": number})
        items += [
            {"role": "user", "content": f"Question {number}?"},
            {"type": "function_call", "call_id": id, "name": "run", "arguments": arguments},
            {"type": "function_call_output", "call_id": id, "output": "fine " * 40},
            {"type": "message", "role": "assistant", "content": f"Answer {number}."},
        ]
    items.append({"role": "user", "content": "And now?"})
    tool = {"type": "function", "name": "run", "parameters": {"type": "object"}}
    body = {"model": "m", "instructions": "Be brief.", "input": items, "tools": [tool]}
    return json.dumps(body | {"stream": stream}).encode()


async def _seconds(proxy: Proxy, path: str, body: bytes, times: int) -> float:
    start = time.process_time()
    for _ in range(times):
        await _post(proxy, path, body)
    await proxy.engine.writer.settled()
    return (time.process_time() - start) / times


async def _compare(
    chunks: list[bytes],
    body: Callable[..., bytes],
    other: Callable[..., bytes],
    turns: int,
    times: int,
) -> tuple[float, float]:
    stream = len(chunks) > 1
    plain: list[float] = []
    told: list[float] = []
    for _ in range(ROUNDS):
        own, translating = _proxy(chunks, ()), _proxy(chunks, ("chat",))
        plain.append(await _seconds(own, "/v1/chat/completions", body(turns, stream=stream), times))
        told.append(
            await _seconds(translating, "/v1/responses", other(turns, stream=stream), times)
        )
    return statistics.median(plain), statistics.median(told)


def run() -> list[tuple[str, float, str]]:
    """Measure everything; (name, figure, unit)."""
    found: list[tuple[str, float, str]] = []
    for name, turns in (("small request", 0), ("request with 40 turns", 40)):
        plain, told = asyncio.run(_compare(WHOLE, _chat, _responses, turns, REQUESTS))
        found += [
            (f"{name}, untouched", plain * 1e6, "µs"),
            (f"{name}, responses to chat", told * 1e6, "µs"),
            (f"{name}, ratio", told / plain, "times"),
        ]
    plain, told = asyncio.run(_compare(STREAM, _chat, _responses, 0, 3))
    found += [
        ("chunk, untouched", plain / len(STREAM) * 1e6, "µs"),
        ("chunk, responses to chat", told / len(STREAM) * 1e6, "µs"),
        ("chunk, ratio", told / plain, "times"),
    ]
    return found


if __name__ == "__main__":
    for name, figure, unit in run():
        print(f"{name:45} {figure:10.2f} {unit}")
