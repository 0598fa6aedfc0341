"""The parts of a UI message while they arrive: which one is open, and what the tools are called.

Text and thoughts come one after the other: whatever else begins ends the one that is open. Inputs
of tools may grow side by side. A front end knows a part by the id given here, so a delta or an end
never comes without its start.
"""

import json
from typing import Any

from thoughtline.events import ToolCallDelta
from thoughtline.parts import Call

Chunk = dict[str, Any]


class Flow:
    """Text and thoughts of one message."""

    def __init__(self) -> None:
        self.kind = ""  # of the part that is open: text, reasoning or nothing
        self.key = ""
        self._id = ""
        self._count = 0

    def open(self, kind: str, key: str = "") -> list[Chunk]:
        """Begin a part; what was open ends."""
        ended = self.close()
        self.kind, self.key, self._id = kind, key, f"{kind}-{self._count}"
        self._count += 1
        start: Chunk = {"type": f"{kind}-start", "id": self._id}
        if key:
            start["providerMetadata"] = {"thoughtline": {"key": key}}
        return [*ended, start]

    def grow(self, text: str) -> Chunk:
        """A few more characters of what is open."""
        return {"type": f"{self.kind}-delta", "id": self._id, "delta": text}

    def close(self) -> list[Chunk]:
        """End what is open."""
        if not self.kind:
            return []
        end = {"type": f"{self.kind}-end", "id": self._id}
        self.kind = self.key = ""
        return [end]


class _Input:
    """A tool's input while it arrives."""

    def __init__(self, id: str, said: str, name: str) -> None:
        self.id = id  # as the front end knows it
        self.said = said  # as the provider knows it
        self.name = name
        self.held = ""  # what came before the tool's name
        self.started = False
        self.whole = False

    def start(self) -> list[Chunk]:
        self.started = True
        return [{"type": "tool-input-start", "toolCallId": self.id, "toolName": self.name}]

    def grow(self, more: str) -> list[Chunk]:
        self.held += more
        if not self.name:
            return []
        told = [] if self.started else self.start()
        if self.held:
            told.append(
                {"type": "tool-input-delta", "toolCallId": self.id, "inputTextDelta": self.held}
            )
            self.held = ""
        return told


class Tools:
    """Calls of one message, and which of them have no result yet."""

    def __init__(self) -> None:
        self._growing: dict[int, _Input] = {}  # by place, in this turn
        self._turn: list[_Input] = []  # of this turn, in the order they began
        self._waiting: list[_Input] = []
        self._ids: set[str] = set()

    @property
    def shown(self) -> bool:
        """Whether anything of a call was shown in this turn."""
        return any(made.started for made in self._turn)

    def turn(self) -> None:
        """Another turn begins: places are counted anew."""
        self._growing, self._turn = {}, []

    def delta(self, delta: ToolCallDelta) -> list[Chunk]:
        """A few more characters of a call's arguments."""
        made = self._growing.get(delta.index)
        if made is None or (delta.id and made.said and delta.id != made.said):
            made = self._growing[delta.index] = self._new(delta.id, delta.name)
        made.said = made.said or delta.id
        made.name = made.name or delta.name
        return made.grow(delta.arguments)

    def call(self, call: Call) -> list[Chunk]:
        """A call is complete."""
        made = self._find(call) or self._new(call.id, call.name)
        made.said, made.name, made.whole = call.id, call.name or "unnamed", True
        told = [] if made.started else made.start()
        self._waiting.append(made)
        named = {"toolCallId": made.id, "toolName": made.name}
        try:
            value = json.loads(call.arguments or "{}", parse_constant=_no_number)
            json.dumps(value)
        except (ValueError, RecursionError) as error:
            wrong = {"input": call.arguments, "errorText": f"the input is not JSON: {error}"}
            return [*told, {"type": "tool-input-error", **named, **wrong}]
        return [*told, {"type": "tool-input-available", **named, "input": value}]

    def result(self, call: str, content: str, *, error: bool) -> list[Chunk]:
        """A tool answered; one that nobody here called is not shown."""
        known = [made for made in self._waiting if not call or call in (made.said, made.id)]
        if not known:
            return []
        self._waiting.remove(known[0])
        if error:
            return [{"type": "tool-output-error", "toolCallId": known[0].id, "errorText": content}]
        return [{"type": "tool-output-available", "toolCallId": known[0].id, "output": content}]

    def broken(self) -> list[Chunk]:
        """Inputs that were begun and will not be complete."""
        return [
            {
                "type": "tool-input-error",
                "toolCallId": made.id,
                "toolName": made.name,
                "input": None,
                "errorText": "the call broke off",
            }
            for made in self._turn
            if made.started and not made.whole
        ]

    def _find(self, call: Call) -> _Input | None:
        left = [made for made in self._turn if not made.whole]
        same = [made for made in left if made.said and made.said == call.id]
        return next(iter(same or [m for m in left if m.name in ("", call.name)]), None)

    def _new(self, id: str, name: str) -> _Input:
        known = id or f"call-{len(self._ids)}"
        while known in self._ids:
            known += "+"
        self._ids.add(known)
        self._turn.append(_Input(known, id, name))
        return self._turn[-1]


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number")
