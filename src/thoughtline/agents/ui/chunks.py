"""`MessageEncoder` turns events of a run into chunks of the AI SDK's UI message stream, version 1.

A run is one message, and each of its turns is one step. Deltas become chunks as they come. When a
turn is written to the log, its tool calls become available, and the stored durations of its
thoughts follow as metadata and replace what was measured live; each stands under the key that the
thought's part carries (`providerMetadata.thoughtline.key`): the item's id, else `part-N`, where N
is the part's place in the message, `step-start` not counted. A tool's result belongs to the step
that called it, so a step begins with the first delta of its turn. What a provider did not stream
is sent when it is written. Pure: no clock, no I/O.

Text and thoughts come one after the other: whatever begins next ends the part that is open. Inputs
of tools may stream side by side. A front end knows a part by the id that it gets here, so a delta
or an end never comes without its start.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from thoughtline.agents.ui.message_parts import Chunk, OpenPart, ToolParts
from thoughtline.log.durations import (
    ThoughtSpan,
    closed_span,
    durations_json,
    part_metadata,
    thought_spans,
    total_seconds,
)
from thoughtline.log.events import (
    AssistantMessage,
    Delta,
    Event,
    Keepalive,
    Outcome,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    TurnEnded,
    TurnStarted,
)
from thoughtline.log.parts import Call, Part, Text, Thought
from thoughtline.log.turns import Turn


def hide_reason(reason: str) -> str:
    """Say that a run failed, and not why: the reason may name hosts and keys."""
    del reason
    return "The model could not answer."


class MessageEncoder:
    """Encodes one run as one UI message. It is fed the run's events in order."""

    def __init__(self, message: str = "", *, explain: Callable[[str], str] = hide_reason) -> None:
        self.message = message  # the message's id; empty: the first turn's
        self._explain = explain
        self._open = OpenPart()
        self._tools = ToolParts()
        self._started = False
        self._step_open = False
        self._step_due = False  # another step begins with the next chunk
        self._ended = False
        self._outcome: Outcome | None = None  # of the last turn that ended
        self._reason = ""
        self._turns: list[Turn] = []
        self._output: list[Part] = []  # of this turn, as it is written to the log
        self._live: dict[str, str] = {}  # thoughts that streamed in this turn: key → item
        self._text_sent = False  # text streamed in this turn

    def feed(self, event: Event | Delta, at: float) -> list[Chunk]:
        """The chunks for one event; `at` is the time of day."""
        if self._ended:
            return []
        if isinstance(event, Event):
            return self._feed_logged(event)
        if isinstance(event, Keepalive):
            return []
        if isinstance(event, ReasoningEnd):
            return self._end_thought(event)
        chunks = self._begin_step()
        match event:
            case ReasoningStart():
                chunks += self._begin_thought(event.item, event.at or at)
            case ReasoningDelta():
                chunks += self._add_thought(event, at)
            case TextDelta():
                chunks += self._add_text(event.text)
            case ToolCallDelta():
                chunks += [*self._open.end(), *self._tools.delta(event)]
        return chunks

    def end(self, failure: str | None = None) -> list[Chunk]:
        """The last chunks; `failure` is why the run broke, where no turn of it says so."""
        if self._ended:
            return []
        chunks = [*self._start(), *self._open.end()]
        if self._output or self._live:
            chunks += self._end_turn(Outcome.ABORTED)
        if self._step_open:
            chunks.append({"type": "finish-step"})
        self._ended = True
        if failure is not None or self._outcome is Outcome.FAILED:
            reason = failure if failure is not None else self._reason
            return [*chunks, {"type": "error", "errorText": self._explain(reason)}]
        stopped = self._outcome in (None, Outcome.ABORTED)
        return [*chunks, {"type": "abort" if stopped else "finish"}]

    # -- events of the log -----------------------------------------------------------------------

    def _feed_logged(self, event: Event) -> list[Chunk]:
        body = event.readable_body()
        match body:
            case TurnStarted():
                self.message = self.message or event.id
                self._step_due, self._outcome = True, None
                return self._start()
            case ToolResult(result=result):
                return self._tools.result(result.call, result.content, error=result.error)
            case Reasoning():
                self._output.append(body.thought)
            case AssistantMessage():
                self._output += body.parts
            case ToolCall():
                self._output.append(body.call)
            case TurnEnded():
                self._reason = body.reason
                return self._end_turn(body.outcome)
        return []

    def _end_turn(self, outcome: Outcome) -> list[Chunk]:
        """Send what the log has of the turn and did not stream, then its durations."""
        chunks = [*self._begin_step(), *self._open.end()]
        turn = Turn(output=tuple(self._output))
        logged = thought_spans(turn)
        keys = self._live_keys(logged)
        known: list[ThoughtSpan] = []
        by_place = {span.place: span for span in logged}
        for place, part in enumerate(turn.output):
            span = by_place.get(place)
            if span is not None:
                key = keys.pop(place, "") or span.item or f"part-{self._part_count}"
                span = replace(span, key=key)
                known.append(span)
            chunks += self._add_logged(part, span)
        chunks += self._tools.fail_incomplete()
        self._turns.append(turn)
        chunks += self._durations(known, outcome)
        self._outcome = outcome
        self._output, self._live, self._text_sent = [], {}, False
        self._tools.next_turn()
        return chunks

    def _add_logged(self, part: Part, span: ThoughtSpan | None) -> list[Chunk]:
        match part:
            case Call():
                return self._tools.call(part)
            case Text() if part.text and not self._text_sent:
                return self._complete_part("text", part.text)
            case Thought() if span is not None and self._is_unsent(span):
                return self._complete_part("reasoning", span.summary, part_metadata(span))
        return []

    def _is_unsent(self, span: ThoughtSpan) -> bool:
        """Whether a thought has no part yet; one with text has none only if nothing streamed."""
        return span.key not in self._live and not (span.summary and self._live)

    def _complete_part(
        self, kind: str, text: str, metadata: dict[str, Any] | None = None
    ) -> list[Chunk]:
        """A part that did not stream: start, one delta, end."""
        chunks = self._open.start(kind, metadata)
        if text:
            chunks.append(self._open.delta(text))
        return [*chunks, *self._open.end(metadata)]

    def _durations(self, known: list[ThoughtSpan], outcome: Outcome) -> list[Chunk]:
        """The durations of a turn: as the log has them, or unknown for what it does not have."""
        keys, stopped = {span.key for span in known}, outcome is not Outcome.COMPLETED
        renamed = [replace(s, key=s.item) for s in known if s.item and s.item != s.key]
        lost = [ThoughtSpan(key=key, aborted=stopped) for key in self._live if key not in keys]
        metadata = durations_json([*known, *renamed, *lost])
        if (seconds := total_seconds(*self._turns)) is not None:
            metadata["reasoningTotal"] = seconds
        return [_metadata(metadata)] if metadata else []

    def _live_keys(self, logged: list[ThoughtSpan]) -> dict[int, str]:
        """The keys under which thoughts of the log streamed, by their place in the output.

        Found by the item's id. Ids may change on the way, some thoughts do not stream, and some
        come in pieces: the rest is paired in order, without those that nobody can read if that
        makes the numbers equal.
        """
        items = {item: key for key, item in self._live.items() if item}
        keys = {span.place: items[span.item] for span in logged if span.item in items}
        taken = set(keys.values())
        waiting = [key for key in self._live if key not in taken]
        others = [span for span in logged if span.place not in keys]
        readable = [span for span in others if span.summary]
        if len(others) != len(waiting) and readable:
            others = readable
        return keys | {s.place: key for s, key in zip(others, waiting, strict=False)}

    # -- deltas ----------------------------------------------------------------------------------

    @property
    def _part_count(self) -> int:
        """How many parts the message has, `step-start` not counted."""
        return self._open.count + self._tools.count

    @property
    def _open_item(self) -> str:
        """The item whose thought is open."""
        return self._live.get(self._open.key, "") if self._open.kind == "reasoning" else ""

    def _begin_thought(self, item: str, at: float) -> list[Chunk]:
        """Begin a thought, unless it is the one that is open."""
        if item and item == self._open_item:
            return []
        key = item or f"part-{self._part_count}"
        own = {"key": key, "itemId": item} if item else {"key": key}
        chunks = self._open.start("reasoning", own)
        if key not in self._live:
            self._live[key] = item
            started = {"reasoningStartedAt": {key: round(at * 1000)}}
            chunks.append(_metadata(started | {"reasoningStates": {key: "thinking"}}))
        return chunks

    def _add_thought(self, delta: ReasoningDelta, at: float) -> list[Chunk]:
        if not delta.text:
            return []
        same = self._open.kind == "reasoning" and delta.item in ("", self._open_item)
        chunks = [] if same else self._begin_thought(delta.item, at)
        return [*chunks, self._open.delta(delta.text)]

    def _end_thought(self, ended: ReasoningEnd) -> list[Chunk]:
        """End the thought that is open, with its duration; others did not stream."""
        key, item = self._open.key, self._open_item
        if self._open.kind != "reasoning" or ended.item not in ("", item):
            return []
        first = list(self._live) == [key] and not (self._text_sent or self._tools.started)
        span = closed_span(ended.timing, key=key, first=first, item=item)
        return [*self._open.end(part_metadata(span)), _metadata(durations_json([span]))]

    def _add_text(self, text: str) -> list[Chunk]:
        if not text:
            return []
        self._text_sent = True
        chunks = [] if self._open.kind == "text" else self._open.start("text")
        return [*chunks, self._open.delta(text)]

    # -- the message and its steps ---------------------------------------------------------------

    def _start(self) -> list[Chunk]:
        if self._started:
            return []
        self._started = True
        id = {"messageId": self.message} if self.message else {}
        return [{"type": "start", **id}]

    def _begin_step(self) -> list[Chunk]:
        chunks = self._start()
        if self._step_due or not self._step_open:
            chunks += self._open.end()
            if self._step_open:
                chunks.append({"type": "finish-step"})
            chunks.append({"type": "start-step"})
            self._step_due, self._step_open = False, True
        return chunks


def _metadata(value: dict[str, Any]) -> Chunk:
    return {"type": "message-metadata", "messageMetadata": value}
