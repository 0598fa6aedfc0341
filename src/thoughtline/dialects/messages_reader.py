"""Messages output, streamed or whole, as events.

A stream announces each block, lets it grow by deltas and closes it; a signature is the last delta
of its block. A thought is the announced block with its growing members filled in: fields that
nobody knows keep their bytes. Canonical bodies are told at the end, in order of arrival, and of a
stream that failed or was cut only the thoughts.
"""

import json
from typing import Any

import msgspec
from msgspec import Raw, Struct

from thoughtline import splice
from thoughtline.clock import Clock
from thoughtline.dialects.escapes import showable
from thoughtline.dialects.halves import mend
from thoughtline.dialects.messages_blocks import Block
from thoughtline.dialects.messages_patch import THINKING
from thoughtline.dialects.recorder import Recorder
from thoughtline.dialects.sse import Splitter
from thoughtline.errors import Unreadable
from thoughtline.events import (
    Delta,
    Happening,
    Keepalive,
    Outcome,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from thoughtline.parts import Call, Carrier, Origin, Part, Text

_CAPS = ("max_tokens", "model_context_window_exceeded")


class _Delta(Struct, gc=False):
    text: Any = None
    thinking: Any = None
    signature: Any = None
    partial_json: Any = None
    content: Any = None
    stop_reason: Any = None


class _Event(Struct, gc=False):
    type: Any = None
    index: Any = None
    delta: _Delta | None = None
    content_block: Raw = Raw()
    message: Any = None
    usage: Any = None
    error: Any = None


_decode = msgspec.json.Decoder(_Event).decode


class MessagesReader(Recorder):
    """Reads one Messages response."""

    def __init__(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> None:
        super().__init__(clock=clock, origin=origin, sent=sent)
        self._splitter = Splitter() if stream else None
        self._body: list[bytes] = []
        self._blocks: list[Block] = []  # in order of arrival
        self._open: dict[int, Block] = {}  # by index
        self._calls = 0
        self._stopped = False  # a stop reason was given: everything was said
        self._counts: dict[str, Any] = {}

    def feed(self, data: bytes) -> list[Happening]:
        if self._splitter is None:
            self._body.append(data)
            return []
        self.tick()
        told: list[Delta] = []
        for event in self._splitter.feed(data):
            self._event(event.data, told)
        return list[Happening](told)

    def close(self, *, reason: str = "") -> list[Happening]:
        self.tick()
        told: list[Delta] = []
        if self._splitter is None:
            self._whole(b"".join(self._body))
            self._body = []
        else:
            for event in self._splitter.finish():
                self._event(event.data, told)
        if self._ended:
            return [*told]
        return [*told, *self._settled(), *self.ending(reason)]

    # -- one event -------------------------------------------------------------------------------

    def _event(self, data: bytes, told: list[Delta]) -> None:
        try:
            event = _decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            if (odd := _lenient(data)) is not None:
                shown: list[Delta] = []
                self._take(odd, shown)
                told += map(showable, shown)
        else:
            self._take(event, told)

    def _take(self, event: _Event, told: list[Delta]) -> None:
        kind = event.type
        if kind == "content_block_delta":
            if event.delta is not None and type(event.index) is int:
                self._delta(event.index, event.delta, told)
        elif kind == "content_block_start":
            self._start(event.index, bytes(event.content_block), told)
        elif kind == "content_block_stop":
            self._stop(event.index, told)
        elif kind == "message_start":
            if isinstance(event.message, dict):
                self._about(event.message)
        elif kind == "message_delta":
            self._count(event.usage)
            if event.delta is not None:
                self._finish(event.delta.stop_reason)
        elif kind == "message_stop":
            self.done = True
        elif kind == "ping":
            told.append(Keepalive())
        elif kind == "error" or event.error is not None:
            self._fail(event.error)

    def _delta(self, index: int, delta: _Delta, told: list[Delta]) -> None:
        block = self._open.get(index) or self._unannounced(index, delta, told)
        kind = block.kind
        if kind == "text":
            if type(delta.text) is str:
                block.pieces.append(delta.text)
                told.append(TextDelta(delta.text))
        elif kind == "thinking":
            if type(delta.thinking) is str:
                block.pieces.append(delta.thinking)
                told.append(ReasoningDelta(delta.thinking))
            elif type(delta.signature) is str:
                block.signature.append(delta.signature)
            else:
                return
            block.watch.touch(self.now)  # type: ignore[union-attr]
        elif type(delta.partial_json) is str:
            block.pieces.append(delta.partial_json)
            if kind == "tool_use" and delta.partial_json:
                told.append(ToolCallDelta(block.nth, delta.partial_json))
        elif type(delta.content) is str and kind == "compaction":
            block.pieces.append(delta.content)

    def _unannounced(self, index: int, delta: _Delta, told: list[Delta]) -> Block:
        """Some servers forget to announce a block; its first delta says what it is."""
        raw = b'{"type":"text","text":""}'
        if delta.thinking is not None or delta.signature is not None:
            raw = b'{"type":"thinking","thinking":""}'
        elif delta.partial_json is not None:
            raw = b'{"type":"tool_use","id":"","name":"","input":{}}'
        self._start(index, raw, told)
        return self._open[index]

    def _start(self, index: Any, raw: bytes, told: list[Delta]) -> None:
        try:
            value = splice.loads(raw)
        except Unreadable:
            return
        if not isinstance(value, dict):
            return
        block = Block(raw, value)
        self._blocks.append(block)
        if type(index) is int:
            self._open[index] = block
        if block.kind in THINKING:
            if self._splitter is not None:
                block.watch = self.watch()
            if text := block.start("thinking"):
                told.append(ReasoningDelta(text))
        elif block.kind == "text":
            if text := block.start("text"):
                told.append(TextDelta(text))
        elif block.kind == "tool_use":
            block.nth, self._calls = self._calls, self._calls + 1
            arguments = block.input() if value.get("input") else ""
            told.append(ToolCallDelta(block.nth, arguments, block.start("name"), block.start("id")))

    def _stop(self, index: Any, told: list[Delta]) -> None:
        block = self._open.get(index) if type(index) is int else None
        if block is not None:
            block.closed = True
            if block.watch is not None:
                told.append(self.closing(block.watch))

    # -- what is said about the response ---------------------------------------------------------

    def _about(self, message: dict[str, Any]) -> None:
        model, id = message.get("model"), message.get("id")
        self.model = mend(model) if isinstance(model, str) else ""
        self.response = mend(id) if isinstance(id, str) else ""
        self._count(message.get("usage"))

    def _count(self, counts: Any) -> None:
        """Counts come twice, at the start and at the end; the later ones win, one by one."""
        if isinstance(counts, dict):
            self._counts |= {k: v for k, v in counts.items() if type(v) is int and 0 <= v < 2**63}
            self.usage = Usage(
                input=self._counts.get("input_tokens"),
                output=self._counts.get("output_tokens"),
                cached=self._counts.get("cache_read_input_tokens"),
            )

    def _finish(self, reason: Any) -> None:
        if not isinstance(reason, str) or self.outcome is Outcome.FAILED:
            return
        self._stopped = True
        self.outcome = Outcome.CAPPED if reason in _CAPS else Outcome.COMPLETED
        self.reason = reason if reason in (*_CAPS, "refusal") else ""

    def _fail(self, error: Any) -> None:
        message = error.get("message") if isinstance(error, dict) else error
        self.outcome = Outcome.FAILED
        said = isinstance(message, str) and message
        self.reason = mend(message) if said else "the provider reported an error"

    # -- in between ------------------------------------------------------------------------------

    @property
    def spoke(self) -> bool:
        return any(block.kind not in THINKING for block in self._blocks)

    def glimpse(self) -> list[Part]:
        parts: list[Part] = []
        for block in self._blocks:
            if block.kind in THINKING and block.watch is not None:
                text = block.start("thinking") + "".join(block.pieces)
                parts.append(self.seen(Carrier.BLOCK, block.watch, text, block.start("id")))
            elif block.kind == "tool_use":
                call = Call(name=block.start("name"), arguments="", id=block.start("id"))
                parts.append(call)
            else:
                parts.append(Text(text=""))
        return parts

    # -- the end ---------------------------------------------------------------------------------

    def _settled(self) -> list[Happening]:
        """Canonical bodies of everything that is complete, in order of arrival."""
        finished = (self.done or self._stopped) and self.outcome is not Outcome.FAILED
        told: list[Happening] = []
        for block in self._blocks:
            if block.kind in THINKING:
                aborted = not finished and not block.closed
                raw = block.filled()
                told.append(self.reasoning(Carrier.BLOCK, raw, block.watch, aborted=aborted))
            elif finished:
                told += block.said()
        return told

    # -- a whole body ----------------------------------------------------------------------------

    def _whole(self, body: bytes) -> None:
        """A body that was not streamed: every block is announced complete, in its exact JSON."""
        try:
            document = splice.loads(body)
        except Unreadable:
            return
        if not isinstance(document, dict):
            return
        self._about(document)
        content = document.get("content")
        if not isinstance(content, list):
            self._fail(document.get("error"))
            return
        for index, raw in enumerate(_raws(body, content)):
            self._start(index, raw, [])
            self._stop(index, [])
        self._finish(document.get("stop_reason"))
        self.done = True


def _raws(body: bytes, content: list[Any]) -> list[bytes]:
    """The provider's own spelling of each block."""
    try:
        spans = splice.elements(body, splice.members(body)["content"])
    except (Unreadable, KeyError):
        return [splice.dumps(block) for block in content]
    return [body[span.value : span.end] for span in spans]


def _lenient(data: bytes) -> _Event | None:
    """An event that the strict decoder refuses: half an emoji, or types nobody expects."""
    try:
        document = json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    known = {key: document[key] for key in _Event.__struct_fields__ if key in document}
    delta = known.get("delta")
    if isinstance(delta, dict):
        known["delta"] = _Delta(
            **{key: delta[key] for key in _Delta.__struct_fields__ if key in delta}
        )
    else:
        known["delta"] = None
    if "content_block" in known:
        known["content_block"] = _member(data, "content_block")
    return _Event(**known)


def _member(data: bytes, key: str) -> Raw:
    try:
        span = splice.members(data)[key]
    except (Unreadable, KeyError):
        return Raw()
    return Raw(data[span.value : span.end])
