"""Chat Completions output, streamed or whole, as events.

The typed structs below name only what is looked at; everything in them may be of any type, since
bad output of a provider must not break a stream that is passing through. Thoughts of all keys are
gathered piece by piece and told at the end, in the order their first piece came.
"""

import json
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thoughtline import splice
from thoughtline.clock import Clock
from thoughtline.dialects import inline
from thoughtline.dialects.chat_patch import MEMBERS
from thoughtline.dialects.details import merge
from thoughtline.dialects.recorder import Recorder, Stopwatch
from thoughtline.dialects.sse import Splitter
from thoughtline.dialects.thoughts import thought
from thoughtline.errors import Unreadable
from thoughtline.events import (
    AssistantMessage,
    Happening,
    Outcome,
    Reasoning,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from thoughtline.parts import Call, Carrier, Origin, Text


class _Delta(Struct, gc=False):
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    reasoning_text: Any = None
    reasoning_opaque: Any = None
    tool_calls: Any = None
    function_call: Any = None


class _Choice(Struct, gc=False):
    delta: _Delta | None = None
    index: Any = 0
    finish_reason: Any = None


class _Chunk(Struct, gc=False):
    choices: list[_Choice] | None = None
    id: Any = None
    model: Any = None
    usage: Any = None
    error: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode


class _Piece:
    """One text, call or thought while it arrives."""

    __slots__ = ("call", "carrier", "kind", "pieces", "rides", "watch")

    def __init__(self, kind: str, carrier: Carrier | None = None) -> None:
        self.kind = kind  # "thought", "text", "chunk" or "call"
        self.carrier = carrier
        self.pieces: list[Any] = []
        self.watch: Stopwatch | None = None
        self.call: dict[str, str] = {}
        self.rides: Any = None  # what rides on a call (extra_content)


class ChatReader(Recorder):
    """Reads one Chat Completions response."""

    def __init__(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> None:
        super().__init__(clock=clock, origin=origin, sent=sent)
        self._splitter = Splitter() if stream else None
        self._body: list[bytes] = []
        self._pieces: dict[Any, _Piece] = {}  # in order of arrival
        self._inline = inline.Inline()
        self._thinking: _Piece | None = None  # the thought that is growing now
        self._raws: dict[str, str] = {}  # exact JSON text of members, for whole bodies

    def feed(self, data: bytes) -> list[Happening]:
        if self._splitter is None:
            self._body.append(data)
            return []
        self.tick()
        told: list[Happening] = []
        for event in self._splitter.feed(data):
            self._event(event.data, told)
        return told

    def close(self, *, reason: str = "") -> list[Happening]:
        self.tick()
        told: list[Happening] = []
        if self._splitter is None:
            self._whole(b"".join(self._body), told)
            self._body = []
        else:
            for event in self._splitter.finish():
                self._event(event.data, told)
        if self._ended:
            return told
        return told + self._settled() + self.ending(reason)

    # -- one chunk -------------------------------------------------------------------------------

    def _event(self, data: bytes, told: list[Happening]) -> None:
        if data == b"[DONE]":
            self.done = True
            return
        try:
            chunk = _decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._odd(data, told)
        else:
            self._take(chunk, told)

    def _odd(self, data: bytes, told: list[Happening]) -> None:
        """A chunk that the strict decoder refuses: half an emoji, or types nobody expects."""
        try:
            document = json.loads(data)
            chunk = msgspec.convert(document, _Chunk)
        except (ValueError, RecursionError):
            return
        start = len(told)
        self._take(chunk, told)
        told[start:] = [_showable(happening) for happening in told[start:]]

    def _take(self, chunk: _Chunk, told: list[Happening]) -> None:
        if chunk.usage is not None or chunk.error is not None or not self.model:
            self._about(chunk)
        for choice in chunk.choices or ():
            if choice.index in (0, None):
                if choice.delta is not None:
                    self._delta(choice.delta, told)
                if choice.finish_reason is not None:
                    self._finish(choice.finish_reason)

    def _about(self, chunk: _Chunk) -> None:
        if isinstance(chunk.model, str) and chunk.model:
            self.model = chunk.model
        if isinstance(chunk.id, str) and chunk.id:
            self.response = chunk.id
        if isinstance(chunk.usage, dict):
            self.usage = usage(chunk.usage)
        if chunk.error is not None:
            self.outcome = Outcome.FAILED
            self.reason = _message(chunk.error)

    def _finish(self, reason: Any) -> None:
        self.done = True
        self._rest()
        if reason == "length" and self.outcome is None:
            self.outcome, self.reason = Outcome.CAPPED, "length"

    def _delta(self, delta: _Delta, told: list[Happening]) -> None:
        if (content := delta.content) is not None and content != "":
            self._content(content, told)
        if delta.reasoning_content is not None:
            self._think(Carrier.REASONING_CONTENT, delta.reasoning_content, told)
        if delta.reasoning is not None:
            self._think(Carrier.REASONING, delta.reasoning, told)
        if delta.reasoning_details is not None:
            self._think(Carrier.REASONING_DETAILS, delta.reasoning_details, told)
        if delta.reasoning_text is not None:
            self._think(Carrier.REASONING_TEXT, delta.reasoning_text, told)
        if delta.reasoning_opaque is not None:
            self._think(Carrier.REASONING_OPAQUE, delta.reasoning_opaque, told)
        if delta.tool_calls is not None:
            self._calls(delta.tool_calls, told)
        if delta.function_call is not None:
            self._calls([{"index": 0, "function": delta.function_call}], told)

    # -- thoughts, text, calls -------------------------------------------------------------------

    def _piece(self, key: Any, kind: str, carrier: Carrier | None = None) -> _Piece:
        piece = self._pieces.get(key)
        if piece is None:
            piece = self._pieces[key] = _Piece(kind, carrier)
            if kind == "thought":
                piece.watch = self.watch()
        return piece

    def _think(self, carrier: Carrier, value: Any, told: list[Happening]) -> None:
        piece = self._pieces.get(carrier) or self._piece(carrier, "thought", carrier)
        piece.pieces.append(value)
        if not value or carrier is Carrier.REASONING_OPAQUE:
            return
        piece.watch.touch(self.now)  # type: ignore[union-attr]
        self._thinking = piece
        if type(value) is str:
            first = next(iter(self._pieces.values()))
            if first is piece or first.kind != "thought" or not first.pieces[-1]:
                told.append(ReasoningDelta(value))
        elif carrier is Carrier.REASONING_DETAILS and Carrier.REASONING not in self._pieces:
            text = "".join(_readable(detail) for detail in value) if type(value) is list else ""
            if text:
                told.append(ReasoningDelta(text))

    def _rest(self) -> None:
        """Something else began: the thought that was growing is complete, as far as we know."""
        if self._thinking is not None and self._thinking.watch is not None:
            self._thinking.watch.closed = self.now
            self._thinking = None

    def _content(self, content: Any, told: list[Happening]) -> None:
        if isinstance(content, list):
            for element in content:
                self._chunk(element, told)
            return
        if not isinstance(content, str):
            return
        thinking, text = self._inline.feed(content)
        if thinking:
            piece = self._piece("inline", "thought", Carrier.THINK)
            piece.watch.touch(self.now)  # type: ignore[union-attr]
            self._thinking = piece
            told.append(ReasoningDelta(thinking))
        if text:
            self._rest()
            told.append(TextDelta(text))
        self._piece("content", "text").pieces.append(content)

    def _chunk(self, element: Any, told: list[Happening]) -> None:
        """An element of a content list: Mistral's thinking chunks stand between texts."""
        if not isinstance(element, dict):
            return
        if element.get("type") != "thinking":
            if isinstance(element.get("text"), str):
                self._content(element["text"], told)
            return
        last = next(reversed(self._pieces.values()), None)
        if last is None or last.kind != "chunk":
            last = self._piece(("chunk", len(self._pieces)), "chunk", Carrier.CHUNK)
            last.watch = self.watch()
        last.pieces.append(element)
        last.watch.touch(self.now)  # type: ignore[union-attr]
        self._thinking = last
        told.append(ReasoningDelta(_readable(element)))

    def _calls(self, calls: Any, told: list[Happening]) -> None:
        self._rest()
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if not isinstance(call, dict):
                continue
            index = call.get("index")
            if not isinstance(index, int):
                index = position
            piece = self._piece(("call", index), "call")
            function = call.get("function")
            function = function if isinstance(function, dict) else {}
            name, id, more = function.get("name"), call.get("id"), function.get("arguments")
            if isinstance(name, str) and name:
                piece.call["name"] = name
            if isinstance(id, str) and id:
                piece.call["id"] = id
            if call.get("extra_content") is not None:
                piece.rides = call["extra_content"]
            if isinstance(more, dict):
                more = splice.dumps(more).decode()
            if isinstance(more, str):
                piece.pieces.append(more)
                told.append(ToolCallDelta(index, more, piece.call.get("name", ""), str(id or "")))

    # -- the end ---------------------------------------------------------------------------------

    def _settled(self) -> list[Happening]:
        """Canonical bodies of everything that is complete, in order of arrival."""
        finished = self.done and self.outcome is not Outcome.FAILED
        told: list[Happening] = []
        for key, piece in self._pieces.items():
            if piece.kind == "text":
                text = _whole("".join(piece.pieces))
                thinking, text = inline.split(text)
                if thinking:
                    told.append(self._reasoning(Carrier.THINK, thinking, piece, finished))
                if text and finished:
                    told.append(AssistantMessage(parts=(Text(text=text),)))
            elif piece.kind == "call":
                if finished:
                    told += self._call(piece)
            elif piece.kind == "chunk":
                told.append(self._reasoning(Carrier.CHUNK, _chunked(piece), piece, finished))
            elif key != "inline" and (value := _gathered(piece)) is not None:
                told.append(self._reasoning(Carrier(key), value, piece, finished))
        return told

    def _reasoning(self, carrier: Carrier, value: Any, piece: _Piece, finished: bool) -> Reasoning:
        watch = piece.watch or self._inline_watch()
        aborted = not finished and (watch.closed is None)
        return Reasoning(
            thought=thought(
                carrier,
                value,
                self._raws.get(carrier),
                text=inline.inner(value) if carrier is Carrier.THINK else None,
                origin=self.made(),
                timing=self.timing(watch, aborted=aborted),
            )
        )

    def _inline_watch(self) -> Stopwatch:
        piece = self._pieces.get("inline")
        return piece.watch if piece and piece.watch else self.watch()

    def _call(self, piece: _Piece) -> list[Happening]:
        told: list[Happening] = []
        if piece.rides is not None:
            made = thought(
                Carrier.EXTRA_CONTENT,
                piece.rides,
                origin=self.made(),
                timing=self.timing(self.watch()),
            )
            told.append(Reasoning(thought=made))
        arguments = _whole("".join(piece.pieces))
        call = Call(
            name=piece.call.get("name", ""), arguments=arguments, id=piece.call.get("id", "")
        )
        return [*told, ToolCall(call=call)]

    # -- a whole body ----------------------------------------------------------------------------

    def _whole(self, body: bytes, told: list[Happening]) -> None:
        """A body that was not streamed: one delta that holds everything, with exact JSON texts."""
        if not body.strip():
            return
        try:
            document = splice.loads(body.strip().removeprefix(b"data:"))
        except Unreadable:
            return
        if not isinstance(document, dict):
            return
        choices = document.get("choices")
        self._about(
            _Chunk(
                id=document.get("id"),
                model=document.get("model"),
                usage=document.get("usage"),
                error=document.get("error"),
            )
        )
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, dict) else None
        if isinstance(first, dict) and isinstance(message, dict):
            self._exact(body)
            known = {k: v for k, v in message.items() if k in _Delta.__struct_fields__}
            self._delta(_Delta(**known), told)
            self._finish(first.get("finish_reason"))

    def _exact(self, body: bytes) -> None:
        """Remember the provider's own spelling of the members that are thoughts."""
        try:
            choices = splice.elements(body, splice.members(body)["choices"])
            message = splice.members(body, splice.members(body, choices[0])["message"])
        except (Unreadable, KeyError, IndexError):
            return
        for key in MEMBERS:
            if span := message.get(key):
                self._raws[key] = body[span.value : span.end].decode()


def usage(counts: dict[str, Any]) -> Usage:
    """Tokens from a usage object, in the spellings of several providers."""

    def count(*path: str) -> int | None:
        value: Any = counts
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    cached = count("prompt_tokens_details", "cached_tokens")
    return Usage(
        input=count("prompt_tokens"),
        output=count("completion_tokens"),
        reasoning=count("completion_tokens_details", "reasoning_tokens"),
        cached=cached if cached is not None else count("prompt_cache_hit_tokens"),
    )


def _message(error: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else "the provider reported an error"


def _readable(detail: Any) -> str:
    if not isinstance(detail, dict):
        return ""
    inner = detail.get("thinking")
    if isinstance(inner, list):
        return "".join(_readable(element) for element in inner)
    for key in ("text", "summary", "thinking"):
        if isinstance(detail.get(key), str):
            return str(detail[key])
    return ""


def _gathered(piece: _Piece) -> Any:
    """A key's whole value from its pieces; None where it never had one."""
    if piece.carrier is Carrier.REASONING_DETAILS:
        return merge(piece.pieces)
    strings = [p for p in piece.pieces if isinstance(p, str)]
    if strings:
        return _whole("".join(strings))
    return piece.pieces[-1] if piece.pieces else None


def _chunked(piece: _Piece) -> Any:
    """Mistral's chunk from its fragments: the first one's shape with all of the text."""
    if len(piece.pieces) == 1:
        return piece.pieces[0]
    text = "".join(_readable(element) for element in piece.pieces)
    return piece.pieces[0] | {"thinking": [{"type": "text", "text": text}]}


def _whole(text: str) -> str:
    """Join halves of an emoji that came in two chunks; a half that stays alone is U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _showable(happening: Happening) -> Happening:
    """A delta without half an emoji, which no UTF-8 can carry."""
    if isinstance(happening, ReasoningDelta | TextDelta):
        return replace(happening, text=_whole(happening.text))
    return happening
