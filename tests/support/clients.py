"""One client of a model, in four dialects, that keeps, strips or alters its history.

A client holds its history as it received it (bytes, or parsed where that loses nothing), so that a
provider has nothing to blame it for. `echo` says what it sends of that: all (`keep`), only what is visible (`strip`), what is visible in
another spelling (`respell`), or whatever a function of its parsed entries makes of them.
It needs nothing of Thoughtline but the simulators' values.
"""

import copy
import json
import re
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from thoughtline.testing import Reply, Request
from thoughtline.testing.sims.spelling import Fragment, elements, fields, write

TOOL_NAMES = ("read_file", "run", "search")
CHAT_THOUGHTS = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "reasoning_text",
    "reasoning_opaque",
)


TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in TOOL_NAMES
]
"""The tools in the words of Chat Completions."""


def client(dialect: str, to: Any, **options: Any) -> "Client":
    """A client that speaks this dialect; `to` is a simulator, or a function of a request."""
    return CLIENTS[dialect](to, **options)


def load(entry: Any) -> Any:
    """An entry of a history, parsed."""
    return entry if isinstance(entry, dict) else msgspec.json.decode(entry)


class Client:
    """What the dialects share."""

    model = ""
    headers: ClassVar[dict[str, str]] = {}
    query = ""

    def __init__(
        self,
        to: Any,
        *,
        key: str = "key-one",
        stream: bool = False,
        model: str | None = None,
        tools: bool | list[Any] = True,
        echo: str | Callable[[list[Any]], list[Any]] = "keep",
        opening: str = "Please go ahead.",
        base: str = "",
        headers: dict[str, str] | None = None,
        **body: Any,
    ) -> None:
        self.to = to
        self.key = key
        self.stream = stream
        self.model = model or self.model
        self.tools = tools
        self.echo = echo
        self.base = base
        self.body = body
        self.headers = {**self.headers, **(headers or {})}
        self.history = [self.user(opening)]

    # -- what a dialect says -----------------------------------------------------------------------

    @property
    def path(self) -> str:
        raise NotImplementedError

    def user(self, text: str) -> bytes:
        """A user's message."""
        raise NotImplementedError

    def request(self) -> dict[str, Any]:
        """The members of the next request."""
        raise NotImplementedError

    def absorb(self, reply: Reply) -> None:
        """Append the answer to the history, and what a user or a tool says to it."""
        raise NotImplementedError

    def strip(self, entry: Any) -> Any:
        """An entry without its thoughts; None where nothing is left."""
        raise NotImplementedError

    def respell(self, entry: Any) -> Any:
        """An entry with the same meaning and other bytes."""
        raise NotImplementedError

    # -- requests ----------------------------------------------------------------------------------

    def send(self, **changes: Any) -> Reply:
        """Send the history, with these members of the body changed; it stays as it is."""
        return self._post({**self.request(), **changes}, {})

    def ask(self, **headers: str) -> Reply:
        """The same with more headers; `x_sim_fault` is `x-sim-fault`."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._post(self.request(), more)

    def _post(self, body: Any, headers: dict[str, str]) -> Reply:
        head = {"authorization": f"Bearer {self.key}", **self.headers, **headers}
        answer = getattr(self.to, "answer", self.to)
        return answer(Request("POST", self.path, head, write(body), self.query))

    def turn(self) -> Reply:
        """Send the history, and take an answer into it."""
        reply = self.send()
        if reply.status == 200:
            self.absorb(reply)
        return reply

    def talk(self, turns: int) -> Reply:
        """So many exchanges, all of which succeed; gives the last reply."""
        for _ in range(turns):
            reply = self.turn()
            assert reply.status == 200, reply.body
        return reply

    def run(self, turns: int) -> Reply:
        """So many exchanges; stops at the first that is refused, and gives the last reply."""
        for _ in range(turns):
            reply = self.turn()
            if reply.status != 200:
                break
        return reply

    @property
    def sim(self) -> Any:
        """Whom it talks to, where that is a simulator."""
        return self.to

    def raw(self) -> list[Any]:
        """The history as it is sent."""
        if self.echo == "keep":
            return [Fragment(e.decode()) if isinstance(e, bytes) else e for e in self.history]
        entries = [
            json.loads(e) if isinstance(e, bytes) else copy.deepcopy(e) for e in self.history
        ]
        if callable(self.echo):
            return self.echo(entries)
        entries = [left for entry in entries if (left := self.strip(entry)) is not None]
        return [self.respell(entry) for entry in entries] if self.echo == "respell" else entries

    # -- alterations -------------------------------------------------------------------------------

    def edit(self, at: int, **changes: Any) -> None:
        """Change fields of one entry; None removes a field."""
        value = {**load(self.history[at]), **changes}
        self.history[at] = write({name: one for name, one in value.items() if one is not None})

    def find(self, test: Callable[[Any], bool]) -> list[int]:
        """Where the entries are of which something is true."""
        return [at for at, entry in enumerate(self.history) if test(load(entry))]


class ChatClient(Client):
    """Chat Completions. `alter` is what it makes of an answer before it keeps it."""

    def __init__(self, to, *, alter=copy.deepcopy, **options):
        models = {"model": to.models()[0]} if hasattr(to, "models") else {}
        base = {"base": getattr(to, "base_path", "")}
        self.alter = alter
        super().__init__(to, **{**models, **base, **options})

    @property
    def path(self):
        return f"{self.base}/chat/completions"

    def user(self, text):
        return {"role": "user", "content": text}

    def request(self):
        declared = {"tools": TOOLS if self.tools is True else self.tools} if self.tools else {}
        members = {"model": self.model, "messages": self.raw(), "stream": self.stream}
        return {**members, **declared, **self.body}

    def absorb(self, reply):
        self.take(message_of(reply))

    def take(self, message):
        """Append an assistant message and what follows it: tool results, or the next user text."""
        self.history.append(self.alter(message))
        calls = message.get("tool_calls") or []
        self.history += [
            {"role": "tool", "tool_call_id": call["id"], "content": "fine"} for call in calls
        ] or [self.user(f"And then? {len(self.history)}")]

    def strip(self, entry):
        return strip_message(entry)

    def respell(self, entry):
        if entry["role"] != "assistant":
            return entry
        text = (entry.get("content") or "").strip()
        entry["content"] = [{"type": "text", "text": text}] if text else None
        for call in entry.get("tool_calls") or ():
            call["function"]["arguments"] = respelled(call["function"]["arguments"])
        return entry


class ResponsesClient(Client):
    """The Responses API, without a server that remembers."""

    model = "gpt-5.6"

    @property
    def path(self):
        return f"{self.base or '/v1'}/responses"

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
        own = ("function_call", "custom_tool_call")  # the others are the server's
        calls = [one for one in map(load, items) if one["type"] in own]
        if not calls:
            return [self.user("And then?")]
        return [
            write({"type": call["type"] + "_output", "call_id": call["call_id"], "output": "fine"})
            for call in calls
        ]

    def kinds(self, kind):
        return self.find(lambda one: one.get("type") == kind)

    def strip(self, entry):
        if entry.get("type") == "reasoning":
            return None
        return {k: v for k, v in entry.items() if k not in ("id", "status")}

    def respell(self, entry):
        if entry.get("role") == "assistant":
            entry["content"] = "".join(part["text"] for part in entry["content"]).strip()
        if entry.get("type") == "function_call":
            entry["arguments"] = respelled(entry["arguments"])
        return entry


class MessagesClient(Client):
    """Anthropic's Messages."""

    model = "claude-sonnet-4-5"
    headers: ClassVar[dict[str, str]] = {"anthropic-version": "2023-06-01"}

    @property
    def path(self):
        return f"{self.base or '/v1'}/messages"

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

    def strip(self, entry):
        if entry["role"] == "assistant":
            kinds = ("thinking", "redacted_thinking")
            entry["content"] = [b for b in entry["content"] if b["type"] not in kinds]
        return entry

    def respell(self, entry):
        for block in entry["content"] if entry["role"] == "assistant" else ():
            if "text" in block:
                block["text"] = block["text"].strip()
            if "input" in block:
                block["input"] = json.loads(respelled(json.dumps(block["input"])))
        return entry

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


class GeminiClient(Client):
    """Google's generateContent."""

    model = "gemini-3-pro-preview"

    @property
    def path(self):
        method = "streamGenerateContent" if self.stream else "generateContent"
        return f"{self.base or '/v1beta'}/models/{self.model}:{method}"

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
            for candidate in elements(fields(body).get("candidates", b""))[:1]:
                content = fields(candidate).get("content", b"")
                parts += elements(fields(content).get("parts", b""))
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

    def strip(self, entry):
        parts = [part for part in entry["parts"] if not part.get("thought")]
        for part in parts:
            part.pop("thoughtSignature", None)
        entry["parts"] = [part for part in parts if part != {"text": ""}]
        return entry

    def respell(self, entry):
        texts = "".join(part.get("text", "") for part in entry["parts"]).strip()
        others = [part for part in entry["parts"] if "text" not in part]
        for part in others:
            if call := part.get("functionCall"):
                call["args"] = json.loads(respelled(json.dumps(call.get("args", {}))))
        entry["parts"] = [*([{"text": texts}] if texts else []), *others]
        return entry

    def parts(self, at):
        """The parts of one content, parsed."""
        return load(self.history[at])["parts"]

    def change(self, at, index, **changes):
        """Change fields of one part; None removes a field."""
        parts = self.parts(at)
        part = {**parts[index], **changes}
        parts[index] = {name: one for name, one in part.items() if one is not None}
        self.edit(at, parts=parts)


CLIENTS: dict[str, type[Client]] = {
    "chat": ChatClient,
    "responses": ResponsesClient,
    "messages": MessagesClient,
    "gemini": GeminiClient,
}


# -- answers ---------------------------------------------------------------------------------------


def strip_message(message: dict[str, Any]) -> dict[str, Any]:
    """What most clients keep of a Chat Completions message: what is visible, and nothing else."""
    kept = {k: v for k, v in message.items() if k not in CHAT_THOUGHTS}
    content = kept.get("content")
    if isinstance(content, list):
        kept["content"] = "".join(p["text"] for p in content if p["type"] == "text")
    elif isinstance(content, str):
        kept["content"] = re.sub(r"<think>.*?</think>\n\n", "", content, flags=re.DOTALL)
    if calls := kept.get("tool_calls"):
        keys = ("id", "type", "function")
        kept["tool_calls"] = [{key: call[key] for key in keys} for call in calls]
    return kept


def respelled(arguments: str) -> str:
    """Arguments of a call as another serialiser writes them."""
    return json.dumps(json.loads(arguments or "{}"), sort_keys=True)


def sse(body: bytes) -> list[bytes]:
    """The data of each event, as bytes."""
    events = [block for block in body.split(b"\n\n") if block]
    return [
        line.removeprefix(b"data: ")
        for block in events
        for line in block.split(b"\n")
        if line.startswith(b"data: ")
    ]


def assemble(datas: list[bytes]) -> list[dict[str, Any]]:
    """The blocks that a stream of Messages events builds up."""
    blocks, inputs = [], {}
    for event in map(json.loads, datas):  # a delta may end in half of an emoji
        if event["type"] == "content_block_start":
            blocks.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            delta, block = event["delta"], blocks[event["index"]]
            kind = delta["type"]
            if kind == "citations_delta":
                block.setdefault("citations", []).append(delta["citation"])
            elif kind == "compaction_delta":
                block["content"] = delta["content"]
            elif kind == "input_json_delta":
                inputs[event["index"]] = inputs.get(event["index"], "") + delta["partial_json"]
            else:
                name = kind.removesuffix("_delta")
                block[name] += delta[name]
    for index, text in inputs.items():
        blocks[index]["input"] = Fragment(joined(text))
    for block in blocks:
        for name in ("text", "thinking"):
            if name in block:
                block[name] = joined(block[name])
    return blocks


def message_of(reply: Reply) -> dict[str, Any]:
    """The assistant message of a Chat Completions reply, whether it came whole or as a stream."""
    if reply.headers["content-type"].startswith("application/json"):
        return json.loads(reply.body)["choices"][0]["message"]
    message: dict[str, Any] = {}
    for event in chat_events(reply):
        for choice in event["choices"]:
            if choice.get("index", 0) == 0:
                _merge(message, choice.get("delta") or {})
    return _whole(message)


def chat_events(reply: Reply) -> list[dict[str, Any]]:
    """The JSON events of a Chat Completions stream, which must end with `[DONE]`."""
    datas = sse(reply.body)
    assert datas[-1] == b"[DONE]"
    return [json.loads(data) for data in datas[:-1]]


def _merge(into: dict[str, Any], delta: dict[str, Any]) -> None:
    for key, value in delta.items():
        if key in ("tool_calls", "reasoning_details"):
            for part in value or ():
                _merge_indexed(into.setdefault(key, []), part)
        elif isinstance(value, str) or (key == "content" and value is not None):
            before = into.get(key) or ""
            if isinstance(value, list) or isinstance(before, list):
                into[key] = _merge_chunks(_chunks(before), _chunks(value))
            else:
                into[key] = value if key == "role" else before + value
        else:
            into[key] = into.get(key) if value is None else value


def _merge_indexed(items: list[dict[str, Any]], part: dict[str, Any]) -> None:
    while len(items) <= part["index"]:
        items.append({})
    item = items[part["index"]]
    for key, value in part.items():
        if key == "function":
            inner = item.setdefault("function", {})
            for name, text in value.items():
                inner[name] = inner.get(name, "") + (text or "")
        elif key == "text":
            item[key] = item.get(key, "") + value
        else:
            item[key] = value or item.get(key, value)


def _chunks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content


def _merge_chunks(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> list[dict[str, Any]]:
    out = copy.deepcopy(one)
    for chunk in two:
        if out and out[-1]["type"] == chunk["type"] == "text":
            out[-1]["text"] += chunk["text"]
        elif out and out[-1]["type"] == chunk["type"] == "thinking":
            out[-1]["thinking"][0]["text"] += chunk["thinking"][0]["text"]
        else:
            out.append(copy.deepcopy(chunk))
    return out


def _whole(value: Any) -> Any:
    """Join the halves of emoji that came in two deltas; drop the index of tool calls."""
    if isinstance(value, str):
        return joined(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        indexed = "index" in value and "function" in value
        return {k: _whole(v) for k, v in value.items() if not (indexed and k == "index")}
    return value


def joined(text: str) -> str:
    """The text with the halves of its emoji put together."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16")


# -- what a simulator says of it -------------------------------------------------------------------


def post(sim: Any, body: Any, *, key: str = "k", **headers: str) -> Reply:
    """Send a Chat Completions body (bytes as they are) to a simulator, at the usual path."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = {k.replace("_", "-"): v for k, v in headers.items()}
    head = {"authorization": f"Bearer {key}", **head}
    return sim.answer(Request("POST", f"{sim.base_path}/chat/completions", head, raw))


def audit(reply: Reply) -> dict[str, int]:
    """The simulator's audit of a history, as numbers."""
    pairs = (part.split("=") for part in reply.headers["x-sim-thoughts"].split("; "))
    return {name: int(count) for name, count in pairs}


def counts(**wanted: int) -> dict[str, int]:
    """An audit with these numbers and zeros."""
    return {**dict.fromkeys(("exact", "altered", "missing", "misplaced", "foreign"), 0), **wanted}
