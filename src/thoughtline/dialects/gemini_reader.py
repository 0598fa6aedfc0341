"""Gemini output as events: server-sent events, a streamed JSON array, or one whole body.

All three are GenerateContentResponses, one or many, and are told apart by their first byte. Most
of them hold nothing but a piece of plain text or of a thought's summary: those fit the strict
structs below, everything else takes the general way. Parts that continue one another are
one text or one thought (see `gemini_parts`); all are told at the end, in order of arrival.
"""

import json
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct, field

from thoughtline import splice
from thoughtline.clock import Clock
from thoughtline.dialects.escapes import showable
from thoughtline.dialects.gemini_parts import SEPARATE, continues, kind, signature, text
from thoughtline.dialects.gemini_pieces import Piece, spellings
from thoughtline.dialects.halves import mend
from thoughtline.dialects.objects import Objects
from thoughtline.dialects.recorder import Recorder
from thoughtline.dialects.sse import Splitter
from thoughtline.errors import Unreadable
from thoughtline.events import (
    Delta,
    Happening,
    Outcome,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from thoughtline.parts import Call, Carrier, Origin, Part, Text

_NONE = Raw()


class _Part(Struct, gc=False):
    text: str
    thought: bool = False
    signed: None = field(default=None, name="thoughtSignature")
    thought_signature: None = None


class _Content(Struct, gc=False):
    parts: tuple[_Part]


class _Candidate(Struct, gc=False):
    content: _Content
    finish: None = field(default=None, name="finishReason")
    index: Literal[0] | None = None


class _Plain(Struct, gc=False):
    """A response that holds one piece of text and nothing else; the decoder refuses all others."""

    candidates: tuple[_Candidate]
    counts: Raw = field(default=_NONE, name="usageMetadata")  # only the last one is looked at
    error: None = None


_decode = msgspec.json.Decoder(_Plain).decode


class GeminiReader(Recorder):
    """Reads one `generateContent` or `streamGenerateContent` response."""

    def __init__(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> None:
        super().__init__(clock=clock, origin=origin, sent=sent)
        self._stream = stream
        self._splitter: Splitter | None = None
        self._objects: Objects | None = None
        self._pieces: list[Piece] = []  # in order of arrival
        self._calls = 0
        self._counts = _NONE

    def feed(self, data: bytes) -> list[Happening]:
        self.tick()
        told: list[Delta] = []
        if self._splitter is not None:
            for event in self._splitter.feed_data(data):
                self._event(event, told)
        elif self._objects is not None:
            for document in self._objects.feed(data):
                self._event(document, told if self._stream else [])
        elif data := data.lstrip(b"\xef\xbb\xbf \t\r\n"):
            if data[:1] in (b"[", b"{"):
                self._objects = Objects()
            else:
                self._splitter = Splitter()
            return self.feed(data)
        return list[Happening](told)

    def close(self, *, reason: str = "") -> list[Happening]:
        self.tick()
        told: list[Delta] = []
        for event in self._splitter.finish() if self._splitter is not None else ():
            self._event(event.data, told)
        if self._ended:
            return [*told]
        self._count()
        return [*told, *self._settled(), *self.ending(reason)]

    # -- one response of many --------------------------------------------------------------------

    def _event(self, data: bytes, told: list[Delta]) -> None:
        try:
            if self._grow(_decode(data), told):
                return
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # anything but a piece of text
        shown: list[Delta] = []
        self._general(data, shown)
        told += map(showable, shown)

    def _grow(self, plain: _Plain, told: list[Delta]) -> bool:
        """Take in one more piece of what is growing; False where it is something new."""
        part = plain.candidates[0].content.parts[0]
        piece = self._pieces[-1] if self._pieces else None
        said = part.text
        if piece is None or piece.rides or not said:
            return False
        if part.thought:
            if piece.kind != "thought":
                return False
            if piece.watch is not None:
                piece.watch.touch(self.now)
            told.append(ReasoningDelta(said))
        elif piece.kind == "text":
            told.append(TextDelta(said))
        else:
            return False
        piece.texts.append(said)
        if plain.counts is not _NONE:
            self._counts = plain.counts
        return True

    def _general(self, data: bytes, told: list[Delta]) -> None:
        try:
            document = json.loads(data.decode("utf-8", "replace"), strict=False)
        except (ValueError, RecursionError):
            return
        if not isinstance(document, dict):
            return
        self._about(document)
        candidates = document.get("candidates")
        for place, candidate in enumerate(candidates if isinstance(candidates, list) else ()):
            if isinstance(candidate, dict) and candidate.get("index") in (0, None):
                content = candidate.get("content")
                parts = content.get("parts") if isinstance(content, dict) else None
                if isinstance(parts, list):
                    self._parts(parts, spellings(data, place, parts), told)
                self._finish(candidate.get("finishReason"), told)
                break

    def _about(self, document: dict[str, Any]) -> None:
        model, id = document.get("modelVersion"), document.get("responseId")
        if isinstance(model, str) and model:
            self.model = mend(model)
        if isinstance(id, str) and id:
            self.response = mend(id)
        if isinstance(counts := document.get("usageMetadata"), dict):
            self.usage, self._counts = _usage(counts), _NONE
        feedback, error = document.get("promptFeedback"), document.get("error")
        blocked = feedback.get("blockReason") if isinstance(feedback, dict) else None
        if isinstance(blocked, str):
            self.outcome, self.reason = Outcome.FAILED, mend(blocked)
        if error is not None:
            message = error.get("message") if isinstance(error, dict) else error
            self.outcome = Outcome.FAILED
            said = isinstance(message, str) and message
            self.reason = mend(message) if said else "the provider reported an error"

    def _finish(self, reason: Any, told: list[Delta]) -> None:
        if not isinstance(reason, str):
            return
        self.done = True
        self._rest(told)
        if self.outcome is Outcome.FAILED or reason == "STOP":
            return
        self.outcome = Outcome.CAPPED if reason == "MAX_TOKENS" else Outcome.FAILED
        self.reason = mend(reason)

    # -- parts -----------------------------------------------------------------------------------

    def _parts(self, parts: list[Any], raws: list[bytes], told: list[Delta]) -> None:
        border = True
        for part, raw in zip(parts, raws, strict=True):
            if raw and isinstance(part, dict) and kind(part):
                self._part(part, raw, told, border=border)
                border = False

    def _part(self, part: dict[str, Any], raw: bytes, told: list[Delta], *, border: bool) -> None:
        what, signed = kind(part), bool(signature(part))
        piece = self._pieces[-1] if self._pieces and border else None
        if piece is not None and continues(piece.kind, bool(piece.rides), what, signed):
            piece.grow(part)
        else:
            self._rest(told)
            piece = Piece(part, raw)
            if self._stream and (signed or what == "thought"):
                piece.watch = self.watch()
            self._pieces.append(piece)
        if what == "thought" and (said := text(part)):
            if piece.watch is not None:
                piece.watch.touch(self.now)
            told.append(ReasoningDelta(said))
        elif what == "text":
            told.append(TextDelta(part["text"]))
        elif what == "call":
            call = piece.call()
            told.append(ToolCallDelta(self._calls, call.arguments, call.name, call.id))
            self._calls += 1
        if signed:
            self._rest(told)

    def _rest(self, told: list[Delta]) -> None:
        """Nothing more can come to the thought that was growing."""
        piece = self._pieces[-1] if self._pieces else None
        if piece is not None and piece.watch is not None and piece.watch.closed is None:
            ended = self.closing(piece.watch)
            if piece.kind == "thought":  # a signature that rides on something is not shown
                told.append(ended)

    # -- in between ------------------------------------------------------------------------------

    @property
    def spoke(self) -> bool:
        return any(piece.kind not in SEPARATE for piece in self._pieces)

    def glimpse(self) -> list[Part]:
        parts: list[Part] = []
        for piece in self._pieces:
            thinks = piece.kind in SEPARATE
            if piece.watch is not None and (thinks or piece.rides):
                carrier = Carrier.PART if thinks else Carrier.SIGNATURE
                text = "".join(piece.texts) if thinks else ""
                parts.append(self.seen(carrier, piece.watch, text))
            if piece.kind == "call":
                parts.append(Call(name=piece.call().name, arguments=""))
            elif not thinks:
                parts.append(Text(text=""))
        return parts

    # -- the end ---------------------------------------------------------------------------------

    def _count(self) -> None:
        """Every chunk counts again; those of plain pieces are looked at only if they were last."""
        try:
            counts = splice.loads(bytes(self._counts))
        except Unreadable:
            return
        if isinstance(counts, dict):
            self.usage = _usage(counts)

    def _settled(self) -> list[Happening]:
        """Canonical bodies of everything that is complete, in order of arrival."""
        finished = self.done and self.outcome is not Outcome.FAILED
        told: list[Happening] = []
        for piece in self._pieces:
            if (found := piece.thought()) is not None:
                aborted = not finished and piece.watch is not None and piece.watch.closed is None
                carrier, raw = found
                told.append(self.reasoning(carrier, raw, piece.watch, aborted=aborted))
            if finished and piece.kind not in SEPARATE:
                told.append(piece.said())
        return told


def _usage(counts: dict[str, Any]) -> Usage:
    def count(key: str) -> int | None:
        value = counts.get(key)
        return value if type(value) is int and 0 <= value < 2**63 else None

    return Usage(
        input=count("promptTokenCount"),
        output=count("candidatesTokenCount"),
        reasoning=count("thoughtsTokenCount"),
        cached=count("cachedContentTokenCount"),
    )
