"""The reader of Messages responses, streamed or not.

A stream announces each block, lets it grow by deltas and closes it; a signature is the last delta
of its block. A thought is the announced block with its growing members filled in: fields that are
not known keep their bytes. Canonical events come at the end, in order of arrival, and of a stream
that failed or was cut only the thoughts.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import asdict

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.dialects.content import raw_blob
from thoughtline.dialects.limits import TooComplex, check_answer, check_answer_parts
from thoughtline.dialects.messages.patch import THINKING
from thoughtline.dialects.reader import BaseReader, Stopwatch, load_leniently, token_count
from thoughtline.dialects.splice import Span
from thoughtline.dialects.sse import SseParser
from thoughtline.dialects.surrogates import json_string, replace_surrogates
from thoughtline.errors import Unreadable
from thoughtline.log.events import (
    AssistantMessage,
    Delta,
    Keepalive,
    Outcome,
    ReasoningDelta,
    ReasoningStart,
    StopReason,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from thoughtline.log.parts import Call, Carrier, Origin, Part, Text
from thoughtline.log.usage import Usage, add_counts

_GROWING = {"thinking": "thinking", "text": "text", "compaction": "content"}
"""Which member of a block grows; of all tools it is the input, and that is JSON text."""


class PendingBlock:
    """A block that is arriving.

    It is announced with its members, of which one grows by deltas. In the end it is the announced
    block with that member filled in; fields that are not known keep their bytes.
    """

    __slots__ = ("closed", "kind", "nth", "pieces", "raw", "signature", "value", "watch")

    def __init__(self, raw: bytes, value: dict[str, Any]) -> None:
        self.raw = raw  # as announced
        self.value = value
        self.kind = value.get("type")
        self.pieces: list[str] = []  # of the member that grows
        self.signature: list[str] = []
        self.watch: Stopwatch | None = None
        self.nth = 0  # among the calls
        self.closed = False

    def start(self, key: str) -> str:
        """Return a member as it was announced."""
        value = self.value.get(key)
        return value if isinstance(value, str) else ""

    def text(self) -> str:
        """Return the text of a text block."""
        return str(replace_surrogates(self.start("text") + "".join(self.pieces)))

    def input(self) -> str:
        """Return a tool's arguments as JSON text."""
        if any(self.pieces):
            return str(replace_surrogates("".join(self.pieces)))
        try:
            span = splice.members(self.raw).get("input")
        except Unreadable:
            span = None
        return self.raw[span.value : span.end].decode() if span else "{}"

    def filled(self) -> str:
        """Return the announced block with everything that its deltas brought."""
        grown: dict[str, bytes] = {}
        if any(self.pieces):
            joined = "".join(self.pieces)
            key = _GROWING.get(str(self.kind))
            grown[key or "input"] = (
                json_string(self.start(key) + joined)
                if key
                else replace_surrogates(joined).encode()
            )
        if self.signature:
            grown["signature"] = json_string(self.start("signature") + "".join(self.signature))
        if not grown:
            return self.raw.decode()
        try:
            place, has = Span(0, 0, len(self.raw)), splice.members(self.raw)
            return splice.apply(self.raw, splice.revise(place, has, grown)).decode()
        except Unreadable:  # a key twice: the last one counts, as it does for every reader
            return splice.dumps(self.value | {k: Raw(raw) for k, raw in grown.items()}).decode()

    def events(self) -> list[AssistantMessage | ToolCall]:
        """Return the canonical events of a block that is no thought."""
        if self.kind == "text":
            text = self.text()
            return [AssistantMessage(parts=(Text(text=text),))] if text else []
        if self.kind == "tool_use":
            call = Call(name=self.start("name"), arguments=self.input(), id=self.start("id"))
            return [ToolCall(call=call)]
        blob = raw_blob(str(self.kind or "unknown"), self.filled())
        return [AssistantMessage(parts=(blob,))]


_STOPS = {
    "end_turn": StopReason.END,
    "tool_use": StopReason.CALLS,
    "max_tokens": StopReason.LENGTH,
    "stop_sequence": StopReason.STOP_TEXT,
    "refusal": StopReason.FILTER,
    "model_context_window_exceeded": StopReason.WINDOW,
}
_CAPS = ("max_tokens", "model_context_window_exceeded")


class _Delta(Struct, gc=False):
    text: Any = None
    thinking: Any = None
    signature: Any = None
    partial_json: Any = None
    content: Any = None
    stop_reason: Any = None
    stop_sequence: Any = None


_TEXTS = ("text", "thinking", "partial_json")
"""Members of a delta that add up."""


class _Event(Struct, gc=False):
    type: Any = None
    index: Any = None
    delta: _Delta | None = None
    content_block: Raw = Raw()
    message: Any = None
    usage: Any = None
    error: Any = None


_decode = msgspec.json.Decoder(_Event).decode


class MessagesReader(BaseReader):
    """Reads one Messages response."""

    def __init__(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> None:
        super().__init__(clock=clock, origin=origin, sent=sent)
        self._sse = SseParser() if stream else None
        self._body: list[bytes] = []
        self._blocks: list[PendingBlock] = []  # in order of arrival
        self._open: dict[int, PendingBlock] = {}  # by index
        self._calls = 0
        self._stopped = False  # a stop reason was given: the output is complete
        self._counts: dict[str, Any] = {}

    def feed(self, data: bytes) -> list[StreamEvent]:
        if self._sse is None:
            self._body.append(data)
            return []
        self.tick()
        emitted: list[Delta] = []
        for event in self._sse.feed(data):
            self._event(event.data, emitted)
        return list[StreamEvent](emitted)

    def close(self, *, reason: str = "") -> list[StreamEvent]:
        self.tick()
        emitted: list[Delta] = []
        if self._sse is None:
            body, self._body = b"".join(self._body), []
            check_answer(body)
            self._read_body(body)
        else:
            for event in self._sse.finish():
                self._event(event.data, emitted)
        if self._ended:
            return [*emitted]
        return [*emitted, *self._canonical(), *self.turn_end(reason)]

    def only_text(self, data: bytes) -> str | None:
        try:
            event = _decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        if event.type != "content_block_delta" or type(event.index) is not int or not event.delta:
            return None
        said = {name: value for name, value in asdict(event.delta).items() if value is not None}
        if len(said) != 1:
            return None
        ((name, text),) = said.items()
        return text if name in _TEXTS and type(text) is str else None

    # -- one event -------------------------------------------------------------------------------

    def _event(self, data: bytes, emitted: list[Delta]) -> None:
        try:
            event = _decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self.note_damage(data)
            if (odd := _lenient(data)) is not None:
                deltas: list[Delta] = []
                self._take(odd, deltas)
                emitted += map(self.joined_surrogates, deltas)
        else:
            self._take(event, emitted)

    def _take(self, event: _Event, emitted: list[Delta]) -> None:
        kind = event.type
        if kind == "content_block_delta":
            if event.delta is not None and type(event.index) is int:
                self._delta(event.index, event.delta, emitted)
        elif kind == "content_block_start":
            self._start(event.index, bytes(event.content_block), emitted)
        elif kind == "content_block_stop":
            self._stop(event.index, emitted)
        elif kind == "message_start":
            if isinstance(event.message, dict):
                self._about(event.message)
        elif kind == "message_delta":
            self._count(event.usage)
            if event.delta is not None:
                self._finish(event.delta.stop_reason, event.delta.stop_sequence)
        elif kind == "message_stop":
            self.done = True
        elif kind == "ping":
            emitted.append(Keepalive())
        elif kind == "error" or event.error is not None:
            self.fail(event.error)

    def _delta(self, index: int, delta: _Delta, emitted: list[Delta]) -> None:
        block = self._open.get(index) or self._unannounced(index, delta, emitted)
        kind = block.kind
        if kind == "text":
            if type(delta.text) is str:
                block.pieces.append(delta.text)
                emitted.append(TextDelta(delta.text))
        elif kind == "thinking":
            if type(delta.thinking) is str:
                block.pieces.append(delta.thinking)
                emitted.append(ReasoningDelta(delta.thinking))
            elif type(delta.signature) is str:
                block.signature.append(delta.signature)
            else:
                return
            block.watch.touch(self.now)  # type: ignore[union-attr]
        elif type(delta.partial_json) is str:
            block.pieces.append(delta.partial_json)
            if kind == "tool_use" and delta.partial_json:
                emitted.append(ToolCallDelta(block.nth, delta.partial_json))
        elif type(delta.content) is str and kind == "compaction":
            block.pieces.append(delta.content)

    def _unannounced(self, index: int, delta: _Delta, emitted: list[Delta]) -> PendingBlock:
        """Begin a block that was not announced: its first delta says what it is."""
        raw = b'{"type":"text","text":""}'
        if delta.thinking is not None or delta.signature is not None:
            raw = b'{"type":"thinking","thinking":""}'
        elif delta.partial_json is not None:
            raw = b'{"type":"tool_use","id":"","name":"","input":{}}'
        self._start(index, raw, emitted)
        return self._open[index]

    def _start(self, index: Any, raw: bytes, emitted: list[Delta]) -> None:
        try:
            value = splice.loads(raw)
        except TooComplex:
            raise
        except Unreadable:
            return
        if not isinstance(value, dict):
            return
        block = PendingBlock(raw, value)
        self._blocks.append(block)
        check_answer_parts(len(self._blocks))
        if type(index) is int:
            self._open[index] = block
        if block.kind in THINKING:
            if self._sse is not None:
                block.watch = self.open_watch()
                emitted.append(ReasoningStart("", block.watch.at))
            if text := block.start("thinking"):
                emitted.append(ReasoningDelta(text))
        elif block.kind == "text":
            if text := block.start("text"):
                emitted.append(TextDelta(text))
        elif block.kind == "tool_use":
            block.nth, self._calls = self._calls, self._calls + 1
            arguments = block.input() if value.get("input") else ""
            emitted.append(
                ToolCallDelta(block.nth, arguments, block.start("name"), block.start("id"))
            )
            value.pop("input", None)  # it is in `raw`, and takes many times its size as a value

    def _stop(self, index: Any, emitted: list[Delta]) -> None:
        block = self._open.get(index) if type(index) is int else None
        if block is not None:
            block.closed = True
            if block.watch is not None:
                emitted.append(self.reasoning_end(block.watch))

    # -- what is said about the response ---------------------------------------------------------

    def _about(self, message: dict[str, Any]) -> None:
        model, id = message.get("model"), message.get("id")
        self.model = replace_surrogates(model) if isinstance(model, str) else ""
        self.response = replace_surrogates(id) if isinstance(id, str) else ""
        self._count(message.get("usage"))

    def _count(self, counts: Any) -> None:
        """Take in a usage object: it comes at the start and at the end; the later count wins."""
        if isinstance(counts, dict):
            self._counts |= {k: v for k, v in counts.items() if token_count(v) is not None}
            if isinstance(details := counts.get("output_tokens_details"), dict):
                reasoning = token_count(details.get("thinking_tokens"))
                self._counts |= {} if reasoning is None else {"thinking_tokens": reasoning}
            count = self._counts.get
            cached, written = count("cache_read_input_tokens"), count("cache_creation_input_tokens")
            self.usage = Usage(
                input=add_counts(count("input_tokens"), cached, written),
                output=count("output_tokens"),
                reasoning=count("thinking_tokens"),
                cached=cached,
                cache_write=written,
            )

    def _finish(self, reason: Any, text: Any = None) -> None:
        self.stop_text = text if isinstance(text, str) else self.stop_text
        if not isinstance(reason, str) or self.outcome is Outcome.FAILED:
            return
        self._stopped = True
        self.stop = _STOPS.get(reason, StopReason.OTHER)
        self.outcome = Outcome.CAPPED if reason in _CAPS else Outcome.COMPLETED
        self.reason = reason if reason in (*_CAPS, "refusal") else ""

    # -- in between ------------------------------------------------------------------------------

    @property
    def has_output(self) -> bool:
        return any(block.kind not in THINKING for block in self._blocks)

    def snapshot(self) -> list[Part]:
        parts: list[Part] = []
        for block in self._blocks:
            if block.kind in THINKING and block.watch is not None:
                text = block.start("thinking") + "".join(block.pieces)
                parts.append(
                    self.partial_thought(Carrier.BLOCK, block.watch, text, block.start("id"))
                )
            elif block.kind == "tool_use":
                call = Call(name=block.start("name"), arguments="", id=block.start("id"))
                parts.append(call)
            else:
                parts.append(Text(text=""))
        return parts

    # -- the end ---------------------------------------------------------------------------------

    def _canonical(self) -> list[StreamEvent]:
        """Return the canonical events of everything that is complete, in order of arrival."""
        finished = (self.done or self._stopped) and self.outcome is not Outcome.FAILED
        emitted: list[StreamEvent] = []
        for block in self._blocks:
            if block.kind in THINKING:
                aborted = not finished and not block.closed
                raw = block.filled()
                emitted.append(self.reasoning(Carrier.BLOCK, raw, block.watch, aborted=aborted))
            elif finished:
                emitted += block.events()
            block.raw, block.value = b"", {}  # what is said in it is held once
        return emitted

    # -- a whole body ----------------------------------------------------------------------------

    def _read_body(self, body: bytes) -> None:
        """Read a body that was not streamed: every block comes complete, in its exact JSON."""
        try:
            document = splice.loads(body)
        except TooComplex:
            raise
        except Unreadable:
            return
        if not isinstance(document, dict):
            return
        self._about(document)
        content = document.get("content")
        if not isinstance(content, list):
            self.fail(document)
            return
        check_answer_parts(len(content))
        for index, raw in enumerate(_raws(body, content)):
            self._start(index, raw, [])
            self._stop(index, [])
        self._finish(document.get("stop_reason"), document.get("stop_sequence"))
        self.done = True


def _raws(body: bytes, content: list[Any]) -> list[bytes]:
    """Return the blocks in the provider's own spelling."""
    try:
        spans = splice.elements(body, splice.members(body)["content"])
    except (Unreadable, KeyError):
        return [splice.dumps(block) for block in content]
    return [body[span.value : span.end] for span in spans]


def _lenient(data: bytes) -> _Event | None:
    """Read an event that the strict decoder refuses: lone surrogates, or unexpected types."""
    document = load_leniently(data)
    if document is None:
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
