"""Turn events as chunks of the AI SDK's UI message stream, protocol version 1; pure.

A run is one message, a turn is one step of it. Deltas are shown as they come, and a thought's
duration when it ends; when the turn is written, its calls become available, and the stored
durations of its thoughts arrive as metadata and have the last word. Each stands under the key
that the thought's part carries (`providerMetadata.thoughtline.key`). Results of tools
belong to the step that called them, so a step begins with the first thing its model says.
What a provider did not stream is shown when it is written.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from thoughtline.durations import Span, closed, described, spans, total
from thoughtline.events import (
    AssistantMessage,
    Delta,
    Event,
    Keepalive,
    Outcome,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    TurnEnded,
    TurnStarted,
)
from thoughtline.fronts.parts import Chunk, Flow, Tools
from thoughtline.parts import Call, Part, Text, Thought
from thoughtline.turns import Turn


def discreet(reason: str) -> str:
    """What people are told about a failure: that it happened. Reasons may name hosts and keys."""
    del reason
    return "The model could not answer."


class Encoder:
    """One message while it is made."""

    def __init__(self, message: str = "", *, explain: Callable[[str], str] = discreet) -> None:
        self.message = message  # its id; else the first turn's
        self._explain = explain
        self._flow = Flow()
        self._tools = Tools()
        self._started = False
        self._step = False  # a step is open
        self._next = False  # and another one is about to begin
        self._over = False
        self._outcome: Outcome | None = None
        self._reason = ""
        self._turns: list[Turn] = []
        self._output: list[Part] = []
        self._live: list[str] = []  # keys of the thoughts that were shown in this turn
        self._spoken = False  # text was shown in this turn
        self._numbered = 0  # thoughts of the turns before

    def feed(self, happening: Event | Delta, at: float) -> list[Chunk]:
        """What a front end is told about this; `at` is the time of day."""
        if self._over:
            return []
        if isinstance(happening, Event):
            return self._event(happening)
        if isinstance(happening, Keepalive):
            return []
        if isinstance(happening, ReasoningEnd):
            return self._thought(happening)
        told = self._begin_step()
        match happening:
            case ReasoningDelta():
                told += self._think(happening, at)
            case TextDelta():
                told += self._say(happening.text)
            case ToolCallDelta():
                told += [*self._flow.close(), *self._tools.delta(happening)]
        return told

    def end(self, failure: str | None = None) -> list[Chunk]:
        """The run is over; `failure` is why it broke, if that is no part of a turn."""
        if self._over:
            return []
        told = [*self._start(), *self._flow.close()]
        if self._output or self._live:
            told += self._settle(Outcome.ABORTED)
        if self._step:
            told.append({"type": "finish-step"})
        self._over = True
        if failure is not None or self._outcome is Outcome.FAILED:
            reason = failure if failure is not None else self._reason
            return [*told, {"type": "error", "errorText": self._explain(reason)}]
        stopped = self._outcome in (None, Outcome.ABORTED)
        return [*told, {"type": "abort" if stopped else "finish"}]

    # -- canonical -------------------------------------------------------------------------------

    def _event(self, event: Event) -> list[Chunk]:
        body = event.body()
        match body:
            case TurnStarted():
                self.message = self.message or event.id
                self._next, self._outcome = True, None
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
                return self._settle(body.outcome)
        return []

    def _settle(self, outcome: Outcome) -> list[Chunk]:
        """The turn is written: what is stored of it has the last word."""
        told = [*self._begin_step(), *self._flow.close()]
        turn = Turn(output=tuple(self._output))
        found = spans(turn, first=self._numbered)
        silent = not (self._live or self._spoken or self._tools.shown)
        places = {span.place: span for span in found}
        for place, part in enumerate(turn.output):
            told += self._whole(part, places.get(place), silent=silent)
        told += self._tools.broken()
        self._turns.append(turn)
        told += self._durations(found, outcome)
        self._outcome = outcome
        self._numbered += max(len(found), len(self._live))
        self._output, self._live, self._spoken = [], [], False
        self._tools.turn()
        return told

    def _whole(self, part: Part, span: Span | None, *, silent: bool) -> list[Chunk]:
        match part:
            case Call():
                return self._tools.call(part)
            case Text() if part.text and not self._spoken:
                return self._block("text", part.text)
            case Thought() if span is not None and silent:
                return self._block("reasoning", span.summary, span.key)
        return []

    def _block(self, kind: str, text: str, key: str = "") -> list[Chunk]:
        """A part that comes whole."""
        told = self._flow.open(kind, key)
        if text:
            told.append(self._flow.grow(text))
        return [*told, *self._flow.close()]

    def _durations(self, found: list[Span], outcome: Outcome) -> list[Chunk]:
        """Durations under the keys that the live parts have, even if ids changed on the way."""
        keys = {span.key for span in found}
        left = [key for key in self._live if key not in keys]
        unseen = [n for n, s in enumerate(found) if s.summary and s.key not in self._live]
        known = list(found)
        if len(left) == len(unseen):
            known += [replace(found[n], key=key) for n, key in zip(unseen, left, strict=True)]
        else:
            stopped = outcome is not Outcome.COMPLETED
            known += [Span(key=key, aborted=stopped) for key in left]
        metadata = described(known)
        if (whole := total(*self._turns)) is not None:
            metadata["reasoningTotal"] = whole
        return [_metadata(metadata)] if metadata else []

    # -- live ------------------------------------------------------------------------------------

    def _think(self, delta: ReasoningDelta, at: float) -> list[Chunk]:
        if not delta.text:
            return []
        told: list[Chunk] = []
        flow = self._flow
        same = not delta.item or delta.item == flow.key
        if flow.kind != "reasoning" or not same:
            key = delta.item or f"part-{self._numbered + len(self._live)}"
            told = flow.open("reasoning", key)
            if key not in self._live:
                self._live.append(key)
                started = {"reasoningStartedAt": {key: round(at * 1000)}}
                told.append(_metadata(started | {"reasoningStates": {key: "thinking"}}))
        return [*told, flow.grow(delta.text)]

    def _thought(self, ended: ReasoningEnd) -> list[Chunk]:
        """The thought that is open ends; others were not shown."""
        key = self._flow.key
        if self._flow.kind != "reasoning" or (ended.item and ended.item != key):
            return []
        first = self._live == [key] and not (self._spoken or self._tools.shown)
        span = closed(ended.timing, key=key, first=first)
        return [*self._flow.close(), _metadata(described([span]))]

    def _say(self, text: str) -> list[Chunk]:
        if not text:
            return []
        self._spoken = True
        told = [] if self._flow.kind == "text" else self._flow.open("text")
        return [*told, self._flow.grow(text)]

    # -- the message and its steps ---------------------------------------------------------------

    def _start(self) -> list[Chunk]:
        if self._started:
            return []
        self._started = True
        named = {"messageId": self.message} if self.message else {}
        return [{"type": "start", **named}]

    def _begin_step(self) -> list[Chunk]:
        told = self._start()
        if self._next or not self._step:
            told += self._flow.close()
            if self._step:
                told.append({"type": "finish-step"})
            told.append({"type": "start-step"})
            self._next, self._step = False, True
        return told


def _metadata(value: dict[str, Any]) -> Chunk:
    return {"type": "message-metadata", "messageMetadata": value}
