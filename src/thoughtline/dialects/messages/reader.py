"""The reader of Messages responses, streamed or not.

A stream announces each block, lets it grow by deltas and closes it; a signature is the last delta
of its block. A thought is the announced block with its growing members filled in: fields that are
not known keep their bytes. Canonical events come at the end, in order of arrival, and of a stream
that failed or was cut only the thoughts.
"""

from typing import Any

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.dialects.limits import TooComplex, check_answer, check_answer_parts
from thoughtline.dialects.messages.citations import cited
from thoughtline.dialects.messages.events import (
    REFUSED,
    MessageDelta,
    MessageEvent,
    PendingBlock,
    decode,
    lenient,
    only_text,
)
from thoughtline.dialects.messages.patch import THINKING
from thoughtline.dialects.reader import BaseReader, token_count, unread_thoughts
from thoughtline.dialects.sse import SseParser
from thoughtline.dialects.surrogates import replace_surrogates
from thoughtline.dialects.values import says_anything
from thoughtline.errors import Unreadable
from thoughtline.log.events import (
    Delta,
    Keepalive,
    Outcome,
    ReasoningDelta,
    ReasoningStart,
    StopReason,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
)
from thoughtline.log.parts import Call, Carrier, Origin, Part, Text
from thoughtline.log.usage import Usage, add_counts

_STOPS = {
    "end_turn": StopReason.END,
    "tool_use": StopReason.CALLS,
    "max_tokens": StopReason.LENGTH,
    "stop_sequence": StopReason.STOP_TEXT,
    "refusal": StopReason.FILTER,
    "model_context_window_exceeded": StopReason.WINDOW,
}
_CAPS = ("max_tokens", "model_context_window_exceeded")


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
        self._measured = 0  # blocks, of which the texts have so many characters
        self._said = 0

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
            self._read_body(body, emitted)
        else:
            for event in self._sse.finish():
                self._event(event.data, emitted)
        if self._ended:
            return [*emitted]
        return [*emitted, *self._canonical(), *self.turn_end(reason)]

    def only_text(self, data: bytes) -> str | None:
        return only_text(data)

    # -- one event -------------------------------------------------------------------------------

    def _event(self, data: bytes, emitted: list[Delta]) -> None:
        try:
            event = decode(data)
        except REFUSED:
            self.note_damage(data)
            if (odd := lenient(data)) is not None:
                deltas: list[Delta] = []
                self._take(odd, deltas)
                emitted += map(self.joined_surrogates, deltas)
        else:
            self._take(event, emitted)

    def _take(self, event: MessageEvent, emitted: list[Delta]) -> None:
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
        elif kind == "error" or says_anything(event.error):
            self.fail(event.error)

    def _delta(self, index: int, delta: MessageDelta, emitted: list[Delta]) -> None:
        block = self._open.get(index) or self._unannounced(index, delta, emitted)
        kind = block.kind
        if kind == "text":
            if type(delta.text) is str:
                block.pieces.append(delta.text)
                emitted.append(TextDelta(delta.text))
            elif delta.citation is not None:
                check_answer_parts(len(block.citations))
                block.citations.append(delta.citation)
        elif kind == "thinking":
            if type(delta.thinking) is str and (delta.thinking or not delta.signature):
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

    def _unannounced(self, index: int, delta: MessageDelta, emitted: list[Delta]) -> PendingBlock:
        """Begin a block that was not announced: its first delta says what it is."""
        raw = b'{"type":"text","text":""}'
        if delta.thinking or delta.signature:
            raw = b'{"type":"thinking","thinking":""}'
        elif delta.partial_json:
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
            if block.citations:
                self._cite(block, emitted)

    def _cite(self, block: PendingBlock, emitted: list[Delta]) -> None:
        """Emit the links of a text, which say what all of it rests on."""
        while self._blocks[self._measured] is not block:
            before = self._blocks[self._measured]
            self._said += len(before.text()) if before.kind == "text" else 0
            self._measured += 1
        end = self._said + len(block.text())
        for citation in block.citations:
            emitted += cited(citation, self._said, end)

    # -- what is said about the response ---------------------------------------------------------

    def _about(self, message: dict[str, Any]) -> None:
        model, id = message.get("model"), message.get("id")
        self.model = replace_surrogates(model) if isinstance(model, str) else ""
        self.response = replace_surrogates(id) if isinstance(id, str) else ""
        self._count(message.get("usage"))
        self.unread = unread_thoughts(message.get("input_transformations"))

    def _count(self, counts: Any) -> None:
        """Take in a usage object: it comes at the start and at the end; the later count wins.

        Not so where that is zero: some say in the end only what is new.
        """
        if isinstance(counts, dict):
            self._counts |= {
                name: count
                for name, count in counts.items()
                if token_count(count) is not None and (count or name not in self._counts)
            }
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
        if not isinstance(reason, str) or not reason or self.outcome is Outcome.FAILED:
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

    def _read_body(self, body: bytes, emitted: list[Delta]) -> None:
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
            self._stop(index, emitted)
        self._finish(document.get("stop_reason"), document.get("stop_sequence"))
        self.done = True


def _raws(body: bytes, content: list[Any]) -> list[bytes]:
    """Return the blocks in the provider's own spelling."""
    try:
        spans = splice.elements(body, splice.members(body)["content"])
    except (Unreadable, KeyError):
        return [splice.dumps(block) for block in content]
    return [body[span.value : span.end] for span in spans]
