"""One response on its way over a WebSocket, frame by frame.

A flight gives one frame each time it is asked, so that several can be interleaved, steered at the
boundary between two items, or broken in the middle. Only what it has given counts as delivered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thoughtline.testing.sims.responses_answer import Answer, numbered
from thoughtline.testing.sims.responses_oddities import Event, Out
from thoughtline.testing.sims.responses_steer import Steer, accepted, pending

if TYPE_CHECKING:
    from thoughtline.testing.sims.responses import ResponsesSimulator

GARBAGE = '{"type":"response.output_text.del'
DROPPED = 1011
_TERMINAL = ("response.completed", "response.incomplete")

# codex-rs/codex-api/src/endpoint/responses_websocket.rs reads these beside the documented events.
_EXTRAS: dict[str, dict[str, Any]] = {
    "response.created": {
        "type": "codex.rate_limits",
        "plan_type": "pro",
        "rate_limits": {"allowed": True, "limit_reached": False, "primary": None},
    },
    "response.in_progress": {"type": "codex.response.metadata", "headers": {}},
    "response.completed": {"type": "responsesapi.websocket_timing", "timing_metrics": {}},
}


class Flight:
    """One response in flight."""

    def __init__(self, simulator: ResponsesSimulator, answer: Answer, raw: bytes) -> None:
        self.simulator = simulator
        self.answer = answer
        self.raw = raw
        """The frame that asked for it."""
        self.delivered: list[Out] = []
        self.steers: list[Steer] = []
        self.finished = False
        self.stalled = False
        self.dropped = False
        self._events = self._with_audit(list(simulator.events(answer)))
        self._at = 0
        self._number = 0
        self._between = True
        self._left = self._budget()

    @property
    def calling(self) -> bool:
        """The client owes a tool result."""
        return any(out.kind == "function_call" for out in self.delivered)

    def steer(self, steer: Steer) -> dict[str, Any]:
        """Take user input; gives the acknowledgement."""
        self.steers.append(steer)
        return self._count(accepted(steer))

    def step(self) -> list[dict[str, Any] | str]:
        """The next frames: one event, and what belongs to it."""
        if self._left == 0:
            return self._break()
        self._left -= 1
        if self._interrupted():
            response = self.answer.response("incomplete", self.delivered, "steered")
            return self._frames(Event({"type": "response.incomplete", "response": response}))
        event = self._events[self._at]
        self._at += 1
        if event.done is not None:
            self._deliver(event.done)
        self._between = event.done is not None or self._at < 3
        return self._frames(event)

    def _deliver(self, out: Out) -> None:
        outs = self.answer.outs
        if self.steers and not self.calling and out.kind != "function_call":
            outs = outs[: len(self.delivered) + 1]  # nothing comes after it any more
        self.simulator.deliver(self.answer, out, outs)
        self.delivered.append(out)

    def _frames(self, event: Event) -> list[dict[str, Any] | str]:
        frames: list[dict[str, Any] | str] = [self._count(event.data)]
        if event.kind in _TERMINAL:
            self.finished = True
            response = event.data["response"]
            self.simulator.keep(self.answer, self.delivered, response)
            if self.calling:
                frames += [self._count(pending(one, self.delivered)) for one in self.steers]
        if self.simulator.row.extras and event.kind in _EXTRAS:
            extra = _EXTRAS[event.kind]
            frames.insert(0 if event.kind == "response.created" else len(frames), extra)
        return frames

    def _interrupted(self) -> bool:
        """Steering ends the response here: between two items, while no result is owed."""
        more = 2 <= self._at < len(self._events) - 1
        return bool(self.steers) and self._between and more and not self.calling

    def _count(self, data: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        return numbered(data, self._number - 1)

    def _with_audit(self, events: list[Event]) -> list[Event]:
        """A socket has no headers for each answer: the audit goes into the metadata."""
        last = events[-1].data
        metadata = {
            **last["response"]["metadata"],
            "x-sim-thoughts": str(self.answer.exchange.audit),
        }
        response = {**last["response"], "metadata": metadata}
        return [*events[:-1], Event({**last, "response": response})]

    def _budget(self) -> int:
        """How many events arrive before a fault; never reached when there is none."""
        fault = self.answer.fault
        if fault is None or fault.status is not None:
            return -1
        return len(self._events) // 2 if fault.number is None else fault.number

    def _break(self) -> list[dict[str, Any] | str]:
        self._left = -1
        fault = self.answer.fault
        if fault is not None and fault.kind == "garbage":
            return [GARBAGE]
        self.finished = True
        self.stalled = fault is not None and fault.kind == "stall"
        self.dropped = not self.stalled
        return []
