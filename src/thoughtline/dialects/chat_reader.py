"""A streamed Chat Completions response, as events.

Deltas are told at once. What they add up to is told at the end, in the order in which a message
has it: the thoughts beside the content, the content with the thoughts inside it, the calls with
what rides on them. Nothing in here raises, whatever a provider sends.
"""

import json
from typing import Any

from thoughtline.clock import Clock
from thoughtline.dialects import inline
from thoughtline.dialects.chat_chunks import REFUSED, ChatChunk, ChatDelta, decode, lenient
from thoughtline.dialects.chat_message import is_chunk, text_of
from thoughtline.dialects.chat_pieces import Growing, GrowingCall, readable
from thoughtline.dialects.chat_recorder import ChatRecorder
from thoughtline.dialects.escapes import showable
from thoughtline.dialects.halves import join, mend
from thoughtline.dialects.recorder import Stopwatch
from thoughtline.dialects.sse import Splitter
from thoughtline.dialects.thoughts import thought
from thoughtline.errors import Unreadable
from thoughtline.events import (
    AssistantMessage,
    Delta,
    Happening,
    Outcome,
    Reasoning,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from thoughtline.parts import Call, Carrier, Origin, Part, Text, Timing


class ChatReader(ChatRecorder):
    """Reads one streamed response."""

    def __init__(self, *, clock: Clock, origin: Origin, sent: int) -> None:
        super().__init__(clock=clock, origin=origin, sent=sent)
        self._splitter = Splitter()
        self._members: dict[Carrier, Growing] = {}  # in order of arrival, as all of these
        self._content: list[Growing] = []
        self._text: Growing | None = None  # the last of the content, while that is a text
        self._inline = inline.Inline()
        self._calls: list[GrowingCall] = []
        self._open: dict[int, GrowingCall] = {}  # by index: the call that is growing
        self._thinking: set[Stopwatch] = set()  # of the thoughts that are growing
        self._voice: Carrier | None = None  # the one that is shown, where a text comes twice

    def feed(self, data: bytes) -> list[Happening]:
        told: list[Happening] = []
        if not self._ended:
            self.now = self.clock.mono()
            self._read(self._splitter.feed_data(data), told)
        return told

    def close(self, *, reason: str = "") -> list[Happening]:
        if self._ended:
            return []
        self.tick()
        told: list[Happening] = []
        self._read([event.data for event in self._splitter.finish()], told)
        self._flush(told)
        return [*told, *self._settled(), *self.ending(reason)]

    # -- one chunk -------------------------------------------------------------------------------

    def _read(self, events: list[bytes], told: list[Happening]) -> None:
        for data in events:
            try:
                chunk = decode(data)
            except REFUSED:
                self._odd(data, told)
            else:
                self._take(chunk, told)

    def _odd(self, data: bytes, told: list[Happening]) -> None:
        """The end, or a chunk that the strict decoder refuses."""
        if data.strip() == b"[DONE]":
            self.finish(None)
            self._rest(told)
        elif (chunk := lenient(data)) is not None:
            shown: list[Happening] = []
            self._take(chunk, shown)
            told += [showable(delta) for delta in shown if isinstance(delta, Delta)]

    def _take(self, chunk: ChatChunk, told: list[Happening]) -> None:
        if chunk.usage is not None or chunk.error is not None or not (self.model and self.response):
            self.about(id=chunk.id, model=chunk.model, usage=chunk.usage, error=chunk.error)
        for choice in chunk.choices or ():
            if choice.index:
                continue  # one of several answers: only the first is the turn's
            if choice.delta is not None:
                self._delta(choice.delta, told)
            if choice.usage is not None:
                self.about(id=None, model=None, usage=choice.usage, error=None)
            if choice.finish_reason is not None:
                self.finish(choice.finish_reason)
                self._rest(told)

    def _delta(self, delta: ChatDelta, told: list[Happening]) -> None:
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
        if delta.content is not None:
            self._say(delta.content, told)
        if delta.tool_calls is not None:
            self._call(delta.tool_calls, told)
        if delta.function_call is not None:
            self._call([{"index": 0, "function": delta.function_call}], told)

    # -- thoughts, text, calls -------------------------------------------------------------------

    def _think(self, carrier: Carrier, value: Any, told: list[Happening]) -> None:
        growing = self._members.get(carrier)
        if growing is None:
            growing = self._members[carrier] = Growing(carrier, self.watch())
            self._thinking.add(growing.watch)
        elif not value:
            return  # an empty value says that the key is there; once is enough
        growing.pieces.append(value)
        if value:
            self._grow(growing.watch)
            if carrier is self._voice and type(value) is str:
                told.append(ReasoningDelta(value))
            else:
                self._show(carrier, value, told)

    def _grow(self, watch: Stopwatch) -> None:
        watch.touch(self.now)
        self._thinking.add(watch)

    def _show(self, carrier: Carrier, value: Any, told: list[Happening]) -> None:
        """Tell the live text of the first thought that has one; the others repeat it."""
        if carrier is self._voice or (
            self._voice is None and carrier is not Carrier.REASONING_OPAQUE
        ):
            text = value if type(value) is str else readable(value)
            if text:
                self._voice = carrier
                told.append(ReasoningDelta(text))

    def _rest(self, told: list[Happening]) -> None:
        """Something else began: the thoughts that were growing are complete, as far as we know."""
        if not self._thinking:
            return
        whole = Stopwatch(min(w.opened for w in self._thinking), min(w.at for w in self._thinking))
        for watch in self._thinking:
            watch.closed = self.now
            for reading in (watch.first, watch.last):
                if reading is not None:
                    whole.touch(reading)
        self._thinking.clear()
        told.append(self.closing(whole))

    def _say(self, content: Any, told: list[Happening]) -> None:
        if type(content) is str:
            if content:
                self._speak(content, told)
        elif isinstance(content, list):
            for element in content:
                if is_chunk(element):
                    self._chunk(element, told)
                elif text := text_of(element):
                    self._speak(text, told)

    def _speak(self, content: str, told: list[Happening]) -> None:
        text = self._text
        if text is None:
            text = self._text = Growing(Carrier.THINK, self.watch())
            self._content.append(text)
        text.pieces.append(content)
        thinking = ""
        if not self._inline.decided:
            thinking, content = self._inline.feed(content)
        if thinking:
            self._grow(text.watch)
            self._show(Carrier.THINK, thinking, told)
        if content:
            if self._thinking:
                self._rest(told)
            told.append(TextDelta(content))

    def _chunk(self, element: dict[str, Any], told: list[Happening]) -> None:
        """Mistral's thinking chunks stand between texts; their fragments follow one another."""
        if not self._content or self._text is not None:
            self._content.append(Growing(Carrier.CHUNK, self.watch()))
            self._text = None
        growing = self._content[-1]
        growing.pieces.append(element)
        self._grow(growing.watch)
        self._show(Carrier.CHUNK, element, told)

    def _call(self, calls: Any, told: list[Happening]) -> None:
        if self._thinking:
            self._rest(told)
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                index = call.get("index")
                self._called(call, index if isinstance(index, int) else position, told)

    def _called(self, call: dict[str, Any], index: int, told: list[Happening]) -> None:
        function = call.get("function") or call.get("custom")
        if not isinstance(function, dict):
            function = {}
        id, name = call.get("id"), function.get("name")
        growing = self._open.get(index)
        if growing is None or id or name:
            growing = self._named(growing, index, _word(id), _word(name))
        if (extra := call.get("extra_content")) is not None:
            growing.extra = extra
            growing.watch = self.watch()
        more = function.get("arguments")
        if type(more) is not str:
            more = _arguments(more if more is not None else function.get("input"))
        if more is not None:
            growing.pieces.append(more)
            told.append(ToolCallDelta(index, more, growing.name, growing.id))

    def _named(self, growing: GrowingCall | None, index: int, id: str, name: str) -> GrowingCall:
        if growing is None or growing.follows(id, name):
            growing = self._open[index] = GrowingCall(index)
            self._calls.append(growing)
        growing.id = growing.id or id
        growing.name = growing.name or name
        return growing

    # -- in between ------------------------------------------------------------------------------

    @property
    def spoke(self) -> bool:
        return bool(self._calls) or any(map(_aloud, self._content))

    def glimpse(self) -> list[Part]:
        parts: list[Part] = []
        for growing in (*self._members.values(), *self._content):
            if growing.carrier is not Carrier.THINK or growing.watch.first is not None:
                text = "" if growing.carrier is Carrier.REASONING_OPAQUE else growing.text()
                parts.append(self.seen(growing.carrier, growing.watch, text))
            if _aloud(growing):
                parts.append(Text(text=""))
        parts += [Call(name=call.name, arguments="", id=call.id) for call in self._calls]
        return parts

    # -- the end ---------------------------------------------------------------------------------

    def _flush(self, told: list[Happening]) -> None:
        """Show what was held back because it looked like the beginning of a tag."""
        thinking, text = self._inline.finish()
        if thinking:
            self._show(Carrier.THINK, mend(thinking), told)
        if text:
            told.append(TextDelta(mend(text)))

    def _settled(self) -> list[Happening]:
        """Canonical bodies of everything that is complete."""
        finished = self.done and self.outcome is not Outcome.FAILED
        told: list[Happening] = []
        for growing in (*self._members.values(), *self._content):
            if growing.carrier is not Carrier.THINK:
                told += self._reasoning(growing, growing.value(), finished)
                continue
            for nth, (thinking, text) in enumerate(inline.pieces(join(growing.value()))):
                if thinking:
                    told += self._reasoning(growing, thinking, finished, timed=not nth)
                if text and finished:
                    told.append(AssistantMessage(parts=(Text(text=mend(text)),)))
        for call in sorted(self._calls, key=lambda call: call.index) if finished else ():
            if call.watch is not None:
                riding = Growing(Carrier.EXTRA_CONTENT, call.watch)
                told += self._reasoning(riding, call.extra, finished)
            made = Call(name=call.name, arguments=mend("".join(call.pieces)), id=call.id)
            told.append(ToolCall(call=made))
        return told

    def _reasoning(
        self, growing: Growing, value: Any, finished: bool, *, timed: bool = True
    ) -> list[Happening]:
        """One thought. Nobody watched one between words: it was told as words, live."""
        watch = growing.watch
        if watch.closed is None and finished:
            watch.closed = watch.opened if watch.last is None else watch.last
        timing = self.timing(watch, aborted=watch.closed is None)
        try:
            shown, whole = mend(value), join(value)
            raw = json.dumps(whole, separators=(",", ":")) if whole != shown else None
            made = thought(
                growing.carrier,
                shown,
                raw,
                text=inline.inner(shown) if growing.carrier is Carrier.THINK else None,
                origin=self.made(),
                timing=timing if timed else Timing(sent=self.sent),
            )
        except (Unreadable, RecursionError):
            return []  # nested deeper than anything that could be sent back
        return [Reasoning(thought=made)]


def _aloud(growing: Growing) -> bool:
    """Whether this is a text that has more than a thought in it."""
    watch = growing.watch
    return growing.carrier is Carrier.THINK and (watch.first is None or watch.closed is not None)


def _word(value: Any) -> str:
    return mend(value) if isinstance(value, str) else ""


def _arguments(value: Any) -> str | None:
    if isinstance(value, dict):  # not what the API says, and yet
        try:
            return json.dumps(value)
        except RecursionError:
            return None
    return value if isinstance(value, str) else None
