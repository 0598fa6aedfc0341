"""The proof that a request may be sent as a continuation: only what is new, after a response id.

What a server remembers of a conversation is its last full input and the items it returned: the
`Baseline`. A request may be cut down to what comes after it if everything else is as it was: all
other fields, endpoint, account and model, the branch of the log, and the beginning of the input,
by rolling hash. Then what the server puts together is the full request, and `plan` says so;
in all other cases the whole request goes out, and the plan has the reason. A baseline is made when
a response is complete, used once, and dropped when anything goes wrong. Pure: no I/O, no clock.
"""

from collections.abc import Container
from enum import StrEnum

from msgspec import Struct

from thoughtline.wires.chains import Chain
from thoughtline.wires.requests import Request


class Reason(StrEnum):
    """Why a request went out whole; `CONTINUED` is the one that did not."""

    CONTINUED = "continued"
    NO_BASELINE = "no_baseline"  # the first request
    FIELDS_CHANGED = "fields_changed"  # the detail names them
    GUARD_CHANGED = "guard_changed"  # another endpoint, account or model
    BRANCH_CHANGED = "branch_changed"  # the log goes on from somewhere else
    PREFIX_MISMATCH = "prefix_mismatch"  # the history was edited; the detail says at which item
    COMPACTION = "compaction"  # the history was replaced by its summary
    EMPTY_DELTA = "empty_delta"  # nothing new to say
    MISSING_RESPONSE_ID = "missing_response_id"
    MISSING_ITEMS = "missing_items"  # the server counts other items than it sent
    RECONNECTED = "reconnected"  # the connection broke, or was closed
    AGED = "aged"  # replaced before the server's limit
    SUSPENDED = "suspended"  # the machine slept
    CONNECTION_LIMIT = "connection_limit"  # the server's limit
    NOT_FOUND = "not_found"  # the server forgot
    ERROR = "error"  # the last response failed, or was cut short
    CANCELLED = "cancelled"  # the caller left before the end
    UNCOMMITTED = "uncommitted"  # complete, but the caller did not keep it
    LANE_UNAVAILABLE = "lane_unavailable"  # a fork, where the server knows no lanes
    SOURCE_ADVANCED = "source_advanced"  # a fork, but its source has gone on before
    UNAVAILABLE = "unavailable"  # no WebSocket for now: HTTP
    STATEFUL = "stateful"  # the caller goes on from a stored response by itself
    ASKED = "asked"  # the caller wants it whole


class Guard(Struct, frozen=True, kw_only=True):
    """Where a request goes: what must not change between a baseline and its continuation."""

    endpoint: str = ""
    account: str = ""  # a fingerprint, so that a renewed token of one account is no change
    model: str = ""


class Position(Struct, frozen=True, kw_only=True):
    """Where a request stands in the log. Without a log, leave the turns empty."""

    guard: Guard = Guard()
    turn: str = ""  # the turn that this request is: the head of the baseline it leads to
    head: str = ""  # the turn that it goes on from
    ancestors: Container[str] = frozenset()  # turns before that one
    whole: bool = False  # send everything, whatever the server remembers


class Baseline(Struct, frozen=True, kw_only=True):
    """What the server remembers, after a response that was complete."""

    generation: int  # the connection in whose memory it is
    response: str
    fields: dict[str, bytes]  # fingerprints of everything but the input
    guard: Guard
    head: str
    chain: Chain  # over the last full input and the items that the server returned
    warm: bool = False  # of a warm-up: nothing was answered yet, so nothing new is needed


class Plan(Struct, frozen=True, kw_only=True):
    """How a request goes out: from which item on, after which response, and why."""

    reason: Reason
    detail: str = ""
    since: int = 0
    previous: str = ""

    @property
    def full(self) -> bool:
        """Whether everything is sent."""
        return self.reason is not Reason.CONTINUED

    def __str__(self) -> str:
        return f"{self.reason}({self.detail})" if self.detail else str(self.reason)


def plan(
    request: Request,
    position: Position,
    baseline: Baseline | None,
    *,
    generation: int = 0,
    lost: Reason = Reason.NO_BASELINE,
) -> Plan:
    """Prove that the request continues the baseline, or say why not.

    Args:
        request: what is to be sent.
        position: where it stands.
        baseline: what the server remembers; None if nothing, for the reason `lost`.
        generation: the connection it would go over.
        lost: why there is no baseline, or none in this connection.
    """
    if request.stateful:
        return Plan(reason=Reason.STATEFUL)
    if position.whole:
        return Plan(reason=Reason.ASKED)
    if baseline is None or baseline.generation != generation:
        return Plan(reason=lost)
    if not baseline.response:
        return Plan(reason=Reason.MISSING_RESPONSE_ID)
    if baseline.guard != position.guard:
        return Plan(reason=Reason.GUARD_CHANGED, detail=_moved(baseline.guard, position.guard))
    if baseline.fields != request.fingerprints:
        changed = _changed(baseline.fields, request.fingerprints)
        return Plan(reason=Reason.FIELDS_CHANGED, detail=", ".join(changed))
    if baseline.head != position.head and baseline.head not in position.ancestors:
        return Plan(reason=Reason.BRANCH_CHANGED)
    if not baseline.chain.starts(request.chain):
        index = baseline.chain.parting(request.chain)
        if request.compacted(index):
            return Plan(reason=Reason.COMPACTION, detail=str(index))
        return Plan(reason=Reason.PREFIX_MISMATCH, detail=str(index))
    if baseline.chain.count == request.chain.count and not baseline.warm:
        return Plan(reason=Reason.EMPTY_DELTA)
    return Plan(reason=Reason.CONTINUED, since=baseline.chain.count, previous=baseline.response)


def _moved(before: Guard, now: Guard) -> str:
    names = Guard.__struct_fields__
    return ", ".join(name for name in names if getattr(before, name) != getattr(now, name))


def _changed(before: dict[str, bytes], now: dict[str, bytes]) -> list[str]:
    return sorted(name for name in before.keys() | now if before.get(name) != now.get(name))


class Continuation:
    """What one lane may go on from: at most one baseline, and why there is none."""

    __slots__ = ("_baseline", "_lost")

    def __init__(self, baseline: Baseline | None = None, lost: Reason = Reason.NO_BASELINE) -> None:
        self._baseline = baseline
        self._lost = lost

    @property
    def baseline(self) -> Baseline | None:
        """What the server remembers, for those who only look."""
        return self._baseline

    def plan(self, request: Request, position: Position, *, generation: int, ended: Reason) -> Plan:
        """Plan a request and let go of the baseline: it is used once, however that turns out.

        `ended` says why the connection before this one is no more.
        """
        baseline, lost = self._baseline, self._lost
        if baseline is not None and baseline.generation != generation:
            lost = ended
        self.drop(Reason.UNCOMMITTED)
        return plan(request, position, baseline, generation=generation, lost=lost)

    def drop(self, reason: Reason) -> None:
        """The server may have forgotten, or remember something else."""
        self._baseline, self._lost = None, reason

    def commit(self, baseline: Baseline) -> None:
        """A response is complete, and in the log."""
        self._baseline = baseline

    def branch(self) -> "Continuation":
        """The same to go on from, for a fork."""
        return Continuation(self._baseline, self._lost)


def completed(
    request: Request,
    position: Position,
    *,
    generation: int,
    response: str,
    items: list[bytes],
    warm: bool = False,
) -> Baseline:
    """The baseline after a complete response with these items."""
    return Baseline(
        generation=generation,
        response=response,
        fields=request.fingerprints,
        guard=position.guard,
        head=position.head if warm else position.turn,
        chain=request.chain.extend(items),
        warm=warm,
    )
