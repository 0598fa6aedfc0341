"""Clients that bring back exactly what they were given, one per dialect.

Each keeps the history as the bytes it received, so that a simulated provider has nothing to blame
them for; a test then spoils one thing in `history` and sees what the provider says to that.
"""

import json

import msgspec

from thoughtline.testing.sims.spelling import Fragment, elements, fields, write
from thoughtline.testing.sims.values import Request

TOOL_NAMES = ("read_file", "run", "search")


def sse(body):
    """The data of each event, as bytes."""
    events = [block for block in body.split(b"\n\n") if block]
    return [
        line.removeprefix(b"data: ")
        for block in events
        for line in block.split(b"\n")
        if line.startswith(b"data: ")
    ]


def load(raw):
    return msgspec.json.decode(raw)


class Client:
    """What the dialects share."""

    path = ""
    model = ""

    def __init__(self, sim, *, key="key-one", stream=False, model=None, tools=True, **body):
        self.sim = sim
        self.key = key
        self.stream = stream
        self.model = model or self.model
        self.tools = tools
        self.body = body
        self.history = [self.user("Please go ahead.")]
        self.headers = {}

    def user(self, text):
        raise NotImplementedError

    def request(self):
        """The body of the next request."""
        raise NotImplementedError

    def absorb(self, reply):
        """Append the answer to the history, and what a user or a tool says to it."""
        raise NotImplementedError

    def send(self, **changes):
        """Send the history; it stays as it is."""
        body = {**self.request(), **changes}
        headers = {"authorization": f"Bearer {self.key}", **self.headers}
        return self.sim.answer(Request("POST", self.path, headers, write(body), self.query))

    query = ""

    def talk(self, turns):
        """So many exchanges; gives the last reply."""
        for _ in range(turns):
            reply = self.send()
            assert reply.status == 200, reply.body
            self.absorb(reply)
        return reply

    def raw(self):
        return [Fragment(one.decode()) for one in self.history]

    def edit(self, at, **changes):
        """Change fields of one entry; None removes a field."""
        value = {**load(self.history[at]), **changes}
        value = {name: one for name, one in value.items() if one is not None}
        self.history[at] = write(value)

    def find(self, test):
        """Where the entries are of which something is true."""
        return [at for at, one in enumerate(self.history) if test(load(one))]


class ResponsesClient(Client):
    path = "/v1/responses"
    model = "gpt-5.6"

    def user(self, text):
        return write({"type": "message", "role": "user", "content": text})

    def request(self):
        tools = [{"type": "function", "name": n, "parameters": {}} for n in TOOL_NAMES]
        return {
            "model": self.model,
            "store": False,
            "stream": self.stream,
            "include": ["reasoning.encrypted_content"],
            "tools": tools if self.tools else [],
            "input": self.raw(),
            **self.body,
        }

    def output(self, reply):
        """The items of an answer, as bytes."""
        if not self.stream:
            return elements(fields(reply.body)["output"])
        last = fields(sse(reply.body)[-1])
        return elements(fields(last["response"])["output"])

    def absorb(self, reply):
        items = self.output(reply)
        self.history += [*items, *self.answers(items)]

    def answers(self, items):
        """What tools or users say to these items."""
        calls = [one for one in map(load, items) if one["type"] == "function_call"]
        if not calls:
            return [self.user("And then?")]
        return [
            write({"type": "function_call_output", "call_id": call["call_id"], "output": "fine"})
            for call in calls
        ]

    def kinds(self, kind):
        return self.find(lambda one: one.get("type") == kind)


class MessagesClient(Client):
    path = "/v1/messages"
    model = "claude-sonnet-4-5"

    def __init__(self, sim, **kwargs):
        super().__init__(sim, **kwargs)
        self.headers = {"anthropic-version": "2023-06-01"}

    def user(self, text):
        return write({"role": "user", "content": text})

    def request(self):
        tools = [{"name": n, "input_schema": {"type": "object"}} for n in TOOL_NAMES]
        return {
            "model": self.model,
            "max_tokens": 32000,
            "system": "You are a careful one.",
            "stream": self.stream,
            "tools": tools if self.tools else [],
            "messages": self.raw(),
            **self.body,
        }

    def output(self, reply):
        """The blocks of an answer, as bytes."""
        if not self.stream:
            return elements(fields(reply.body)["content"])
        return [write(block) for block in assemble(sse(reply.body))]

    def absorb(self, reply):
        blocks = self.output(reply)
        content = [Fragment(block.decode()) for block in blocks]
        self.history.append(write({"role": "assistant", "content": content}))
        uses = [one for one in map(load, blocks) if one["type"] == "tool_use"]
        if not uses:
            self.history.append(self.user("And then?"))
            return
        results = [
            {"type": "tool_result", "tool_use_id": use["id"], "content": "fine"} for use in uses
        ]
        self.history.append(write({"role": "user", "content": results}))

    def blocks(self, at):
        """The blocks of one message, parsed."""
        return load(self.history[at])["content"]

    def rewrite(self, at, blocks):
        """Give a message other blocks."""
        self.edit(at, content=blocks)

    def change(self, at, index, **changes):
        """Change fields of one block; None removes a field."""
        blocks = self.blocks(at)
        block = {**blocks[index], **changes}
        blocks[index] = {name: one for name, one in block.items() if one is not None}
        self.rewrite(at, blocks)

    def assistants(self):
        return self.find(lambda one: one["role"] == "assistant")


def assemble(datas):
    """The blocks that a stream of Messages events builds up."""
    blocks, inputs = [], {}
    for event in map(json.loads, datas):  # a delta may end in half of an emoji
        if event["type"] == "content_block_start":
            blocks.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            delta, block = event["delta"], blocks[event["index"]]
            kind = delta["type"]
            if kind == "input_json_delta":
                inputs[event["index"]] = inputs.get(event["index"], "") + delta["partial_json"]
            else:
                name = kind.removesuffix("_delta")
                block[name] += delta[name]
    for index, text in inputs.items():
        blocks[index]["input"] = Fragment(healed(text))
    for block in blocks:
        for name in ("text", "thinking"):
            if name in block:
                block[name] = healed(block[name])
    return blocks


def healed(text):
    """The text with the halves of its emoji put together."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16")


class GeminiClient(Client):
    model = "gemini-3-pro-preview"

    @property
    def path(self):
        method = "streamGenerateContent" if self.stream else "generateContent"
        return f"/v1beta/models/{self.model}:{method}"

    @property
    def query(self):
        return "alt=sse" if self.stream else ""

    def user(self, text):
        return write({"role": "user", "parts": [{"text": text}]})

    def request(self):
        declared = [{"name": name, "parameters": {"type": "OBJECT"}} for name in TOOL_NAMES]
        return {
            "contents": self.raw(),
            "tools": [{"functionDeclarations": declared}] if self.tools else [],
            **self.body,
        }

    def output(self, reply):
        """The parts of an answer, as bytes, none of them merged."""
        bodies = [reply.body]
        if self.stream:
            bodies = [block.removeprefix(b"data: ") for block in reply.body.split(b"\r\n\r\n")]
        parts = []
        for body in filter(None, bodies):
            candidate = elements(fields(body)["candidates"])[0]
            parts += elements(fields(fields(candidate)["content"])["parts"])
        return parts

    def absorb(self, reply):
        parts = self.output(reply)
        content = [Fragment(part.decode()) for part in parts]
        self.history.append(write({"role": "model", "parts": content}))
        calls = [load(part)["functionCall"] for part in parts if b'"functionCall"' in part]
        if not calls:
            self.history.append(self.user("And then?"))
            return
        responses = [
            {"functionResponse": {"name": call["name"], "response": {"result": "fine"}}}
            for call in calls
        ]
        self.history.append(write({"role": "user", "parts": responses}))

    def parts(self, at):
        """The parts of one content, parsed."""
        return load(self.history[at])["parts"]

    def change(self, at, index, **changes):
        """Change fields of one part; None removes a field."""
        parts = self.parts(at)
        part = {**parts[index], **changes}
        parts[index] = {name: one for name, one in part.items() if one is not None}
        self.edit(at, parts=parts)
