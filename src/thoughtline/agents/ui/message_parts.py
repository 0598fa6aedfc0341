"""Parts of a UI message while it streams: the text or thought that is open, and the tool calls."""

import json
from typing import Any

from thoughtline.log.events import ToolCallDelta
from thoughtline.log.parts import Call

Chunk = dict[str, Any]
"""One chunk of the AI SDK's UI message stream."""


class OpenPart:
    """The text or reasoning part that is open, if any. A message has at most one at a time."""

    def __init__(self) -> None:
        self.kind = ""  # "text" or "reasoning"; empty: no part is open
        self.key = ""  # under which durations of a thought are given
        self.count = 0  # parts that were begun
        self._id = ""

    def start(self, kind: str, metadata: dict[str, Any] | None = None) -> list[Chunk]:
        """Start a part; the one that was open ends. `metadata` is a thought's."""
        ended = self.end()
        self.kind, self._id = kind, f"{kind}-{self.count}"
        self.key = metadata["key"] if metadata else ""
        self.count += 1
        return [*ended, {"type": f"{kind}-start", "id": self._id, **_provided(metadata)}]

    def delta(self, text: str) -> Chunk:
        """Add text to the open part."""
        return {"type": f"{self.kind}-delta", "id": self._id, "delta": text}

    def end(self, metadata: dict[str, Any] | None = None) -> list[Chunk]:
        """End the open part, if there is one; `metadata` replaces what it had."""
        if not self.kind:
            return []
        end = {"type": f"{self.kind}-end", "id": self._id, **_provided(metadata)}
        self.kind = self.key = ""
        return [end]


def _provided(metadata: dict[str, Any] | None) -> Chunk:
    return {"providerMetadata": {"thoughtline": metadata}} if metadata else {}


class _ToolInput:
    """One tool call while its arguments stream."""

    def __init__(self, id: str, call_id: str, name: str) -> None:
        self.id = id  # as the front end knows it: unique in the message
        self.call_id = call_id  # as the provider knows it: may be empty, or repeat
        self.name = name
        self.started = False
        self.complete = False
        self._buffer = ""  # arguments that came before the tool's name

    def start(self) -> list[Chunk]:
        self.started = True
        return [{"type": "tool-input-start", "toolCallId": self.id, "toolName": self.name}]

    def delta(self, arguments: str) -> list[Chunk]:
        self._buffer += arguments
        if not self.name:
            return []
        chunks = [] if self.started else self.start()
        if self._buffer:
            chunks.append(
                {"type": "tool-input-delta", "toolCallId": self.id, "inputTextDelta": self._buffer}
            )
            self._buffer = ""
        return chunks


class ToolParts:
    """The tool calls of one message, and which of them wait for a result."""

    def __init__(self) -> None:
        self._streaming: dict[int, _ToolInput] = {}  # of this turn, by the call's index
        self._turn: list[_ToolInput] = []  # of this turn, in the order they began
        self._waiting: list[_ToolInput] = []
        self._ids: set[str] = set()
        self._before = 0  # calls of the turns before that were sent

    @property
    def started(self) -> bool:
        """Whether a chunk of any call was sent in this turn."""
        return any(tool.started for tool in self._turn)

    @property
    def count(self) -> int:
        """How many calls of the message were sent."""
        return self._before + sum(tool.started for tool in self._turn)

    def next_turn(self) -> None:
        """Begin another turn: indices of calls are counted again."""
        self._before = self.count
        self._streaming, self._turn = {}, []

    def delta(self, delta: ToolCallDelta) -> list[Chunk]:
        """Add text to a call's arguments."""
        tool = self._streaming.get(delta.index)
        if tool is None or (delta.id and tool.call_id and delta.id != tool.call_id):
            tool = self._streaming[delta.index] = self._new(delta.id, delta.name)
        tool.call_id = tool.call_id or delta.id
        tool.name = tool.name or delta.name
        return tool.delta(delta.arguments)

    def call(self, call: Call) -> list[Chunk]:
        """Complete a call with the arguments that the log has."""
        tool = self._find(call) or self._new(call.id, call.name)
        tool.call_id, tool.name, tool.complete = call.id, call.name or "unnamed", True
        chunks = [] if tool.started else tool.start()
        self._waiting.append(tool)
        ids = {"toolCallId": tool.id, "toolName": tool.name}
        try:
            value = json.loads(call.arguments or "{}", parse_constant=_refuse_constant)
            json.dumps(value)
        except (ValueError, RecursionError) as error:
            problem = {"input": call.arguments, "errorText": f"the input is not JSON: {error}"}
            return [*chunks, {"type": "tool-input-error", **ids, **problem}]
        return [*chunks, {"type": "tool-input-available", **ids, "input": value}]

    def result(self, call: str, content: str, *, error: bool) -> list[Chunk]:
        """Give a call its result; a result for no call of this message makes no chunk."""
        tools = [tool for tool in self._waiting if not call or call in (tool.call_id, tool.id)]
        if not tools:
            return []
        self._waiting.remove(tools[0])
        if error:
            return [{"type": "tool-output-error", "toolCallId": tools[0].id, "errorText": content}]
        ids = {"toolCallId": tools[0].id}
        return [{"type": "tool-output-available", **ids, "output": structured(content)}]

    def fail_incomplete(self) -> list[Chunk]:
        """Fail the calls of this turn that began to stream and are not in the log."""
        return [
            {
                "type": "tool-input-error",
                "toolCallId": tool.id,
                "toolName": tool.name,
                "input": None,
                "errorText": "the call broke off",
            }
            for tool in self._turn
            if tool.started and not tool.complete
        ]

    def _find(self, call: Call) -> _ToolInput | None:
        """The streamed input that this call completes: by its id, else by its tool's name."""
        open_ = [tool for tool in self._turn if not tool.complete]
        same = [tool for tool in open_ if tool.call_id and tool.call_id == call.id]
        return next(iter(same or [tool for tool in open_ if tool.name in ("", call.name)]), None)

    def _new(self, call_id: str, name: str) -> _ToolInput:
        unique = call_id or f"call-{len(self._ids)}"
        while unique in self._ids:
            unique += "+"
        self._ids.add(unique)
        self._turn.append(_ToolInput(unique, call_id, name))
        return self._turn[-1]


def structured(content: str) -> Any:
    """A tool's result as front ends want it: an object or a list as such, all else as its text.

    The log has results as text. What a tool returned as an object or a list is JSON there.
    """
    if content.lstrip()[:1] not in ("{", "["):
        return content
    try:
        value = json.loads(content, parse_constant=_refuse_constant)
        json.dumps(value)
    except (ValueError, RecursionError):  # truncated, or no JSON
        return content
    return value


def _refuse_constant(name: str) -> None:
    """Refuse `NaN` and `Infinity`, which are not JSON."""
    raise ValueError(f"{name} is not a number")
