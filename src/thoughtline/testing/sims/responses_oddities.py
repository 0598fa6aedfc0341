"""Odd shapes of the Responses API: pure functions over items, or over events and whole bodies.

`ITEMS` are what other servers, and a server's own tools, put into an output; `EVENTS` leave items
as they are. What changes what a client sees comes only where a test names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

from thoughtline.testing.sims.oddities import Oddity
from thoughtline.testing.sims.spelling import write

Members = dict[str, Any]


class Out(NamedTuple):
    """One item of a response."""

    id: str
    kind: str
    value: Members
    text: str
    """What is streamed of it: text, arguments, or the open thought."""
    summary: tuple[str, ...] = ()
    slot: str = ""
    """Where in its turn a thought stands: calls before it, and whether there is text before it."""

    @property
    def raw(self) -> bytes:
        """The item as it goes out."""
        return write(self.value)


class Event(NamedTuple):
    """One event of a stream."""

    data: Members
    done: Out | None = None
    """The item that this event finishes."""

    @property
    def kind(self) -> str:
        """Its type; nothing for a whole response."""
        return str(self.data.get("type", ""))


Items = list[Out]
Events = list[Event]


# -- items -----------------------------------------------------------------------------------------


def _changed(items: Items, kind: str, change: Callable[[Members], Members]) -> Items:
    return [one._replace(value=change(one.value)) if one.kind == kind else one for one in items]


def empty_content(items: Items, dice: Random) -> Items:
    """A sealed thought has an empty content, or says that it has none, and no status."""
    more: Members = dice.choice(({"content": []}, {"content": None, "status": None}))
    return _changed(items, "reasoning", lambda value: {**more, **value})


def null_blob(items: Items, _dice: Random) -> Items:
    """A thought that is not sealed says so."""
    return _changed(items, "reasoning", lambda value: {"encrypted_content": None, **value})


def cited(items: Items, _dice: Random) -> Items:
    """A text says where it comes from."""
    note = {
        "type": "url_citation",
        "start_index": 0,
        "end_index": 4,
        "title": "Weather",
        "url": "https://example.com/weather",
    }

    def noted(value: Members) -> Members:
        return {**value, "content": [{**part, "annotations": [note]} for part in value["content"]]}

    return _changed(items, "message", noted)


def _served(name: str, kind: str, members: Members) -> Callable[[Items, Random], Items]:
    """A call that the server makes and answers by itself, behind the first thoughts."""

    def served(items: Items, dice: Random) -> Items:
        key = f"{name}_{dice.getrandbits(200):050x}"
        item = Out(key, kind, {"id": key, "type": kind, **members}, "")
        at = next((n for n, one in enumerate(items) if one.kind != "reasoning"), len(items))
        return [*items[:at], item, *items[at:]]

    return served


_DONE = {"status": "completed"}
_SEARCH = {**_DONE, "action": {"type": "search", "query": "weather", "sources": []}}
_CODE = {"code": "1 + 1", "container_id": "cntr_1", "outputs": [{"type": "logs", "logs": "2"}]}
_MCP = {"name": "look", "server_label": "notes", "arguments": "{}", "output": "new", "error": None}


def random_ids(items: Items, dice: Random) -> Items:
    """Ids of another form: a UUID behind a prefix."""
    return [_renamed(one, f"{one.id.partition('_')[0]}_{_uuid(dice)}") for one in items]


def short_ids(items: Items, dice: Random) -> Items:
    """Ids that soon come twice: `rand.Intn(999999)` (Ollama)."""
    return [_renamed(one, f"{one.id.partition('_')[0]}_{dice.randrange(999999)}") for one in items]


def _renamed(out: Out, key: str) -> Out:
    return out._replace(id=key, value={**out.value, "id": key})


def _uuid(dice: Random) -> str:
    digits = f"{dice.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _declares(kind: str) -> Callable[[Mapping[str, Any]], bool]:
    """The request declares a tool of the server's."""

    def asked(body: Mapping[str, Any]) -> bool:
        tools = body.get("tools") or ()
        return any(isinstance(tool, dict) and tool.get("type") == kind for tool in tools)

    return asked


ITEMS: Mapping[str, Oddity] = {
    "empty_content": Oddity(empty_content),
    "null_blob": Oddity(null_blob),
    "annotations": Oddity(cited, _declares("web_search")),
    "web_search": Oddity(_served("ws", "web_search_call", _SEARCH), _declares("web_search")),
    "code_interpreter": Oddity(
        _served("ci", "code_interpreter_call", {**_DONE, **_CODE}), _declares("code_interpreter")
    ),
    "mcp": Oddity(_served("mcp", "mcp_call", _MCP), _declares("mcp")),
    "file_search": Oddity(
        _served("fs", "file_search_call", {**_DONE, "queries": ["weather"], "results": None}),
        _declares("file_search"),
    ),
    "image": Oddity(
        _served("ig", "image_generation_call", {**_DONE, "result": "iVBORw0KGgo="}),
        _declares("image_generation"),
    ),
    "random_ids": Oddity(random_ids),
    "short_ids": Oddity(short_ids),
}
"""By name, in the order in which they are applied."""
SERVED = {
    "web_search_call": ("in_progress", "searching", "completed"),
    "file_search_call": ("in_progress", "searching", "completed"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed"),
    "image_generation_call": ("in_progress", "generating", "completed"),
    "mcp_call": ("in_progress", "completed"),
}
"""Items of the server's own tools, and the events between their two ends."""


# -- events and bodies -----------------------------------------------------------------------------


def queued(events: Events, _dice: Random) -> Events:
    """A response waits for its turn."""
    first, *rest = events
    if first.kind != "response.created":
        return events
    return [first, Event({**first.data, "type": "response.queued"}), *rest]


def keepalive(events: Events, dice: Random) -> Events:
    """Events that carry nothing keep the connection open."""
    idle = [Event({"type": "keepalive"})]
    first, *rest = events
    if not rest:
        return events
    return [first, *(e for one in rest for e in (*(idle if dice.random() < 0.1 else ()), one))]


def obfuscation(events: Events, dice: Random) -> Events:
    """Noise hides how long a delta is."""

    def hidden(event: Event) -> Event:
        if not event.kind.endswith(".delta"):
            return event
        return event._replace(data={**event.data, "obfuscation": f"{dice.getrandbits(40):x}"})

    return [hidden(event) for event in events]


def only_done(events: Events, _dice: Random) -> Events:
    """Arguments come with the end of a call and not before (LM Studio)."""
    return [one for one in events if one.kind != "response.function_call_arguments.delta"]


def one_delta(events: Events, dice: Random) -> Events:
    """Arguments come in one delta."""
    kept = only_done(events, dice)

    def with_delta(event: Event) -> Events:
        if event.kind != "response.function_call_arguments.done":
            return [event]
        data = {name: one for name, one in event.data.items() if name != "arguments"}
        told = {"type": "response.function_call_arguments.delta", "delta": event.data["arguments"]}
        return [Event({**data, **told}), event]

    return [one for event in kept for one in with_delta(event)]


def _around(name: str) -> Callable[[Events, Random], Events]:
    """An open thought is a part that begins and ends."""

    def around(events: Events, _dice: Random) -> Events:
        out: Events = []
        opened: set[str] = set()
        for event in events:
            thinks = event.kind.startswith("response.reasoning_text.")
            where = {key: event.data.get(key) for key in ("item_id", "output_index")}
            where["content_index"] = 0
            part = {"type": "reasoning_text", "text": ""}
            if thinks and event.data["item_id"] not in opened:
                opened.add(event.data["item_id"])
                out.append(Event({"type": f"{name}.added", **where, "part": part}))
            out.append(event)
            if event.kind == "response.reasoning_text.done":
                whole = {**part, "text": event.data["text"]}
                out.append(Event({"type": f"{name}.done", **where, "part": whole}))
        return out

    return around


def response_members(events: Events, _dice: Random) -> Events:
    """What servers say of a response beyond the documentation."""
    more = {"billing": {"payer": "developer"}, "content_filters": None, "service_tier": "default"}

    def within(event: Event) -> Event:
        response = event.data.get("response")
        if isinstance(response, dict):
            return event._replace(data={**event.data, "response": {**more, **response}})
        return event._replace(data={**more, **event.data}) if "output" in event.data else event

    return [within(event) for event in events]


def error_midstream(events: Events, _dice: Random) -> Events:
    """The server fails after half of the answer."""
    if len(events) == 1:
        return events
    error = {"code": "server_error", "message": "The server had an error", "param": None}
    return [*events[: len(events) // 2], Event({"type": "error", **error})]


EVENTS: Mapping[str, Oddity] = {
    "queued": Oddity(queued),
    "only_done": Oddity(only_done),
    "one_delta": Oddity(one_delta),
    "reasoning_parts": Oddity(_around("response.reasoning_part")),
    "content_parts": Oddity(_around("response.content_part")),
    "obfuscation": Oddity(obfuscation),
    "response_members": Oddity(response_members),
    "keepalive": Oddity(keepalive),
    "error_midstream": Oddity(error_midstream),
}
"""By name, in the order in which they are applied; the last only where it is named."""

_TOOLS = ("annotations", "web_search", "code_interpreter", "mcp", "file_search", "image")
_OPENAI = (*_TOOLS, "empty_content", "obfuscation", "queued", "keepalive", "response_members")
EMITS: Mapping[str, tuple[str, ...]] = {
    "openai": _OPENAI,
    "openai-ws": _OPENAI,
    "azure": (*_OPENAI, "null_blob"),
    "codex": _OPENAI,
    # docs.x.ai: calls come in one piece; ids are UUIDs.
    "xai": ("annotations", "web_search", "mcp", "one_delta", "random_ids", "response_members"),
    "deepseek-responses": ("content_parts", "null_blob", "random_ids"),
}
"""What each provider's answers have."""
