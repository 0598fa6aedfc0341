"""The reader of Responses output: a stream, WebSocket messages or one body.

Items are taken complete from `response.output_item.done`, in their exact JSON text, and emitted
when the response ends: only then is it known whether a reasoning item that event without its
encrypted content gets it after all. `added` starts a thought's timing; deltas are for live display
and never make an item. A thought that was open when a response broke off is stored as aborted.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.dialects.limits import check_answer, check_answer_parts
from thoughtline.dialects.reader import BaseReader, Stopwatch, unread_thoughts
from thoughtline.dialects.responses import events
from thoughtline.dialects.responses.citations import annotated
from thoughtline.dialects.responses.events import LiveCall, OutputItem, ServerEvent, read_event
from thoughtline.dialects.responses.items import (
    ARGUMENTS,
    CONTROLS,
    item_type,
    output_part,
    string_member,
)
from thoughtline.dialects.sse import SseParser
from thoughtline.dialects.surrogates import replace_surrogates
from thoughtline.dialects.values import mapping, says_anything, sequence, string
from thoughtline.errors import Unreadable
from thoughtline.log import keys
from thoughtline.log.events import (
    AssistantMessage,
    Outcome,
    Reasoning,
    ReasoningDelta,
    ReasoningStart,
    RefusalDelta,
    StopReason,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from thoughtline.log.parts import Blob, Call, Carrier, Origin, Part, Text, Thought, Timing

_STOPS = {
    "max_output_tokens": StopReason.LENGTH,
    "content_filter": StopReason.FILTER,
    "invalid_prompt": StopReason.FILTER,  # of a response that failed, as the one below
    "image_content_policy_violation": StopReason.FILTER,
}
_OUTCOMES = {
    "completed": Outcome.COMPLETED,
    "incomplete": Outcome.CAPPED,
    "failed": Outcome.FAILED,
    "cancelled": Outcome.ABORTED,
}


class ResponsesReader(BaseReader):
    """Reads one response."""

    def __init__(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> None:
        super().__init__(clock=clock, origin=origin, sent=sent)
        self._sse = SseParser() if stream else None
        self._body: list[bytes] = []
        self._items: list[OutputItem] = []  # in order of arrival
        self._places: dict[str, int] = {}  # item id → its position among them
        self._open: dict[str | int, OutputItem] = {}  # thoughts, by id and by index
        self._calls: dict[str | int | None, LiveCall] = {}  # by item id and by output index
        self._call_count = 0
        self._has_output = False  # an item that is no thought was announced
        self._said = 0  # characters of the messages so far
        self._announced = self._grew = False  # since the last item that was done

    def feed(self, data: bytes) -> list[StreamEvent]:
        if self._sse is None:
            self._body.append(data)
            return []
        self.tick()
        emitted: list[StreamEvent] = []
        for event in self._sse.feed(data):
            self._take(event.data, event.name, emitted)
        return emitted

    def event(self, data: bytes) -> list[StreamEvent]:
        """Take in one event as JSON, without the framing of a stream: a WebSocket message."""
        self.tick()
        emitted: list[StreamEvent] = []
        self._take(data, "", emitted)
        return emitted

    def close(self, *, reason: str = "") -> list[StreamEvent]:
        self.tick()
        emitted: list[StreamEvent] = []
        if self._sse is None:
            body, self._body = b"".join(self._body).strip(), []
            check_answer(body)
            self._read_body(body, emitted)
        else:
            for event in self._sse.finish():
                self._take(event.data, event.name, emitted)
        return emitted + self._canonical() + self.turn_end(reason)

    # -- deltas ----------------------------------------------------------------------------------

    def _take(self, data: bytes, name: str, emitted: list[StreamEvent]) -> None:
        event = read_event(data)
        if event is None or self.done:
            return
        if not event.type:
            event.type = name  # servers that say it in the `event:` line only
        handle = self._HANDLERS.get(event.type)
        if handle is not None and (event.delta is None or event.delta.isascii()):
            handle(self, event, emitted)
        elif handle is not None:
            deltas: list[Any] = []
            handle(self, event, deltas)
            emitted += map(self.joined_surrogates, deltas)

    def _text_delta(self, event: ServerEvent, emitted: list[StreamEvent]) -> None:
        if event.delta:
            self._grew = True
            emitted.append(TextDelta(event.delta))

    def _refusal_delta(self, event: ServerEvent, emitted: list[StreamEvent]) -> None:
        if event.delta:
            self._grew = True
            emitted.append(RefusalDelta(event.delta))

    def _thought_delta(self, event: ServerEvent, emitted: list[StreamEvent]) -> None:
        id = event.item_id or ""
        item = self._open_item(id, event.output_index)
        if item is None:
            item = self._begin(_unannounced(id), event.output_index, emitted)
        if item.watch is not None:
            item.watch.touch(self.now)
        if event.delta:
            self._grew = True
            item.shown.append(event.delta)
            emitted.append(ReasoningDelta(event.delta, id))

    def _paragraph(self, event: ServerEvent, emitted: list[StreamEvent]) -> None:
        """Begin a new paragraph of the live text: another part of a summary begins."""
        item = self._open_item(event.item_id or "", event.output_index)
        if item is not None and item.shown:
            item.shown.append("\n\n")
            emitted.append(ReasoningDelta("\n\n", event.item_id or ""))

    def _arguments(self, event: ServerEvent, emitted: list[StreamEvent]) -> None:
        if event.delta:
            call = self._live_call(event.item_id, event.output_index) or LiveCall(0, "", "")
            call.pieces.append(event.delta)
            emitted.append(ToolCallDelta(call.number, event.delta, call.name, call.id))

    def _live_call(self, id: str | None, index: int | None) -> LiveCall | None:
        return self._calls.get(id or "") or self._calls.get(index)

    def _complete(self, item: OutputItem, index: int | None, emitted: list[StreamEvent]) -> None:
        """Emit what the deltas of a call did not bring: some servers say it only with the item."""
        call = self._live_call(item.id, index)
        part = _part(item) if call is not None else None
        if call is None or not isinstance(part, Call):
            return
        told = "".join(call.pieces)
        if part.arguments.startswith(told) and part.arguments != told:
            rest = part.arguments[len(told) :]
            call.pieces.append(rest)
            emitted.append(ToolCallDelta(call.number, rest, call.name, call.id))

    # -- items -----------------------------------------------------------------------------------

    def _created(self, event: ServerEvent, emitted: list[StreamEvent]) -> None:
        if not self.response:
            self.opening = bytes(event.response)
            self._about(events.load_object(self.opening) or {})

    def _added(self, event: ServerEvent, emitted: list[StreamEvent]) -> None:
        item = events.item(event)
        if item is None:
            return
        self._announced = True
        if item_type(item.value) == "reasoning":
            self._begin(item, event.output_index, emitted)
            return
        self._has_output = True
        if item_type(item.value) in ARGUMENTS:
            name, id = string_member(item.value, "name"), string_member(item.value, "call_id")
            call = LiveCall(self._call_count, name, id)
            self._calls[event.output_index] = self._calls[item.id or event.output_index] = call
            self._call_count += 1
            check_answer_parts(self._call_count)
            emitted.append(ToolCallDelta(call.number, "", name, id))

    def _begin(self, item: OutputItem, index: int | None, emitted: list[StreamEvent]) -> OutputItem:
        """Say that a thought begins, and time it by id and by index.

        Some servers give an item another id later on, others number all items 0.
        """
        item.watch = self.open_watch()
        emitted.append(ReasoningStart(item.id, item.watch.at))
        check_answer_parts(len(self._open))
        if index is not None:
            self._open[index] = item
        if item.id or index is None:
            self._open[item.id] = item
        return item

    def _open_item(self, id: str, index: int | None) -> OutputItem | None:
        return self._open.get(id) or (None if index is None else self._open.get(index))

    def _done(self, event: ServerEvent, emitted: list[StreamEvent]) -> None:
        item = events.item(event)
        if item is None:
            return
        item.closed = self.now
        self._say_late(item, event, emitted)
        if item_type(item.value) == "reasoning":
            item.watch = self._close(item.id, event.output_index, emitted)
        else:
            self._complete(item, event.output_index, emitted)
            self._cite(item, emitted)
        place = self._places.setdefault(item.id, len(self._items)) if item.id else len(self._items)
        if place == len(self._items):
            self._items.append(item)
            check_answer_parts(place)
        else:  # sent twice: the last item counts, with the first one's timing
            item.watch, item.closed = self._items[place].watch, self._items[place].closed
            self._items[place] = item

    def _say_late(self, item: OutputItem, event: ServerEvent, emitted: list[StreamEvent]) -> None:
        """Emit a text or a thought that grew by no delta: some servers say it only as a whole."""
        late = self._announced and not self._grew
        self._announced = self._grew = False
        if not late or not (item.value.get("summary") or item.value.get("content")):
            return
        part = _part(item)
        if isinstance(part, Text):
            emitted.append(RefusalDelta(part.text) if part.refused else TextDelta(part.text))
        elif isinstance(part, Thought) and part.text:
            opened = self._open_item(item.id, event.output_index)
            if opened is None:
                emitted.append(ReasoningStart(item.id))
            emitted.append(ReasoningDelta(part.text, opened.id if opened else item.id))

    def _close(self, id: str, index: int | None, emitted: list[StreamEvent]) -> Stopwatch | None:
        opened = self._open_item(id, index)
        if opened is None or opened.watch is None:
            return None
        # Under the id of its deltas, which is not always the one that it has in the end.
        emitted.append(self.reasoning_end(opened.watch, opened.id or id))
        self._open = {key: other for key, other in self._open.items() if other is not opened}
        return opened.watch

    def _cite(self, item: OutputItem, emitted: list[StreamEvent]) -> None:
        """Emit the links of a message, once."""
        if item_type(item.value) != "message" or item.cited:
            return
        item.cited = True
        content = item.value.get("content")
        emitted += annotated(content, self._said)
        self._said += len("".join(string(mapping(p).get("text")) for p in sequence(content)))

    # -- in between ------------------------------------------------------------------------------

    @property
    def has_output(self) -> bool:
        return self._has_output

    def snapshot(self) -> list[Part]:
        parts: list[Part] = []
        for item in self._items:
            part = _part(item)
            if isinstance(part, Thought):
                parts.append(replace(part, timing=self._item_timing(item)))
            elif isinstance(part, Call):
                parts.append(Call(name=part.name, arguments="", id=part.id))
            else:
                parts.append(Text(text=""))
        for item in {id(item): item for item in self._open.values()}.values():
            if item.watch is not None:
                text = "".join(item.shown)
                parts.append(self.partial_thought(Carrier.ITEM, item.watch, text, item.id))
        return parts

    # -- the end ---------------------------------------------------------------------------------

    def _error(self, event: ServerEvent, emitted: list[StreamEvent]) -> None:
        """Take in an error event: flat in a stream, wrapped on a WebSocket."""
        flat = {"message": event.message, "code": event.code}
        self._end(
            "failed", {"error": event.error if event.error is not None else flat}, (), emitted
        )

    def _final(self, event: ServerEvent, emitted: list[StreamEvent]) -> None:
        raw = bytes(event.response)
        status = event.type.removeprefix("response.")
        self._end(status, events.load_object(raw) or {}, events.items(raw), emitted)

    def _read_body(self, body: bytes, emitted: list[StreamEvent]) -> None:
        """Read a body that was not streamed."""
        response = events.load_object(body)
        if response is None:
            return
        status = string_member(response, "status")
        if "output" not in response and status not in _OUTCOMES:
            if (error := response.get("error") or response.get("detail")) is None:
                return
            status, response = "failed", {"error": error}
        response.pop("output", None)  # read again, item by item: twice would be too much memory
        self._end(status, response, events.items(body), emitted)

    def _end(
        self,
        status: str,
        response: dict[str, Any],
        output: Sequence[OutputItem],
        emitted: list[StreamEvent],
    ) -> None:
        self._about(response)
        if status not in _OUTCOMES:
            status = string_member(response, "status") or "completed"
        self.done = status in _OUTCOMES  # queued or in progress: it goes on elsewhere
        self.outcome = _OUTCOMES.get(status, Outcome.ABORTED)
        if self.outcome is not Outcome.COMPLETED:
            self.reason = events.error_message(response) or status
        code = string(mapping(response.get("error")).get("code"))
        self.stop = _STOPS.get(code or self.reason, StopReason.END if self.done else None)
        self._fill(output, emitted)
        emitted += self._canonical()

    def _about(self, response: dict[str, Any]) -> None:
        self.response = string_member(response, "id") or self.response
        self.model = string_member(response, "model") or self.model
        if says_anything(counts := mapping(response.get("usage"))):
            self.usage = events.usage(counts)
        self.unread = unread_thoughts(response.get("input_transformations")) or self.unread

    def _fill(self, output: Sequence[OutputItem], emitted: list[StreamEvent]) -> None:
        """Complete the items that arrived with those in the response's last event."""
        if len(output) > len(self._items):
            self._items = self._merged(output, emitted)
        named = {item.id: item for item in output if item.id}
        for place, item in enumerate(self._items):
            same = named.get(item.id)
            if same is None and place < len(output) and output[place].id not in self._places:
                same = output[place]  # without ids, or with others than before
            if same is not None and same.sealed and item.lacking:
                item.value, item.raw = same.value, same.raw

    def _merged(self, output: Sequence[OutputItem], emitted: list[StreamEvent]) -> list[OutputItem]:
        """Return all items of the output; those that arrived before as they arrived.

        Where one of these is missing in the output, nothing is merged.
        """
        arrived = {item.id: item for item in self._items if item.id}
        if len(arrived) < len(self._items) or not arrived.keys() <= {item.id for item in output}:
            return self._items
        merged: list[OutputItem] = []
        for index, item in enumerate(output):
            if item.id not in arrived and item_type(item.value) == "reasoning":
                item.watch = self._close(item.id, index, emitted)
            elif item.id not in arrived:
                self._complete(item, index, emitted)
            merged.append(arrived.get(item.id, item))
        return merged

    def _canonical(self) -> list[StreamEvent]:
        """Return the canonical events of complete items, in order of arrival, once."""
        emitted: list[StreamEvent] = []
        items, self._items = self._items, []
        for item in items:
            self._cite(item, emitted)
        for item in items:
            if item_type(item.value) in CONTROLS:  # the client may send it back, or not
                continue
            part = _part(item)
            if isinstance(part, Thought):
                thought = replace(part, origin=self.served_origin(), timing=self._item_timing(item))
                emitted.append(Reasoning(thought=thought))
            elif isinstance(part, Call):
                emitted.append(ToolCall(call=part))
            else:
                emitted.append(AssistantMessage(parts=(part,)))
        return emitted + self._open_thoughts()

    def _open_thoughts(self) -> list[StreamEvent]:
        """Return the thoughts that were open when the response broke off, as announced."""
        left, self._open = list({id(item): item for item in self._open.values()}.values()), {}
        if self.outcome is Outcome.COMPLETED:
            return []
        emitted: list[StreamEvent] = []
        for item in left:
            part = _part(item)
            if isinstance(part, Thought) and item.watch is not None:
                timing = self.timing(item.watch, aborted=True)
                text = replace_surrogates("".join(item.shown))
                emitted.append(
                    Reasoning(
                        thought=replace(part, text=text, origin=self.served_origin(), timing=timing)
                    )
                )
        return emitted

    def _item_timing(self, item: OutputItem) -> Timing:
        """Return the timing of a thought; unknown where its opening was not seen."""
        if item.watch is not None:
            return self.timing(item.watch)
        return Timing(sent=self.sent, closed=item.closed or self.now)

    _HANDLERS: ClassVar[
        dict[str, Callable[["ResponsesReader", ServerEvent, list[StreamEvent]], None]]
    ] = {
        "response.output_text.delta": _text_delta,
        "response.reasoning_summary_text.delta": _thought_delta,
        "response.reasoning_text.delta": _thought_delta,
        "response.function_call_arguments.delta": _arguments,
        "response.custom_tool_call_input.delta": _arguments,
        "response.refusal.delta": _refusal_delta,
        "response.reasoning_summary_part.added": _paragraph,
        "response.created": _created,
        "response.in_progress": _created,
        "response.output_item.added": _added,
        "response.output_item.done": _done,
        "response.completed": _final,
        "response.incomplete": _final,
        "response.failed": _final,
        "response.cancelled": _final,
        "response.done": _final,
        "error": _error,
    }


def _unannounced(id: str) -> OutputItem:
    """Return a thought that was not announced."""
    value: dict[str, Any] = {"type": "reasoning", "id": id, "summary": []}
    return OutputItem(value, splice.dumps(value).decode())


def _part(item: OutputItem) -> Thought | Text | Call | Blob:
    """Return the part that an item is; one that is nested too deeply is not looked into."""
    try:
        return output_part(item.value, item.raw)
    except (Unreadable, RecursionError):
        if item_type(item.value) == "reasoning":
            return Thought(carrier=Carrier.ITEM, raw=item.raw, id=item.id)
        return Blob(kind=item_type(item.value), digest=keys.string_digest(item.raw), raw=item.raw)
