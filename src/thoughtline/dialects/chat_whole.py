"""A Chat Completions response that was not streamed: one body, read when all of it is there."""

from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline import splice
from thoughtline.dialects.chat_message import MEMBERS, Raws, Said, exact, output
from thoughtline.dialects.chat_recorder import ChatRecorder
from thoughtline.errors import Unreadable
from thoughtline.events import AssistantMessage, Canonical, Happening, Outcome, Reasoning, ToolCall
from thoughtline.parts import Call, Thought, Timing


class ChatBody(ChatRecorder):
    """Reads one whole body. Nothing is told before the end, and there are no deltas."""

    def __init__(self, **recorder: Any) -> None:
        super().__init__(**recorder)
        self._body: list[bytes] = []

    def feed(self, data: bytes) -> list[Happening]:
        self._body.append(data)
        return []

    def close(self, *, reason: str = "") -> list[Happening]:
        if self._ended:
            return []
        self.tick()
        # One provider sends error bodies with the prefix of a stream.
        body = b"".join(self._body).strip().removeprefix(b"data:").strip()
        self._body = []
        try:
            parts = self._read(body)
        except (Unreadable, RecursionError):
            parts = []
        complete = self.outcome is not Outcome.FAILED
        told = [self._told(part) for part in parts if complete or isinstance(part, Thought)]
        return [*told, *self.ending(reason)]

    def _read(self, body: bytes) -> list[Said]:
        document = splice.loads(body)
        if not isinstance(document, dict):
            return []
        self.about(
            id=document.get("id"),
            model=document.get("model"),
            usage=document.get("usage"),
            error=document.get("error"),
        )
        choices = document.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict) or not isinstance(message := choice.get("message"), dict):
            return []
        self.finish(choice.get("finish_reason"))
        return output(message, _raws(body))

    def _told(self, part: Said) -> Canonical:
        if isinstance(part, Thought):
            # When it began is unknown and stays so; when it was all there is known.
            timing = Timing(sent=self.sent, closed=self.now)
            return Reasoning(thought=replace(part, origin=self.made(), timing=timing))
        if isinstance(part, Call):
            return ToolCall(call=part)
        return AssistantMessage(parts=(part,))


class _Spelled(Struct):
    """The members of a message that are plain thoughts, as they are spelled."""

    reasoning_content: Raw = Raw()
    reasoning: Raw = Raw()
    reasoning_details: Raw = Raw()
    reasoning_text: Raw = Raw()
    reasoning_opaque: Raw = Raw()


_NONE = Raw()


class _Choice(Struct):
    message: _Spelled | None = None


class _Whole(Struct):
    choices: list[_Choice] = []


_spelled = msgspec.json.Decoder(_Whole).decode
_ELSEWHERE = (b'"thinking"', b'"extra_content"', b"\\u")
"""Thoughts inside the content or on a call, or keys that an escape may hide."""


def _raws(body: bytes) -> Raws:
    """The provider's own spelling of the thoughts in the first choice."""
    if not any(trace in body for trace in _ELSEWHERE):
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            choices = _spelled(body).choices
            message = choices[0].message if choices else None
            if message is None:
                return {}
            found = ((carrier, getattr(message, carrier)) for carrier in MEMBERS)
            return {(carrier, 0): bytes(raw).decode() for carrier, raw in found if raw != _NONE}
    try:
        choice = splice.elements(body, splice.members(body)["choices"])[0]
        return exact(body, splice.members(body, choice)["message"])
    except (Unreadable, LookupError):
        return {}
