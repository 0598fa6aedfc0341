"""The proof that a request may be sent as a continuation: only new items, after a response id.

A server remembers of a conversation its last full input and the items that it returned: the
`Baseline`. A request may be cut down to the items after the baseline if nothing else changed: all
other fields, endpoint, account and model, the branch of the log, and the beginning of the input
(by rolling hash). Otherwise the full request is sent, and the plan gives the reason. A baseline is
made when a response is complete, used once, and dropped when anything goes wrong. Pure: no I/O.
"""

from collections.abc import Container
from enum import StrEnum

from msgspec import Struct

from thoughtline.log.parts import Origin
from thoughtline.wires.websocket.requests import ResponsesRequest, RollingHash


class SendReason(StrEnum):
    """Why a request was sent in full; `CONTINUED` if it was not."""

    CONTINUED = "continued"
    NO_BASELINE = "no_baseline"  # the first request
    FIELDS_CHANGED = "fields_changed"  # the detail names them
    DESTINATION_CHANGED = "guard_changed"  # another endpoint, account or model
    BRANCH_CHANGED = "branch_changed"  # the log continues from another turn
    PREFIX_MISMATCH = "prefix_mismatch"  # the history was edited; the detail says at which item
    COMPACTION = "compaction"  # the history was replaced by its summary
    EMPTY_DELTA = "empty_delta"  # there is no new item
    MISSING_RESPONSE_ID = "missing_response_id"
    MISSING_ITEMS = "missing_items"  # the server counts other items than it sent
    RECONNECTED = "reconnected"  # the connection broke, or was closed
    AGED = "aged"  # the connection was replaced before the server's limit
    SUSPENDED = "suspended"  # the machine slept
    CONNECTION_LIMIT = "connection_limit"  # the server's limit
    NOT_FOUND = "not_found"  # the server forgot the response
    ERROR = "error"  # the last response failed, or was cut short
    CANCELLED = "cancelled"  # the caller left before the end
    UNCOMMITTED = "uncommitted"  # complete, but the caller did not commit it
    STREAM_UNAVAILABLE = "lane_unavailable"  # a fork, where the server knows no streams
    SOURCE_ADVANCED = "source_advanced"  # a fork whose source sent its next request first
    UNAVAILABLE = "unavailable"  # no WebSocket for now: HTTP
    STATEFUL = "stateful"  # the caller itself continues a stored response
    ASKED = "asked"  # the caller wants a full send


class Destination(Struct, frozen=True, kw_only=True):
    """Where a request goes: must be the same for a baseline and its continuation."""

    endpoint: str = ""
    account: str = ""  # a fingerprint, so that a renewed token of one account is no change
    model: str = ""

    @classmethod
    def of(cls, origin: Origin) -> "Destination":
        """The destination of requests to an origin."""
        return cls(endpoint=origin.endpoint, account=origin.account, model=origin.model)


class LogPosition(Struct, frozen=True, kw_only=True):
    """Where a request stands in the log. Without a log, leave the turns empty."""

    destination: Destination = Destination()
    turn: str = ""  # the turn that this request begins
    parent: str = ""  # the turn that it continues
    ancestors: Container[str] = frozenset()  # the turns before that one
    full: bool = False  # send everything, whatever the server remembers


class Baseline(Struct, frozen=True, kw_only=True):
    """What the server remembers after a complete response."""

    generation: int  # the connection that remembers it
    response_id: str
    fields: dict[str, bytes]  # fingerprints of everything but the input
    destination: Destination
    turn: str
    rolling_hash: RollingHash  # over the last full input and the items that the server returned
    warm_up: bool = False  # nothing was answered yet, so a continuation needs no new item


class SendPlan(Struct, frozen=True, kw_only=True):
    """How a request is sent: from which item on, after which response, and why."""

    reason: SendReason
    detail: str = ""
    since: int = 0
    previous: str = ""

    @property
    def full(self) -> bool:
        """Whether everything is sent."""
        return self.reason is not SendReason.CONTINUED

    def __str__(self) -> str:
        return f"{self.reason}({self.detail})" if self.detail else str(self.reason)


def plan_send(
    request: ResponsesRequest,
    position: LogPosition,
    baseline: Baseline | None,
    *,
    generation: int = 0,
    lost: SendReason = SendReason.NO_BASELINE,
) -> SendPlan:
    """Prove that the request continues the baseline, or give the reason why it does not.

    Args:
        request: what is to be sent.
        position: where the request stands in the log.
        baseline: what the server remembers; None if nothing, for the reason `lost`.
        generation: the connection that the request would be sent over.
        lost: why there is no baseline, or none for this connection.
    """
    if request.stateful:
        return SendPlan(reason=SendReason.STATEFUL)
    if position.full:
        return SendPlan(reason=SendReason.ASKED)
    if baseline is None or baseline.generation != generation:
        return SendPlan(reason=lost)
    if not baseline.response_id:
        return SendPlan(reason=SendReason.MISSING_RESPONSE_ID)
    if baseline.destination != position.destination:
        changed = _changed_members(baseline.destination, position.destination)
        return SendPlan(reason=SendReason.DESTINATION_CHANGED, detail=changed)
    if baseline.fields != request.fingerprints:
        changed = _changed_fields(baseline.fields, request.fingerprints)
        return SendPlan(reason=SendReason.FIELDS_CHANGED, detail=changed)
    if baseline.turn != position.parent and baseline.turn not in position.ancestors:
        return SendPlan(reason=SendReason.BRANCH_CHANGED)
    known = baseline.rolling_hash
    if not known.is_prefix_of(request.rolling_hash):
        index = known.first_difference(request.rolling_hash)
        compacted = request.compacted(index)
        reason = SendReason.COMPACTION if compacted else SendReason.PREFIX_MISMATCH
        return SendPlan(reason=reason, detail=str(index))
    if known.count == request.rolling_hash.count and not baseline.warm_up:
        return SendPlan(reason=SendReason.EMPTY_DELTA)
    return SendPlan(reason=SendReason.CONTINUED, since=known.count, previous=baseline.response_id)


def _changed_members(before: Destination, now: Destination) -> str:
    names = Destination.__struct_fields__
    return ", ".join(name for name in names if getattr(before, name) != getattr(now, name))


def _changed_fields(before: dict[str, bytes], now: dict[str, bytes]) -> str:
    names = sorted(before.keys() | now)
    return ", ".join(name for name in names if before.get(name) != now.get(name))


class Continuation:
    """What one stream may continue: at most one baseline, or the reason why there is none."""

    __slots__ = ("_lost", "baseline")

    def __init__(
        self, baseline: Baseline | None = None, lost: SendReason = SendReason.NO_BASELINE
    ) -> None:
        self.baseline = baseline
        self._lost = lost

    def plan(
        self,
        request: ResponsesRequest,
        position: LogPosition,
        *,
        generation: int,
        ended: SendReason,
    ) -> SendPlan:
        """Plan a request and drop the baseline: it is used once, whatever comes of it.

        `ended` says why the connection before this one ended.
        """
        baseline, lost = self.baseline, self._lost
        if baseline is not None and baseline.generation != generation:
            lost = ended
        self.drop(SendReason.UNCOMMITTED)
        return plan_send(request, position, baseline, generation=generation, lost=lost)

    def drop(self, reason: SendReason) -> None:
        """Forget the baseline: the server may have forgotten it, or remember something else."""
        self.baseline, self._lost = None, reason

    def commit(
        self,
        request: ResponsesRequest,
        position: LogPosition,
        *,
        generation: int,
        response_id: str,
        items: list[bytes],
        warm_up: bool = False,
    ) -> None:
        """Allow the next request to continue a response with these items: it is complete."""
        self.baseline = Baseline(
            generation=generation,
            response_id=response_id,
            fields=request.fingerprints,
            destination=position.destination,
            turn=position.parent if warm_up else position.turn,
            rolling_hash=request.rolling_hash.extend(items),
            warm_up=warm_up,
        )

    def branch(self) -> "Continuation":
        """A copy for a fork, which may continue the same baseline."""
        return Continuation(self.baseline, self._lost)
