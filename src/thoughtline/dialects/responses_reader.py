"""Responses output, as a stream, as WebSocket messages or as one body, told as events.

Items are taken whole from `response.output_item.done`, in their exact JSON text, and told when the
response ends: only then is it known whether a reasoning item that came without its seal comes
complete after all. `added` opens a thought's timing; deltas are shown live and never make an item.
A thought that was still open when a response broke off is kept as it was announced, as aborted.
How the provider's JSON is read is in `responses_frames`.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from thoughtline import keys, splice
from thoughtline.clock import Clock
from thoughtline.dialects import responses_frames as frames
from thoughtline.dialects.halves import mend
from thoughtline.dialects.recorder import Recorder, Stopwatch
from thoughtline.dialects.responses_frames import Frame, Item, frame
from thoughtline.dialects.responses_items import ARGUMENTS, kind, said, string
from thoughtline.dialects.sse import Splitter
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
)
from thoughtline.parts import Blob, Call, Carrier, Origin, Part, Text, Thought, Timing

_ENDINGS = {
    "completed": Outcome.COMPLETED,
    "incomplete": Outcome.CAPPED,
    "failed": Outcome.FAILED,
    "cancelled": Outcome.ABORTED,
}


class ResponsesReader(Recorder):
    """Reads one response."""

    def __init__(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> None:
        super().__init__(clock=clock, origin=origin, sent=sent)
        self._splitter = Splitter() if stream else None
        self._body: list[bytes] = []
        self._items: list[Item] = []  # in order of arrival
        self._places: dict[str, int] = {}  # item id → its position among them
        self._open: dict[str | int, Item] = {}  # thoughts, by id and by index
        self._calls: dict[str, tuple[str, str]] = {}  # item id → name and call id
        self._spoke = False  # an item that is no thought was announced

    def feed(self, data: bytes) -> list[Happening]:
        if self._splitter is None:
            self._body.append(data)
            return []
        self.tick()
        told: list[Happening] = []
        for event in self._splitter.feed(data):
            self._take(event.data, event.name, told)
        return told

    def event(self, data: bytes) -> list[Happening]:
        """Take in one event as JSON, without the framing of a stream: a WebSocket's message."""
        self.tick()
        told: list[Happening] = []
        self._take(data, "", told)
        return told

    def close(self, *, reason: str = "") -> list[Happening]:
        self.tick()
        told: list[Happening] = []
        if self._splitter is None:
            self._whole(b"".join(self._body).strip(), told)
            self._body = []
        else:
            for event in self._splitter.finish():
                self._take(event.data, event.name, told)
        return told + self._settled() + self.ending(reason)

    # -- deltas ----------------------------------------------------------------------------------

    def _take(self, data: bytes, name: str, told: list[Happening]) -> None:
        came = frame(data)
        if came is None or self.done:
            return
        if not came.type:
            came.type = name  # servers that say it in the `event:` line only
        take = self._TAKES.get(came.type)
        if take is not None:
            take(self, came, told)

    def _text(self, came: Frame, told: list[Happening]) -> None:
        if came.delta:
            told.append(TextDelta(came.delta))

    def _think(self, came: Frame, told: list[Happening]) -> None:
        id = came.item_id or ""
        item = self._opened(id, came.output_index)
        if item is None:
            item = self._begin(_announced(id), came.output_index)
        if item.watch is not None:
            item.watch.touch(self.now)
        if came.delta:
            item.shown.append(came.delta)
            told.append(ReasoningDelta(came.delta, id))

    def _paragraph(self, came: Frame, told: list[Happening]) -> None:
        """Another part of a summary begins: shown as a paragraph of its own."""
        item = self._opened(came.item_id or "", came.output_index)
        if item is not None and item.shown:
            item.shown.append("\n\n")
            told.append(ReasoningDelta("\n\n", came.item_id or ""))

    def _argue(self, came: Frame, told: list[Happening]) -> None:
        if came.delta:
            name, id = self._calls.get(came.item_id or "", ("", ""))
            told.append(ToolCallDelta(came.output_index or 0, came.delta, name, id))

    # -- items -----------------------------------------------------------------------------------

    def _created(self, came: Frame, told: list[Happening]) -> None:
        if not self.response:
            self._about(frames.loaded(bytes(came.response)) or {})

    def _added(self, came: Frame, told: list[Happening]) -> None:
        item = frames.item(came)
        if item is None:
            return
        if kind(item.value) == "reasoning":
            self._begin(item, came.output_index)
            return
        self._spoke = True
        if kind(item.value) in ARGUMENTS:
            call = (string(item.value, "name"), string(item.value, "call_id"))
            self._calls[item.id] = call
            told.append(ToolCallDelta(came.output_index or 0, "", *call))

    def _begin(self, item: Item, index: int | None) -> Item:
        """Watch a thought by id and by index.

        Some servers give an item another id later on, others number all items 0.
        """
        item.watch = self.watch()
        if index is not None:
            self._open[index] = item
        if item.id or index is None:
            self._open[item.id] = item
        return item

    def _opened(self, id: str, index: int | None) -> Item | None:
        return self._open.get(id) or (None if index is None else self._open.get(index))

    def _done(self, came: Frame, told: list[Happening]) -> None:
        item = frames.item(came)
        if item is None:
            return
        item.closed = self.now
        if kind(item.value) == "reasoning":
            item.watch = self._close(item.id, came.output_index, told)
        place = self._places.setdefault(item.id, len(self._items)) if item.id else len(self._items)
        if place == len(self._items):
            self._items.append(item)
        else:  # said twice: the last word counts, the first one's time
            item.watch, item.closed = self._items[place].watch, self._items[place].closed
            self._items[place] = item

    def _close(self, id: str, index: int | None, told: list[Happening]) -> Stopwatch | None:
        opened = self._opened(id, index)
        if opened is None or opened.watch is None:
            return None
        # Under the id that its deltas had, which is not always the one that it has in the end.
        told.append(self.closing(opened.watch, opened.id or id))
        self._open = {key: other for key, other in self._open.items() if other is not opened}
        return opened.watch

    # -- in between ------------------------------------------------------------------------------

    @property
    def spoke(self) -> bool:
        return self._spoke

    def glimpse(self) -> list[Part]:
        parts: list[Part] = []
        for item in self._items:
            part = _part(item)
            if isinstance(part, Thought):
                parts.append(replace(part, timing=self._timed(item)))
            elif isinstance(part, Call):
                parts.append(Call(name=part.name, arguments="", id=part.id))
            else:
                parts.append(Text(text=""))
        for item in {id(item): item for item in self._open.values()}.values():
            if item.watch is not None:
                text = "".join(item.shown)
                parts.append(self.seen(Carrier.ITEM, item.watch, text, item.id))
        return parts

    # -- the end ---------------------------------------------------------------------------------

    def _error(self, came: Frame, told: list[Happening]) -> None:
        """Flat in a stream, wrapped on a WebSocket."""
        flat = {"message": came.message, "code": came.code}
        self._end("failed", {"error": came.error if came.error is not None else flat}, (), told)

    def _final(self, came: Frame, told: list[Happening]) -> None:
        raw = bytes(came.response)
        status = came.type.removeprefix("response.")
        self._end(status, frames.loaded(raw) or {}, frames.items(raw), told)

    def _whole(self, body: bytes, told: list[Happening]) -> None:
        """A body that was not streamed."""
        response = frames.loaded(body)
        if response is None:
            return
        status = string(response, "status")
        if "output" not in response and status not in _ENDINGS:
            if (error := response.get("error") or response.get("detail")) is None:
                return
            status, response = "failed", {"error": error}
        self._end(status, response, frames.items(body), told)

    def _end(
        self,
        status: str,
        response: dict[str, Any],
        output: Sequence[Item],
        told: list[Happening],
    ) -> None:
        self._about(response)
        if status not in _ENDINGS:
            status = string(response, "status") or "completed"
        self.done = status in _ENDINGS  # queued or in progress: it goes on elsewhere
        self.outcome = _ENDINGS.get(status, Outcome.ABORTED)
        if self.outcome is not Outcome.COMPLETED:
            self.reason = frames.complaint(response) or status
        self._fill(output, told)
        told += self._settled()

    def _about(self, response: dict[str, Any]) -> None:
        self.response = string(response, "id") or self.response
        self.model = string(response, "model") or self.model
        if isinstance(counts := response.get("usage"), dict):
            self.usage = frames.usage(counts)

    def _fill(self, output: Sequence[Item], told: list[Happening]) -> None:
        """Complete what arrived with what the response says of itself at its end."""
        if len(output) > len(self._items):
            self._items = self._merged(output, told)
        named = {item.id: item for item in output if item.id}
        for place, item in enumerate(self._items):
            same = named.get(item.id)
            if same is None and place < len(output) and output[place].id not in self._places:
                same = output[place]  # without ids, or with others than before
            if same is not None and same.sealed and item.lacking:
                item.value, item.raw = same.value, same.raw

    def _merged(self, output: Sequence[Item], told: list[Happening]) -> list[Item]:
        """All items of the output; those that arrived before as they arrived.

        If one of them cannot be found there, nothing can be said about the others either.
        """
        arrived = {item.id: item for item in self._items if item.id}
        if len(arrived) < len(self._items) or not arrived.keys() <= {item.id for item in output}:
            return self._items
        merged: list[Item] = []
        for index, item in enumerate(output):
            if item.id not in arrived and kind(item.value) == "reasoning":
                item.watch = self._close(item.id, index, told)
            merged.append(arrived.get(item.id, item))
        return merged

    def _settled(self) -> list[Happening]:
        """Canonical bodies of the items that are complete, in order of arrival, once."""
        told: list[Happening] = []
        items, self._items = self._items, []
        for item in items:
            part = _part(item)
            if isinstance(part, Thought):
                thought = replace(part, origin=self.made(), timing=self._timed(item))
                told.append(Reasoning(thought=thought))
            elif isinstance(part, Call):
                told.append(ToolCall(call=part))
            else:
                told.append(AssistantMessage(parts=(part,)))
        return told + self._broken()

    def _broken(self) -> list[Happening]:
        """Thoughts that were open when the response broke off, as they were announced."""
        left, self._open = list({id(item): item for item in self._open.values()}.values()), {}
        if self.outcome is Outcome.COMPLETED:
            return []
        told: list[Happening] = []
        for item in left:
            part = _part(item)
            if isinstance(part, Thought) and item.watch is not None:
                timing = self.timing(item.watch, aborted=True)
                text = mend("".join(item.shown))
                told.append(
                    Reasoning(thought=replace(part, text=text, origin=self.made(), timing=timing))
                )
        return told

    def _timed(self, item: Item) -> Timing:
        """The readings of a thought; where nobody saw it open, that stays unknown."""
        if item.watch is not None:
            return self.timing(item.watch)
        return Timing(sent=self.sent, closed=item.closed or self.now)

    _TAKES: ClassVar[dict[str, Callable[["ResponsesReader", Frame, list[Happening]], None]]] = {
        "response.output_text.delta": _text,
        "response.reasoning_summary_text.delta": _think,
        "response.reasoning_text.delta": _think,
        "response.function_call_arguments.delta": _argue,
        "response.custom_tool_call_input.delta": _argue,
        "response.refusal.delta": _text,
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


def _announced(id: str) -> Item:
    """A thought that nobody announced."""
    value: dict[str, Any] = {"type": "reasoning", "id": id, "summary": []}
    return Item(value, splice.dumps(value).decode())


def _part(item: Item) -> Thought | Text | Call | Blob:
    """What an item is; one that is nested too deeply is kept and not looked into."""
    try:
        return said(item.value, item.raw)
    except (Unreadable, RecursionError):
        if kind(item.value) == "reasoning":
            return Thought(carrier=Carrier.ITEM, raw=item.raw, id=item.id)
        return Blob(kind=kind(item.value), digest=keys.seal(item.raw), raw=item.raw)
