"""Transports over scripted and simulated providers."""

import json

import httpx2

from thoughtline.log.sessions import Session
from thoughtline.stores.memory import MemoryStore
from thoughtline.transports import AsyncTransport

TOOLS = [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]


KEY = {"authorization": "Bearer a-key"}


URL = "https://api.deepseek.com/v1/chat/completions"


def body(messages, **more):
    return {"model": "deepseek-v4-pro", "messages": messages, "tools": TOOLS, **more}


def grown(messages, reply):
    """The history after a reply, as a client writes it that throws thoughts away."""
    message = reply.json()["choices"][0]["message"]
    message.pop("reasoning_content", None)
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
        for call in message.get("tool_calls") or []
    ]
    return [*messages, message, *(results or [{"role": "user", "content": "go on"}])]


def talk(client, url, exchanges, *, opening="Please mend a.txt", headers=KEY):
    messages, replies = [{"role": "user", "content": opening}], []
    for _ in range(exchanges):
        replies.append(client.post(url, json=body(messages), headers=headers))
        if replies[-1].status_code != 200:
            break
        messages = grown(messages, replies[-1])
    return replies


def events(count=3, *, done=True):
    """A stream, event by event."""
    deltas = [{"reasoning_content": "hm"}, *[{"content": str(n)} for n in range(count)]]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    texts = [json.dumps(chunk) for chunk in chunks] + (["[DONE]"] if done else [])
    return [f"data: {text}\n\n".encode() for text in texts]


class Stream(httpx2.AsyncByteStream):
    """A body that a test can look into."""

    def __init__(self, chunks, *, failure=None, gate=None):
        self.chunks, self.failure, self.gate = chunks, failure, gate
        self.given, self.closed = 0, False

    async def __aiter__(self):
        for chunk in self.chunks:
            yield chunk
            self.given += 1
            if self.gate is not None:
                await self.gate.wait()
        if self.failure is not None:
            raise self.failure

    async def aclose(self):
        self.closed = True


class Upstream(httpx2.AsyncBaseTransport):
    """An inner transport that says what a test wants."""

    def __init__(self, *answers):
        self.answers, self.requests, self.closed = list(answers), [], False

    async def handle_async_request(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Stream):
            head = {"content-type": "text/event-stream"}
            return httpx2.Response(200, headers=head, stream=answer)
        return answer

    async def aclose(self):
        self.closed = True


def client(inner, store=None, **options):
    mount = AsyncTransport(store or MemoryStore(), inner=inner, **options)
    return httpx2.AsyncClient(transport=mount)


def asked(**more):
    return {"json": body([{"role": "user", "content": "hi"}], **more), "headers": KEY}


async def only_turn(store):
    (summary,) = await store.sessions()
    log = await store.read(summary.session)
    return Session(summary.session).extend(log).turns[0]
