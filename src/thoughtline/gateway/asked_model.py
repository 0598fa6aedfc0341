"""Says the client's own name of a model in an answer, where `[models]` put another in its place.

An answer in another dialect is written with that name; one in the client's own dialect is the
provider's, and only its name of the model is changed on the way to the client. What is recorded
stays as it came.
"""

import re
from collections.abc import Iterator
from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.base import Dialect
from thoughtline.dialects.splice import Edit, Span
from thoughtline.errors import Unreadable
from thoughtline.gateway.asgi import Send, WriteNow

MAX_HELD = 32 << 20
"""Bytes of an answer, or of an event, that are held until it is whole; longer ones stay as is."""


class AskedModel:
    """The name that a client asked for, and where answers of a dialect name their model."""

    def __init__(self, dialect: Dialect, name: str) -> None:
        self._places = dialect.model_places
        keys = {place[-1].encode() for place in self._places}
        self._mentioned = re.compile(b'"(?:%s)"' % b"|".join(sorted(keys))).search
        self._name = splice.dumps(name)

    def put(self, text: bytes) -> bytes:
        """A JSON text with this name of the model; as it is where it names none."""
        if not self._mentioned(text):
            return text
        try:
            return splice.apply(text, [*self._edits(text)])
        except Unreadable:
            return text

    def put_in_lines(self, text: bytes) -> bytes:
        """Server-sent events, in whole lines, with this name of the model."""
        if not self._mentioned(text):
            return text
        lines = text.splitlines(keepends=True)
        return b"".join(
            line[:5] + self.put(line[5:]) if line.startswith(b"data:") else line for line in lines
        )

    def _edits(self, text: bytes) -> Iterator[Edit]:
        whole = Span(0, 0, len(text))
        listed = text.lstrip()[:1] == b"["  # a stream of Gemini's may be one array
        for span in splice.elements(text, whole) if listed else [whole]:
            has = splice.members(text, span)
            for *way, key in self._places:
                inside = has
                if way:
                    place = has.get(way[0])
                    if place is None or text[place.value : place.value + 1] != b"{":
                        continue
                    inside = splice.members(text, place)
                found = inside.get(key)
                if found is not None and text[found.value : found.value + 1] == b'"':
                    yield found.value, found.end, self._name


class AskedModelSend:
    """What a relay sends to a client, with its name of the model."""

    def __init__(
        self, asked: AskedModel, send: Send, write_now: WriteNow | None, *, stream: bool
    ) -> None:
        self._asked = asked
        self._inner = send
        self._write = write_now
        self._stream = stream
        self._held = b""
        self._given_up = False  # there was too much to hold

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message; of its body what is whole, and the rest with a later one."""
        if "body" not in message:
            await self._inner(message)
            return
        more: bool = message.get("more_body", False)
        told, self._held = self._split(message["body"], more=more)
        if told or not more:
            await self._inner({**message, "body": told})

    def write_now(self, chunk: bytes) -> bool:
        """Send a chunk of a stream at once, if that is possible; else nothing has happened."""
        told, held = self._split(chunk, more=True)
        if told and (self._write is None or not self._write(told)):
            return False
        self._held = held
        return True

    def _split(self, chunk: bytes, *, more: bool) -> tuple[bytes, bytes]:
        """What goes out now, and what is held."""
        text = self._held + chunk
        if self._given_up:
            return text, b""
        end = len(text)
        if more:
            end = text.rfind(b"\n") + 1 if self._stream else 0
        if len(text) - end > MAX_HELD:
            self._given_up = True
            return text, b""
        whole = text[:end]
        told = self._asked.put_in_lines(whole) if self._stream else self._asked.put(whole)
        return told, text[end:]
