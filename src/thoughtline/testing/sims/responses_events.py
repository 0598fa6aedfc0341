"""The stream of a Responses answer, event by event, in the order of the real one.

Each `Event` is the JSON of one server-sent event or one WebSocket frame. An event that finishes an
item says so, because only a finished item was really given to the client.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from thoughtline.testing.sims.responses_oddities import SERVED, Event, Out
from thoughtline.testing.sims.responses_rows import Row
from thoughtline.testing.sims.spelling import Fragment
from thoughtline.testing.sims.values import deltas


class Stream(NamedTuple):
    """How one server streams."""

    row: Row
    surrogates: bool
    """Cut emoji in two halves."""

    def item(self, out: Out, index: int) -> Iterator[Event]:
        """Everything about one item."""
        at = {"output_index": index}
        yield Event({"type": "response.output_item.added", **at, "item": self._opened(out)})
        within = {"item_id": out.id, **at}
        if out.kind == "message":
            yield from self._message(out, within)
        elif out.kind == "function_call":
            name = "response.function_call_arguments"
            for delta in self._deltas(out.text):
                yield Event({"type": f"{name}.delta", **within, "delta": delta})
            yield Event({"type": f"{name}.done", **within, "arguments": out.text})
        elif out.kind in SERVED:
            for step in SERVED[out.kind]:
                yield Event({"type": f"response.{out.kind}.{step}", **within})
        elif self.row.style is None:
            yield from self._open_thought(out, within)
        else:
            yield from self._summary(out, within)
        key = "output_item" if self.row.alias else "item"
        yield Event({"type": "response.output_item.done", **at, key: self._closed(out)}, out)

    def _opened(self, out: Out) -> dict[str, Any]:
        """The item as it is announced: empty, its blob not yet complete."""
        if out.kind == "message":
            return {**out.value, "status": "in_progress", "content": []}
        if out.kind == "function_call":
            return {**out.value, "status": "in_progress", "arguments": ""}
        if out.kind in SERVED:
            return {"id": out.id, "type": out.kind, "status": "in_progress"}
        item = {key: value for key, value in out.value.items() if key in ("id", "type")}
        item["summary"] = []
        if self.row.style is None:
            return {**item, "content": [], "status": "in_progress"}
        blob = out.value.get("encrypted_content")
        if blob is not None:
            # developers.openai.com: may be incomplete here, use the done event.
            item["encrypted_content"] = None if self.row.late else blob[: len(blob) // 2]
        return item

    def _closed(self, out: Out) -> object:
        if self.row.late and "encrypted_content" in out.value:
            return {**out.value, "encrypted_content": None}
        return Fragment(out.raw.decode())

    def _deltas(self, text: str) -> list[str]:
        return deltas(text, surrogates=self.surrogates)

    def _message(self, out: Out, within: dict[str, Any]) -> Iterator[Event]:
        within = {**within, "content_index": 0}
        whole = out.value["content"][0]
        notes = whole["annotations"]
        empty = {**whole, "text": "", "annotations": []}
        yield Event({"type": "response.content_part.added", **within, "part": empty})
        name = "response.output_text"
        for delta in self._deltas(out.text):
            yield Event({"type": f"{name}.delta", **within, "delta": delta, "logprobs": []})
        for at, note in enumerate(notes):
            told = {"annotation_index": at, "annotation": note}
            yield Event({"type": f"{name}.annotation.added", **within, **told})
        yield Event({"type": f"{name}.done", **within, "logprobs": [], "text": out.text})
        yield Event({"type": "response.content_part.done", **within, "part": whole})

    def _open_thought(self, out: Out, within: dict[str, Any]) -> Iterator[Event]:
        within = {**within, "content_index": 0}
        name = "response.reasoning_text"
        for delta in self._deltas(out.text):
            yield Event({"type": f"{name}.delta", **within, "delta": delta})
        yield Event({"type": f"{name}.done", **within, "text": out.text})

    def _summary(self, out: Out, within: dict[str, Any]) -> Iterator[Event]:
        for at, text in enumerate(out.summary):
            inside = {**within, "summary_index": at}
            part = {"type": "summary_text", "text": ""}
            name = "response.reasoning_summary"
            yield Event({"type": f"{name}_part.added", **inside, "part": part})
            for delta in self._deltas(text):
                yield Event({"type": f"{name}_text.delta", **inside, "delta": delta})
            yield Event({"type": f"{name}_text.done", **inside, "text": text})
            yield Event({"type": f"{name}_part.done", **inside, "part": {**part, "text": text}})
