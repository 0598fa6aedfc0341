"""A stand-in for a provider, as cheap as Python allows: fixed answers on raw sockets.

Run as a process: `python -m benchmarks.upstream` prints its port. A request whose body asks to
`"stream":true` gets events at a pace (`x-pace: COUNT/SECONDS` header), any other one a JSON body.
Words and call ids of an answer follow from the request's, so that no two answers are alike.
"""

import asyncio
import json
import re

THOUGHT = "The user wants the file mended, so I mend it. " * 8
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "deepseek-v4-pro",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {
                "role": "assistant",
                "content": "All done, the file is mended.",
                "reasoning_content": THOUGHT,
            },
        }
    ],
    "usage": {"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": 140},
}


def calling(id: str) -> dict[str, object]:
    """A message of the model that calls a tool, without its thought: as clients send it back."""
    function = {"name": "run", "arguments": json.dumps({"path": f"{id}.txt", "line": 5})}
    call = {"id": id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


CALL = {
    **ANSWER,
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {**calling("ID"), "reasoning_content": THOUGHT},
        }
    ],
}
SAID, CALLED = json.dumps(ANSWER).encode(), json.dumps(CALL).encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
FEW = 3, 0.01
"""Chunks of a stream, and seconds between them, where no pace is asked for."""
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
PACE = re.compile(rb"\r\nx-pace: *(\d+)/([\d.]+)", re.IGNORECASE)
FILE = re.compile(rb"the file (\d+)")
PROJECT = re.compile(rb"the files of project (\d+)")
DELTA = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"deepseek-v4-pro","choices":'
    b'[{"index":0,"delta":{"reasoning_content":"and so on, and "},"finish_reason":null}]}\n\n'
)
END = (
    b'data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"Done. %s"},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)


def chunk(data: bytes) -> bytes:
    """One piece of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def file_asked_for(asked: bytes) -> bytes:
    """The number of the file that a request named last, if it named one."""
    return next(reversed(FILE.findall(asked, max(0, len(asked) - 500))), b"")


def answer(asked: bytes) -> bytes:
    """The body of an answer that is no stream."""
    if file := file_asked_for(asked):
        return SAID.replace(b"mended.", b"mended. %s" % file)
    if project := PROJECT.search(asked, 0, 2000):
        number = asked.count(b'"tool_call_id"') + 1
        return CALLED.replace(b"ID", b"call_%s_%d" % (project[1], number))
    return SAID


class Provider(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.buffer = bytearray()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while True:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self.buffer[:end])
            length = LENGTH.search(head)
            size = int(length[1]) if length else 0
            if len(self.buffer) < end + 4 + size:
                return
            body = bytes(self.buffer[end + 4 : end + 4 + size])
            del self.buffer[: end + 4 + size]
            if b'"stream":true' in body or b'"stream": true' in body:
                pace = PACE.search(head)
                count, seconds = (int(pace[1]), float(pace[2])) if pace else FEW
                end = END % file_asked_for(body)
                asyncio.ensure_future(self.stream(count, seconds, end))
            else:
                body = answer(body)
                self.transport.write(HEAD % len(body) + body)  # type: ignore[attr-defined]

    async def stream(self, count: int, seconds: float, end: bytes) -> None:
        """Events at a pace."""
        write = self.transport.write  # type: ignore[attr-defined]
        write(STREAM)
        for _ in range(count):
            write(chunk(DELTA))
            if seconds:
                await asyncio.sleep(seconds)
        write(chunk(end) + b"0\r\n\r\n")


async def main() -> None:
    """Serve until the process is ended."""
    server = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
