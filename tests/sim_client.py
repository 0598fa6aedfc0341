"""A Chat Completions client for tests: holds conversations with a simulator, and alters them."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

from thoughtline.testing import Reply, Request, Simulator

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("read_file", "run", "search")
]
THOUGHT_KEYS = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "reasoning_text",
    "reasoning_opaque",
)


def post(sim: Simulator, body: Any, *, key: str = "k", **headers: str) -> Reply:
    """Send a body (bytes as they are) to the usual path."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = {
        "authorization": f"Bearer {key}",
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    return sim.answer(Request("POST", f"{sim.base_path}/chat/completions", head, raw))


def audit(reply: Reply) -> dict[str, int]:
    """The header as numbers."""
    pairs = (part.split("=") for part in reply.headers["x-sim-thoughts"].split("; "))
    return {name: int(count) for name, count in pairs}


def counts(**wanted: int) -> dict[str, int]:
    """An audit with these numbers and zeros."""
    return {**dict.fromkeys(("exact", "altered", "missing", "misplaced", "foreign"), 0), **wanted}


class Talk:
    """One conversation: each turn sends the history and appends what came back."""

    def __init__(
        self,
        sim: Simulator,
        *,
        say: str = "go",
        key: str = "k",
        stream: bool = False,
        alter: Callable[[dict[str, Any]], dict[str, Any]] = copy.deepcopy,
        **body: Any,
    ) -> None:
        self.sim, self.key, self.alter = sim, key, alter
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": say}]
        self.body = {"model": sim.models()[0], "tools": TOOLS, "stream": stream, **body}

    def ask(self, **headers: str) -> Reply:
        """Send the history as it is."""
        return post(self.sim, {**self.body, "messages": self.messages}, key=self.key, **headers)

    def turn(self) -> Reply:
        """Ask, and take the answer into the history."""
        reply = self.ask()
        if reply.status == 200:
            self.take(message_of(reply))
        return reply

    def take(self, message: dict[str, Any]) -> None:
        """Append an assistant message and what follows it: tool results, or the next user text."""
        self.messages.append(self.alter(message))
        calls = message.get("tool_calls") or []
        for call in calls:
            result = {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
            self.messages.append(result)
        if not calls:
            self.messages.append({"role": "user", "content": f"and then? {len(self.messages)}"})

    def run(self, turns: int) -> Reply:
        """Several turns; stops at the first that is not a 200."""
        reply = self.turn()
        for _ in range(turns - 1):
            if reply.status != 200:
                break
            reply = self.turn()
        return reply


def strip(message: dict[str, Any]) -> dict[str, Any]:
    """What most clients do: keep what is visible, and nothing else."""
    kept = {k: v for k, v in message.items() if k not in THOUGHT_KEYS}
    content = kept.get("content")
    if isinstance(content, list):
        kept["content"] = "".join(p["text"] for p in content if p["type"] == "text")
    elif isinstance(content, str):
        kept["content"] = re.sub(r"<think>.*?</think>\n\n", "", content, flags=re.DOTALL)
    if calls := kept.get("tool_calls"):
        keys = ("id", "type", "function")
        kept["tool_calls"] = [{key: call[key] for key in keys} for call in calls]
    return kept


def message_of(reply: Reply) -> dict[str, Any]:
    """The assistant message of a reply, whether it came whole or as a stream."""
    if reply.headers["content-type"].startswith("application/json"):
        return json.loads(reply.body)["choices"][0]["message"]
    message: dict[str, Any] = {}
    for event in events(reply):
        for choice in event["choices"]:
            _merge(message, choice["delta"])
    return _whole(message)


def events(reply: Reply) -> list[dict[str, Any]]:
    """The JSON events of a stream, which must end with `[DONE]`."""
    lines = [line for line in reply.body.decode().split("\n") if line.startswith("data: ")]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line[6:]) for line in lines[:-1]]


def _merge(into: dict[str, Any], delta: dict[str, Any]) -> None:
    for key, value in delta.items():
        if key in ("tool_calls", "reasoning_details"):
            for part in value:
                _merge_indexed(into.setdefault(key, []), part)
        elif value is not None:
            before = into.get(key) or ""
            if isinstance(value, list) or isinstance(before, list):
                into[key] = _merge_chunks(_chunks(before), _chunks(value))
            else:
                into[key] = value if key == "role" else before + value
        else:
            into.setdefault(key, None)


def _merge_indexed(items: list[dict[str, Any]], part: dict[str, Any]) -> None:
    while len(items) <= part["index"]:
        items.append({})
    item = items[part["index"]]
    for key, value in part.items():
        if key == "function":
            inner = item.setdefault("function", {})
            for name, text in value.items():
                inner[name] = inner.get(name, "") + text
        elif key == "text":
            item[key] = item.get(key, "") + value
        else:
            item[key] = value


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
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        indexed = "index" in value and "function" in value
        return {k: _whole(v) for k, v in value.items() if not (indexed and k == "index")}
    return value
