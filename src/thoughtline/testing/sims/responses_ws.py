"""The Responses API over a WebSocket: `response.create` frames in, events out.

A `ResponsesSocket` is one connection without the socket. `receive` takes a frame and gives all the
frames it leads to; `take` and `step` do the same little by little, so that lanes interleave and a
response can be steered. `app` runs one on a server. The rules are those of
developers.openai.com/api/docs/guides/websocket-mode: each lane remembers its latest response and
nothing else, a continuation that fails makes it forget, and after 60 minutes it is over.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from thoughtline.testing.sims.problems import Problem
from thoughtline.testing.sims.responses_answer import envelope, numbered
from thoughtline.testing.sims.responses_flight import DROPPED, Flight
from thoughtline.testing.sims.responses_input import Create, Item, choose, document, missing, read
from thoughtline.testing.sims.responses_rows import NO_RESPONSE
from thoughtline.testing.sims.responses_steer import FAMILY, MOST_PENDING, Steer, failed, fault_of
from thoughtline.testing.sims.spelling import write
from thoughtline.testing.sims.values import Request

if TYPE_CHECKING:
    from thoughtline.testing.sims.responses import ResponsesSimulator

Frame: TypeAlias = dict[str, Any] | str

LIFETIME = 60 * 60.0
MOST_IN_FLIGHT = 16
MOST_LANES = 32
GOING_AWAY = 1001

_LANE = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_BAD_LANE = (
    "The 'stream_id' field must be a non-empty string with at most 256 characters and may only"
    " contain letters, numbers, underscores, hyphens, and periods."
)
_LANES_FULL = (
    "This WebSocket connection has reached its maximum number of distinct stream IDs (32). Reuse an"
    " existing stream_id or open a new WebSocket connection."
)
_EXPIRED = (
    "Responses websocket connection limit reached (60 minutes). Create a new websocket connection"
    " to continue."
)


class Latest(NamedTuple):
    """What a lane remembers."""

    id: str
    items: tuple[Item, ...]


class Lane:
    """Requests that run one after the other."""

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.queue: deque[bytes] = deque()
        self.flight: Flight | None = None
        self.latest: Latest | None = None
        self.waiting: dict[str, list[Steer]] = {}
        """Accepted input by the response that stopped for the results of tools."""


class ResponsesSocket:
    """One connection, with the memory that dies with it."""

    def __init__(
        self,
        simulator: ResponsesSimulator,
        request: Request,
        *,
        clock: Callable[[], float] | None = None,
        lanes: bool | None = None,
    ) -> None:
        self.simulator = simulator
        self.request = request
        self.clock = clock or simulator.clock
        self.multiplexed = simulator.lanes if lanes is None else lanes
        self.lanes: dict[str | None, Lane] = {None: Lane(None)}
        self.opened = self.clock()
        self._closed: int | None = None
        self._order: deque[Lane] = deque()
        """A lane for each queued request, in the order they came."""

    @property
    def close_code(self) -> int | None:
        """Set once the server has closed the connection."""
        return self._closed

    @property
    def remaining(self) -> float:
        """Seconds until the connection has to end."""
        return max(0.0, self.opened + LIFETIME - self.clock())

    @property
    def idle(self) -> bool:
        """Nothing will happen until the client sends something."""
        return not self._order and not any(self._flights())

    def receive(self, text: str | bytes) -> list[str]:
        """Take one frame and give all the frames it leads to."""
        frames = self.take(text)
        while not self.idle and self._closed is None:
            frames += self.step()
        return frames

    def take(self, text: str | bytes) -> list[str]:
        """Take one frame; gives only what is said about it at once."""
        if self._closed is not None:
            return []
        if self.remaining <= 0:
            return self.expire()
        raw = text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text)
        lane: Lane | None = None
        try:
            body = document(raw)
            lane = self._lane(body)
            if "type" not in body:
                raise missing("type")
            kinds = ("response.create", "response.steer")[: 2 if self.multiplexed else 1]
            choose(body["type"], kinds, "type")
        except Problem as problem:
            return [self._write(self._error(problem), lane)]
        if body["type"] == "response.steer":
            return self._steer(body)
        lane.queue.append(raw)
        self._order.append(lane)
        return []

    def step(self) -> list[str]:
        """Start what can start, and let every response in flight give one event."""
        if self._closed is not None:
            return []
        if self.remaining <= 0:
            return self.expire()
        frames: list[str] = []
        self._start(frames)
        for flight, lane in list(self._flights()):
            frames += [self._write(frame, lane) for frame in flight.step()]
            if flight.dropped:
                self._closed = DROPPED
                return frames
            if flight.finished and not flight.stalled:
                self._land(flight, lane)
        return frames

    def expire(self) -> list[str]:
        """End a connection that has lived for 60 minutes."""
        self._closed = GOING_AWAY
        problem = Problem(400, _EXPIRED, code="websocket_connection_limit_reached")
        frame = self._error(problem)
        del frame["error"]["param"]  # the documented frame has none
        return [self._write(frame, None)]

    # Lanes

    def _lane(self, body: dict[str, Any]) -> Lane:
        name = body.get("stream_id") if self.multiplexed else None
        if name is not None and not (isinstance(name, str) and _LANE.fullmatch(name)):
            raise Problem(400, _BAD_LANE, code="invalid_stream_id", param="stream_id")
        if name not in self.lanes:
            # The lane that does not exist is named in the answer all the same.
            if len(self.lanes) > MOST_LANES:
                raise _Unknown(name)
            self.lanes[name] = Lane(name)
        return self.lanes[name]

    def _flights(self) -> Iterator[tuple[Flight, Lane]]:
        for lane in self.lanes.values():
            if lane.flight is not None and not lane.flight.stalled:
                yield lane.flight, lane

    def _start(self, frames: list[str]) -> None:
        most = MOST_IN_FLIGHT if self.multiplexed else 1
        for lane in list(self._order):
            if sum(1 for _ in self._flights()) >= most:
                return
            if lane.flight is None:
                self._order.remove(lane)
                self._begin(lane, lane.queue.popleft(), frames)
            elif lane.flight.stalled:
                self._order.remove(lane)

    def _begin(self, lane: Lane, raw: bytes, frames: list[str]) -> None:
        """Start a response; only now its parent is looked up."""
        try:
            create = read(raw, socket=True, lanes=self.multiplexed)
            if create.body.get("background"):
                raise Problem(
                    400,
                    "Unsupported parameter: 'background' is not supported over a WebSocket.",
                    code="unsupported_parameter",
                    param="background",
                )
            self.simulator.demand(self.request, create, socket=True)
            waiting = lane.waiting.get(create.previous or "", [])
            added = tuple(item for steer in waiting for item in steer.items)
            create = msgspec.structs.replace(create, items=(*create.items, *added))
            memory = self._memory(lane, create)
            answer = self.simulator.serve(self.request._replace(body=raw), create, memory)
        except Problem as problem:
            frames.append(self._write(self._error(problem), lane))
            self._forget(lane, raw)
            return
        lane.waiting.pop(create.previous or "", None)
        lane.flight = Flight(self.simulator, answer, raw)

    def _memory(self, lane: Lane, create: Create) -> tuple[Item, ...]:
        """The conversation up to the parent: from this lane, another one, or the storage."""
        if not create.previous:
            return ()
        for one in (lane, *self.lanes.values()):
            if one.latest is not None and one.latest.id == create.previous:
                return one.latest.items
        if create.store:
            return self.simulator.recall(self.request, create.previous)
        raise Problem(
            400,
            NO_RESPONSE.format(id=create.previous),
            code="previous_response_not_found",
            param="previous_response_id",
        )

    def _forget(self, lane: Lane, raw: bytes) -> None:
        """A continuation in the same lane failed: its parent is gone; another lane's stays."""
        parent = document(raw).get("previous_response_id")
        if lane.latest is not None and lane.latest.id == parent:
            lane.latest = None

    def _land(self, flight: Flight, lane: Lane) -> None:
        lane.flight = None
        answer = flight.answer
        lane.latest = Latest(answer.id, answer.remembered(flight.delivered))
        if flight.steers and flight.calling:
            lane.waiting = {answer.id: flight.steers}
        elif flight.steers:
            given = [item.value for steer in flight.steers for item in steer.items]
            body = {**answer.create.body, "previous_response_id": answer.id, "input": given}
            lane.queue.appendleft(write(body))
            self._order.appendleft(lane)

    # Steering

    def _steer(self, body: dict[str, Any]) -> list[str]:
        parent = body.get("previous_response_id")
        found = [(f, lane) for f, lane in self._flights() if f.answer.id == parent]
        flight, lane = found[0] if found else (None, None)
        code, message = self._refusal(body, flight)
        if flight is None or code:
            frame = numbered(failed(body, code, message), 0)
            return [self._write(frame, lane)]
        name = self.simulator.mac("steer", flight.answer.id, str(len(flight.steers))).hex()[:32]
        steer = Steer(f"steer_{name}", flight.answer.id, body["input"])
        return [self._write(flight.steer(steer), lane)]

    def _refusal(self, body: dict[str, Any], flight: Flight | None) -> tuple[str, str]:
        fault = fault_of(body)
        if fault:
            return "invalid_input", fault
        if flight is None:
            parent = body["previous_response_id"]
            if any(one.latest and one.latest.id == parent for one in self.lanes.values()):
                return "response_already_completed", f"Response '{parent}' has completed."
            return "response_not_found", f"Response '{parent}' is not active on this connection."
        if not flight.answer.create.model.startswith(FAMILY):
            return "steering_not_supported", "This model does not support steering."
        if len(flight.steers) >= MOST_PENDING:
            return "too_many_pending_steers", "Too much steering input is pending."
        return "", ""

    # Frames

    def _error(self, problem: Problem) -> dict[str, Any]:
        status, message = problem.status, problem.message
        kind = None if problem.kind == "detail" else problem.kind  # a shape that frames do not have
        told = Problem(status, message, kind=kind, code=problem.code, param=problem.param)
        body = envelope("openai", told)
        frame: dict[str, Any] = {"type": "error", "status": status, **body}
        if isinstance(problem, _Unknown):
            frame["stream_id"] = problem.lane
        return frame

    def _write(self, frame: Frame, lane: Lane | None) -> str:
        if isinstance(frame, str):
            return frame
        if lane is not None and lane.name is not None:
            frame = {**frame, "stream_id": lane.name}
        return write(frame, escaped=self.simulator.escaped).decode()


class _Unknown(Problem):
    """One lane too many."""

    def __init__(self, lane: str | None) -> None:
        code = "websocket_stream_limit_reached"
        super().__init__(400, _LANES_FULL, code=code, param="stream_id")
        self.lane = lane
