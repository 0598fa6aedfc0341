"""A gateway that translates for one upstream, which answers what a test writes."""

import asyncio
import json

from support.gateway import Answer, InProcessGateway, ScriptedWire
from thoughtline.engine.endpoints import Directory, Upstream


def scripted_gateway(*answers, speaks="chat", policy="generic", wire=ScriptedWire, **options):
    """A gateway whose upstream speaks one dialect, and gives these answers in turn."""
    gateway = InProcessGateway(wire(*answers), policy, **options)
    upstream = Upstream(name="up", base_url="http://sim", policy=policy, dialects=(speaks,))
    gateway.proxy.directory = Directory([upstream])
    return gateway


def chat_message(content="Hi.", *, finish="stop", **more):
    """A Chat Completions answer in one body."""
    message = {"role": "assistant", "content": content, **more}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    return Answer(body={"id": "c1", "model": "m", "choices": [choice], "usage": usage})


def chat_call(id, name, arguments):
    """A call in a Chat Completions message."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat_stream(*deltas, finish="stop"):
    """A Chat Completions answer in chunks."""
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    return streamed(
        *({"id": "c1", "model": "m", "choices": [choice]} for choice in choices), "[DONE]"
    )


def streamed(*values):
    """An answer of server-sent events."""
    datas = [value if isinstance(value, str) else json.dumps(value) for value in values]
    body = "".join(f"data: {data}\n\n" for data in datas).encode()
    return Answer(body=body, headers={"content-type": "text/event-stream"})


def events(answer):
    """The JSON events of a stream that a client got."""
    lines = answer.body.replace(b"\r\n", b"\n").split(b"\n")
    datas = [line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: ")]
    return [json.loads(data) for data in datas if data != b"[DONE]"]


def ask(gateway, path, body, headers=None, query=""):
    """One request; the answer."""
    return asyncio.run(gateway.post(path, body, headers, query=query))
