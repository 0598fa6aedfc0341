"""The rows of `/api/requests`: one for each request, and what people look for among them."""

from msgspec import Struct
from msgspec.structs import asdict

from thoughtline.gateway.pages.page import ANONYMOUS
from thoughtline.inspector.advice import advice
from thoughtline.inspector.outline import SessionOutline, TurnOutline
from thoughtline.inspector.sessions import RUNNING
from thoughtline.inspector.shapes import DecisionCounts, UsageShape
from thoughtline.inspector.spending import turn_cost
from thoughtline.log.decisions import count_words
from thoughtline.log.events import RequestFailed
from thoughtline.log.titles import title_of
from thoughtline.log.turns import Turn
from thoughtline.providers.prices import PriceTable
from thoughtline.stores.base import SessionSummary

CLIENT_LEFT = 499
FILTERS = ("failed", "running", "missed", "tied", "dropped", "thinking_off", "passed")


class RequestRow(Struct, frozen=True, kw_only=True, rename="camel"):
    """One request."""

    id: str  # of the turn, or as `x-thoughtline-request` names it
    at: float
    outcome: str  # completed, failed, capped, aborted, running, refused or passed
    status: int | None  # what the client was told; null: nothing yet
    reason: str = ""  # in the provider's own words, or in the gateway's
    code: str = ""  # of the gateway's error; empty: the provider's own answer
    advice: str = ""  # what to do about it
    method: str = ""
    path: str = ""
    upstream: str = ""
    provider: str = ""
    dialect: str = ""
    model: str = ""
    asked: str = ""  # the model as asked for, where that is another name
    client: str = ""  # the dialect of the client, where the upstream speaks another
    tenant: str
    session: str | None = None
    turn: str | None = None  # of a failed request: the one that it went on from
    title: str = ""  # of its session
    calls: tuple[str, ...] = ()  # names of the tools that the model called
    replay: dict[str, int] = {}  # outputs by the words of the replay header
    thinking_off: bool = False
    corrected: bool = False  # it was sent once more
    seconds: float | None = None
    usage: UsageShape | None = None
    cost: float | None = None  # US dollars; null: not known
    cost_approximate: bool = False  # by the price of the model's family


class RequestFilter(Struct, frozen=True, kw_only=True):
    """Conditions on requests; None matches everything."""

    has: str | None = None
    provider: str | None = None
    model: str | None = None
    session: str | None = None

    def matches(self, row: RequestRow) -> bool:
        """Whether a request fulfils them all."""
        return (
            self.provider in {None, row.provider}
            and self.model in {None, row.model, row.asked}
            and self.session in {None, row.session}
            and (self.has is None or has(row, self.has))
        )


def has(row: RequestRow, what: str) -> bool:
    """Whether a request has something that people look for."""
    if what == "failed":
        return row.outcome in ("failed", "refused")
    if what == "thinking_off":
        return row.thinking_off
    if what in (RUNNING, "passed"):
        return row.outcome == what
    return row.replay.get(what, 0) > 0


def turn_row(
    turn: TurnOutline, summary: SessionSummary, outline: SessionOutline, prices: PriceTable
) -> RequestRow:
    """Return the row of a turn of the log."""
    outcome = turn.outcome or RUNNING
    left = outcome == "aborted" and turn.reason == "the client left"
    status = None if turn.outcome is None else CLIENT_LEFT if left else 200
    usage = UsageShape(**asdict(turn.usage)) if turn.usage is not None else None
    cost = turn_cost(turn.provider, turn.model, turn.endpoint, turn.usage, prices)
    return RequestRow(
        id=turn.id,
        at=turn.started,
        outcome=outcome,
        status=status,
        reason=turn.reason,
        advice=advice(502 if outcome == "failed" else status or 200, "", turn.reason),
        provider=turn.provider,
        dialect=turn.dialect,
        model=turn.model,
        asked=turn.asked if turn.asked != turn.model else "",
        client=turn.client,
        tenant=summary.tenant or ANONYMOUS,
        session=summary.session,
        turn=turn.id,
        title=outline.title,
        calls=turn.calls,
        replay=_words(turn.counts),
        thinking_off=turn.thinking_off,
        seconds=None if turn.ended is None else max(0.0, turn.ended - turn.started),
        usage=usage,
        cost=cost.amount,
        cost_approximate=cost.approximate,
    )


_NAMES = {"restored": "restored", "replaced": "corrected", "exact": "exact"}
_SAME = ("placeholder", "dropped", "missed", "tied")


def _words(counts: DecisionCounts) -> dict[str, int]:
    """The counts of a turn in the words of the replay header; no zeros."""
    named = {word: getattr(counts, name) for name, word in _NAMES.items()}
    named |= {name: getattr(counts, name) for name in _SAME}
    return {word: count for word, count in named.items() if count}


def running_row(tenant: str, turn: Turn) -> RequestRow:
    """Return the row of a turn that runs."""
    target = turn.target
    counts = count_words(turn.replay)
    return RequestRow(
        id=turn.id,
        at=turn.started,
        outcome=RUNNING,
        status=None,
        provider=target.provider if target else "",
        dialect=target.dialect if target else "",
        model=target.model if target else "",
        tenant=tenant or ANONYMOUS,
        session=turn.session,
        turn=turn.id,
        title=title_of(turn.input),
        calls=tuple(call.name for call in turn.calls),
        replay={word.value: n for word, n in counts.items() if n and word.value != "absent"},
        thinking_off=turn.thinking_off,
    )


def failed_row(id: str, at: float, body: RequestFailed) -> RequestRow:
    """Return the row of a request that no model answered: refused, or passed through."""
    target = body.target
    failed = body.status >= 400
    return RequestRow(
        id=id,
        at=at,
        outcome="refused" if failed else "passed",
        status=body.status,
        reason=body.reason,
        code=body.code,
        advice=advice(body.status, body.code, body.reason),
        method=body.method,
        path=body.path,
        upstream=body.upstream,
        provider=target.provider if target else "",
        dialect=target.dialect if target else "",
        model=(target.asked or target.model) if target else "",
        tenant=body.tenant or ANONYMOUS,
        session=body.session or None,
        turn=body.turn or None,
        replay={word: count for word, count in body.replay.items() if word != "absent"},
        thinking_off=body.thinking_off,
        corrected=body.corrected,
        seconds=body.seconds,
    )
