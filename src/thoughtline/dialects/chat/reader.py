"""The reader of a streamed Chat Completions response.

Deltas are emitted at once. What they add up to is emitted at the end, in the order of a message:
the thoughts that are members, the content with its inline thoughts, the calls with their
`extra_content`. Nothing in here raises, whatever a provider sends.
"""

import json
from typing import Any

from thoughtline.clock import Clock
from thoughtline.dialects.chat import inline
from thoughtline.dialects.chat.chunks import (
    REFUSED,
    ChatChunk,
    ChatDelta,
    PendingCall,
    PendingPart,
    decode,
    lenient,
    only_text,
    readable,
)
from thoughtline.dialects.chat.citations import annotated, listed
from thoughtline.dialects.chat.message import element_text, is_thinking_chunk, said_function
from thoughtline.dialects.chat.response import ChatBaseReader
from thoughtline.dialects.limits import check_answer_parts
from thoughtline.dialects.reader import Stopwatch
from thoughtline.dialects.sse import SseParser
from thoughtline.dialects.surrogates import join_surrogates, replace_surrogates
from thoughtline.dialects.thoughts import make_thought
from thoughtline.dialects.values import says_anything, sequence
from thoughtline.errors import Unreadable
from thoughtline.log.canonical import plain_arguments
from thoughtline.log.events import (
    AssistantMessage,
    Delta,
    Outcome,
    Reasoning,
    ReasoningDelta,
    ReasoningStart,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from thoughtline.log.parts import Call, Carrier, Origin, Part, Text, Timing


class ChatReader(ChatBaseReader):
    """Reads one streamed response."""

    def __init__(self, *, clock: Clock, origin: Origin, sent: int) -> None:
        super().__init__(clock=clock, origin=origin, sent=sent)
        self._sse = SseParser()
        self._members: dict[Carrier, PendingPart] = {}  # in order of arrival, as all of these
        self._content: list[PendingPart] = []
        self._text: PendingPart | None = None  # the last of the content, where that is a text
        self._inline = inline.InlineSplitter()
        self._calls: list[PendingCall] = []
        self._open: dict[int, PendingCall] = {}  # by index: the call that is growing
        self._numbers: set[int] = set()  # of all calls
        self._last_number = -1
        self._thinking: set[Stopwatch] = set()  # of thoughts that are growing
        self._shown_carrier: Carrier | None = None  # shown live, where a text comes twice
        self._announced = False  # a thought has begun
        self._refusal: list[str] = []
        self._links: tuple[Any, Any] = (None, None)  # of the whole answer

    def feed(self, data: bytes) -> list[StreamEvent]:
        emitted: list[StreamEvent] = []
        if not self._ended:
            self.tick()
            self._read(self._sse.feed_data(data), emitted)
        return emitted

    def close(self, *, reason: str = "") -> list[StreamEvent]:
        if self._ended:
            return []
        self.tick()
        emitted: list[StreamEvent] = []
        self._read([event.data for event in self._sse.finish()], emitted)
        self._flush(emitted)
        return [*emitted, *self._canonical(), *self.turn_end(reason)]

    def only_text(self, data: bytes) -> str | None:
        return only_text(data)

    # -- one chunk -------------------------------------------------------------------------------

    def _read(self, events: list[bytes], emitted: list[StreamEvent]) -> None:
        for data in events:
            try:
                chunk = decode(data)
            except REFUSED:
                self._read_leniently(data, emitted)
            else:
                self._take(chunk, emitted)

    def _read_leniently(self, data: bytes, emitted: list[StreamEvent]) -> None:
        """Take in the end of the stream, or a chunk that the strict decoder refuses."""
        if data.strip() == b"[DONE]":
            self.finish(None)
            self._close_thoughts(emitted)
        elif (chunk := lenient(data)) is not None:
            self.note_damage(data)
            deltas: list[StreamEvent] = []
            self._take(chunk, deltas)
            emitted += [
                self.joined_surrogates(delta) for delta in deltas if isinstance(delta, Delta)
            ]

    def _take(self, chunk: ChatChunk, emitted: list[StreamEvent]) -> None:
        if chunk.usage is not None or chunk.error is not None or not (self.model and self.response):
            self.about(chunk)
        if chunk.base_resp is not None and self.outcome is None:
            self.fail_if_refused(chunk.base_resp)
        if chunk.x_groq is not None:
            self.about_groq(chunk.x_groq)
        if chunk.citations is not None:
            self._links = chunk.citations, chunk.search_results
        for choice in chunk.choices or ():
            if choice.index:
                continue  # one of several answers: only the first is the turn's
            if choice.delta is not None:
                self._take_delta(choice.delta, emitted)
            if choice.usage is not None:
                self.count(choice.usage)
            if choice.finish_reason:
                self.finish(choice.finish_reason)
                self._close_thoughts(emitted)

    def _take_delta(self, delta: ChatDelta, emitted: list[StreamEvent]) -> None:
        if delta.reasoning_content is not None:
            self._take_thought(Carrier.REASONING_CONTENT, delta.reasoning_content, emitted)
        if delta.reasoning is not None:
            self._take_thought(Carrier.REASONING, delta.reasoning, emitted)
        if delta.reasoning_details is not None:
            self._take_thought(Carrier.REASONING_DETAILS, delta.reasoning_details, emitted)
        if delta.reasoning_text is not None:
            self._take_thought(Carrier.REASONING_TEXT, delta.reasoning_text, emitted)
        if delta.reasoning_opaque is not None:
            self._take_thought(Carrier.REASONING_OPAQUE, delta.reasoning_opaque, emitted)
        if delta.content is not None:
            self._take_content(delta.content, emitted)
        if delta.tool_calls:
            self._take_calls(delta.tool_calls, emitted)
        if delta.function_call:
            self._take_calls([{"index": 0, "function": delta.function_call}], emitted)
        if delta.refusal:
            self._take_refusal(delta.refusal, emitted)
        if delta.annotations:
            self.count_elements(sequence(delta.annotations))
            emitted += annotated(delta.annotations)

    # -- thoughts, text, calls -------------------------------------------------------------------

    def _take_thought(self, carrier: Carrier, value: Any, emitted: list[StreamEvent]) -> None:
        growing = self._members.get(carrier)
        if growing is None:
            growing = self._members[carrier] = PendingPart(carrier, self.open_watch())
            self._thinking.add(growing.watch)
        elif not value:
            return  # an empty value says that the key exists; once is enough
        growing.pieces.append(value)
        if value:
            self._touch(growing.watch)
            if carrier is self._shown_carrier and type(value) is str:
                emitted.append(ReasoningDelta(value))
            else:
                self._announce(growing.watch, emitted)
                self._emit_thought(carrier, value, emitted)

    def _announce(self, watch: Stopwatch, emitted: list[StreamEvent]) -> None:
        """Say that the answer's thought begins, once."""
        if not self._announced:
            self._announced = True
            emitted.append(ReasoningStart("", watch.at))

    def _touch(self, watch: Stopwatch) -> None:
        watch.touch(self.now)
        self._thinking.add(watch)

    def _emit_thought(self, carrier: Carrier, value: Any, emitted: list[StreamEvent]) -> None:
        """Emit the live text of the first thought that has one; the others repeat it."""
        if carrier is self._shown_carrier or (
            self._shown_carrier is None and carrier is not Carrier.REASONING_OPAQUE
        ):
            text = value if type(value) is str else readable(value)
            if text:
                self._shown_carrier = carrier
                emitted.append(ReasoningDelta(text))

    def _close_thoughts(self, emitted: list[StreamEvent]) -> None:
        """Close the thoughts that were growing: other output began. More may still come."""
        if not self._thinking:
            return
        combined = Stopwatch(
            min(w.opened for w in self._thinking), min(w.at for w in self._thinking)
        )
        for watch in self._thinking:
            watch.closed = self.now
            for reading in (watch.first, watch.last):
                if reading is not None:
                    combined.touch(reading)
        self._thinking.clear()
        emitted.append(self.reasoning_end(combined))

    def _take_content(self, content: Any, emitted: list[StreamEvent]) -> None:
        if type(content) is str:
            if content:
                self._take_text(content, emitted)
        elif isinstance(content, list):
            self.count_elements(content)
            for element in content:
                if is_thinking_chunk(element):
                    self._take_chunk(element, emitted)
                elif text := element_text(element):
                    self._take_text(text, emitted)

    def _take_text(self, content: str, emitted: list[StreamEvent]) -> None:
        text = self._text
        if text is None:
            text = self._text = PendingPart(Carrier.THINK, self.open_watch())
            self._content.append(text)
        text.pieces.append(content)
        thinking = ""
        if not self._inline.decided:
            thinking, content = self._inline.feed(content)
        if thinking:
            self._touch(text.watch)
            self._announce(text.watch, emitted)
            self._emit_thought(Carrier.THINK, thinking, emitted)
        if content:
            if self._thinking:
                self._close_thoughts(emitted)
            emitted.append(TextDelta(content))

    def _take_refusal(self, refusal: Any, emitted: list[StreamEvent]) -> None:
        if type(refusal) is str:
            self._close_thoughts(emitted)
            self._refusal.append(refusal)
            emitted.append(RefusalDelta(refusal))

    def _take_chunk(self, element: dict[str, Any], emitted: list[StreamEvent]) -> None:
        """Take in a fragment of a thinking chunk (Mistral): chunks stand between texts."""
        if not self._content or self._text is not None:
            check_answer_parts(len(self._content))
            self._content.append(PendingPart(Carrier.CHUNK, self.open_watch()))
            self._text = None
        growing = self._content[-1]
        growing.pieces.append(element)
        self._touch(growing.watch)
        self._announce(growing.watch, emitted)
        self._emit_thought(Carrier.CHUNK, element, emitted)

    def _take_calls(self, calls: Any, emitted: list[StreamEvent]) -> None:
        if not isinstance(calls, list):
            return
        self.count_elements(calls)
        for position, call in enumerate(calls):
            if isinstance(call, dict):
                index = call.get("index")
                self._take_call(call, index if isinstance(index, int) else position, emitted)

    def _take_call(self, call: dict[str, Any], index: int, emitted: list[StreamEvent]) -> None:
        function = said_function(call)
        id, name = call.get("id"), function.get("name")
        growing = self._open.get(index)
        if growing is None and not id and not says_anything(function):
            return  # every member has its zero value: there is no call
        more = function.get("arguments")
        if type(more) is not str:
            more = _arguments(more if more is not None else function.get("input"))
        if self._thinking:
            self._close_thoughts(emitted)
        if growing is None or id or name:
            growing = self._pending_call(growing, index, _string(id), _string(name))
        if (extra := call.get("extra_content")) is not None:
            growing.extra = extra
            growing.watch = self.open_watch()
        told = ""
        if more is not None:
            if growing.pieces and more[:1] == "{":
                more = _without_repeated(more, "".join(growing.pieces))
            told = more if growing.pieces else plain_arguments(more)
            growing.pieces.append(more)
        if told or id or name:
            emitted.append(ToolCallDelta(growing.index, told, growing.name, growing.id))

    def _pending_call(
        self, growing: PendingCall | None, index: int, id: str, name: str
    ) -> PendingCall:
        if growing is None or growing.follows(id, name):
            number = index  # some servers number every call 0
            if number in self._numbers:
                number = self._last_number + 1
            self._numbers.add(number)
            self._last_number = max(self._last_number, number)
            growing = self._open[index] = PendingCall(number)
            self._calls.append(growing)
            check_answer_parts(len(self._calls))
        growing.id = growing.id or id
        growing.name = growing.name or name
        return growing

    # -- in between ------------------------------------------------------------------------------

    @property
    def has_output(self) -> bool:
        return bool(self._calls or self._refusal) or any(map(_has_text, self._content))

    def snapshot(self) -> list[Part]:
        parts: list[Part] = []
        for growing in (*self._members.values(), *self._content):
            if growing.carrier is not Carrier.THINK or growing.watch.first is not None:
                text = "" if growing.carrier is Carrier.REASONING_OPAQUE else growing.text()
                parts.append(self.partial_thought(growing.carrier, growing.watch, text))
            if _has_text(growing):
                parts.append(Text(text=""))
        parts += [Call(name=call.name, arguments="", id=call.id) for call in self._calls]
        return parts

    # -- the end ---------------------------------------------------------------------------------

    def _flush(self, emitted: list[StreamEvent]) -> None:
        """Emit what was held back because it looked like the beginning of a tag."""
        thinking, text = self._inline.finish()
        if thinking:
            if self._text is not None:
                self._announce(self._text.watch, emitted)
            self._emit_thought(Carrier.THINK, replace_surrogates(thinking), emitted)
        if text:
            emitted.append(TextDelta(replace_surrogates(text)))
        if self._links[0]:
            emitted += listed(*self._links)

    def _canonical(self) -> list[StreamEvent]:
        """Return the canonical events of everything that is complete."""
        finished = self.done and self.outcome is not Outcome.FAILED
        emitted: list[StreamEvent] = []
        for growing in (*self._members.values(), *self._content):
            if growing.carrier is not Carrier.THINK:
                emitted += self._reasoning(growing, growing.value(), finished)
                continue
            for nth, (thinking, text) in enumerate(inline.pieces(join_surrogates(growing.value()))):
                if thinking:
                    emitted += self._reasoning(growing, thinking, finished, timed=not nth)
                if text and finished:
                    emitted.append(AssistantMessage(parts=(Text(text=replace_surrogates(text)),)))
        if self._refusal and finished:
            refusal = replace_surrogates("".join(self._refusal))
            emitted.append(AssistantMessage(parts=(Text(text=refusal, refused=True),)))
        for call in sorted(self._calls, key=lambda call: call.index) if finished else ():
            if call.watch is not None:
                extra = PendingPart(Carrier.EXTRA_CONTENT, call.watch)
                emitted += self._reasoning(extra, call.extra, finished)
            made = Call(
                name=call.name, arguments=replace_surrogates("".join(call.pieces)), id=call.id
            )
            emitted.append(ToolCall(call=made))
        return emitted

    def _reasoning(
        self, growing: PendingPart, value: Any, finished: bool, *, timed: bool = True
    ) -> list[StreamEvent]:
        """Return one thought; not timed where it came inside the text: live, it was text."""
        watch = growing.watch
        if watch.closed is None and finished:
            watch.closed = watch.opened if watch.last is None else watch.last
        timing = self.timing(watch, aborted=watch.closed is None)
        try:
            shown, exact = replace_surrogates(value), join_surrogates(value)
            raw = json.dumps(exact, separators=(",", ":")) if exact != shown else None
            thought = make_thought(
                growing.carrier,
                shown,
                raw,
                text=inline.inner(shown) if growing.carrier is Carrier.THINK else None,
                origin=self.served_origin(),
                timing=timing if timed else Timing(sent=self.sent),
            )
        except (Unreadable, RecursionError):
            return []  # nested deeper than anything that could be sent back
        return [Reasoning(thought=thought)]


def _has_text(growing: PendingPart) -> bool:
    """Whether this is a text with more than a thought in it."""
    watch = growing.watch
    return growing.carrier is Carrier.THINK and (watch.first is None or watch.closed is not None)


def _without_repeated(more: str, before: str) -> str:
    """Arguments without what came before: some servers repeat all of them in every chunk.

    Where an object could begin, it may be one that begins like all the arguments.
    """
    repeats = more.startswith(before) and before.rstrip()[-1:] not in (":", "[", ",", "")
    return more[len(before) :] if repeats else more


def _string(value: Any) -> str:
    return replace_surrogates(value) if isinstance(value, str) else ""


def _arguments(value: Any) -> str | None:
    if isinstance(value, dict):  # against the API, but some servers do it
        try:
            return json.dumps(value)
        except RecursionError:
            return None
    return value if isinstance(value, str) else None
