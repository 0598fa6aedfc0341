"""`Telemetry`: turns what proxy and store report into metrics, log lines and spans.

It reads decisions, counts and times, never a body. A log line is put together only if the log's
level lets it through.
"""

import logging
from collections import Counter
from typing import Any

from msgspec.structs import astuple

from thoughtline.clock import Clock, SystemClock
from thoughtline.engine.decision import RequestDecision
from thoughtline.engine.exchange import Exchange
from thoughtline.engine.recording import Recording
from thoughtline.errors import Unavailable
from thoughtline.gateway.settings import mask
from thoughtline.gateway.telemetry.logs import Log, open_log
from thoughtline.gateway.telemetry.metrics import CacheCounts, Metrics
from thoughtline.gateway.telemetry.traces import Traces
from thoughtline.log.decisions import HEADER_ORDER, word_counts
from thoughtline.log.durations import OutputTiming, output_timing
from thoughtline.log.events import TurnEnded
from thoughtline.log.usage import Usage
from thoughtline.stores.base import Batch
from thoughtline.wires.websocket.response import SentRequest

_CLIENT_CLOSED = 499
_MAX_LENGTH = 200
_TOKENS = Usage.__struct_fields__


class Telemetry:
    """Implements the proxy's `GatewayObserver` and the cached store's observer."""

    def __init__(
        self,
        *,
        log: Log | None = None,
        metrics: Metrics | None = None,
        traces: Traces | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.log = log or open_log()
        self.metrics = metrics or Metrics()
        self._before: Counter[Any] = Counter()  # decisions at the last `reset`
        self._traces = traces
        self._clock = clock or SystemClock()
        self._reports_requests = traces is not None or self.log.is_enabled_for(logging.INFO)

    # -- the proxy -------------------------------------------------------------------------------

    def replayed(self, exchange: Exchange) -> None:
        """The replay decisions are made, and the request goes upstream now."""
        metrics, decision = self.metrics, exchange.decision
        plan, provider = decision.replay_plan, decision.target.origin.provider
        metrics.added_latency.observe((self._clock.mono() - exchange.incoming.received) / 1e9)
        for kind, count in plan.kinds().items():
            metrics.decisions[provider, kind] += count
        if plan.fields:
            metrics.thinking_off[provider,] += 1
        whole = exchange.walked_whole
        metrics.histories["whole" if whole else "reused", whole or ""] += 1
        if decision.lookup_error:
            self.log.warning(
                "lookup_failed", **_place(exchange), reason=scrub(decision.lookup_error)
            )

    @property
    def counts(self) -> CacheCounts:
        """Hits and misses since the start or the last `reset`."""
        return self.metrics.decisions.cached(self._before)

    def reset(self) -> None:
        """Set `counts` to zero."""
        self._before = Counter(self.metrics.decisions)

    def recovered(self, exchange: Exchange, strategy: str, *, changed: bool) -> None:
        """A strategy was found for a provider's error; `changed`: the request is sent again."""
        provider = exchange.decision.target.origin.provider
        self.metrics.recovered[provider, str(strategy), "yes" if changed else "no"] += 1
        self.log.info("recovered", **_place(exchange), strategy=str(strategy), changed=changed)

    def ended(self, exchange: Exchange, status: int, reason: str) -> None:
        """The response ended, or the client disconnected."""
        metrics, capture, target = (
            self.metrics,
            exchange.recording.capture,
            exchange.decision.target,
        )
        end = capture.ended if status in (200, _CLIENT_CLOSED) else None
        outcome = end.outcome if end else _outcome(status)
        provider, timing = target.origin.provider, output_timing(capture.output)
        metrics.requests[target.name, target.origin.dialect, status, outcome] += 1
        for seconds in timing.seconds:
            metrics.thought_seconds.observe(seconds, provider)
        for one in end.unread if end is not None else ():
            metrics.unread[provider, one.kind] += 1
        if end is not None and end.usage is not None:
            tokens = metrics.tokens
            for kind, amount in zip(_TOKENS, astuple(end.usage), strict=True):
                if amount is not None:
                    tokens[provider, kind] += amount
        if self._reports_requests:
            facts: dict[str, Any] = {"status": status, "outcome": str(outcome)}
            if reason:  # in the gateway's words: a provider's error may quote the request
                facts["reason"] = scrub(reason)
            self._report(exchange, facts, end, timing)

    def _report(
        self,
        exchange: Exchange,
        facts: dict[str, Any],
        end: TurnEnded | None,
        timing: OutputTiming,
    ) -> None:
        now = self._clock.mono()
        facts = {
            **facts,
            **_ids_of(exchange),
            **_place(exchange),
            "stream": exchange.incoming.request.stream,
            **_replay(exchange.decision),
            "thoughts": timing.thoughts,
            **({} if timing.total is None else {"thought_seconds": round(timing.total, 3)}),
            **({"unread": len(end.unread)} if end is not None and end.unread else {}),
            **_usage(end),
            "seconds": round((now - exchange.incoming.received) / 1e9, 4),
            "added_seconds": round(
                (exchange.recording.departed - exchange.incoming.received) / 1e9, 6
            ),
        }
        failed = facts["status"] >= 500 or exchange.recording.capture_error
        log = self.log.warning if failed else self.log.info
        log("request", **facts)
        if self._traces is not None:
            self._trace(exchange, facts, end, now)

    def _trace(
        self, exchange: Exchange, facts: dict[str, Any], end: TurnEnded | None, now: int
    ) -> None:
        assert self._traces is not None  # noqa: S101 (the caller checked it)
        if end is not None:
            facts |= {"served": end.model, "response": end.response}
        if facts["status"] != 200:
            facts["failure"] = str(facts["status"])
        elif facts["outcome"] in ("failed", "aborted"):
            facts["failure"] = facts["outcome"]
        wall = int(self._clock.wall() * 1e9)
        self._traces.ended(facts, began=wall - (now - exchange.incoming.received), ended=wall)

    def passed(self, upstream: str, dialect: str, status: int, request: str = "") -> None:
        """A request without a history passed through untouched; `request`: it failed."""
        self.metrics.requests[upstream, dialect, status, "passed"] += 1
        self.log.info(
            "request",
            upstream=upstream,
            dialect=dialect,
            status=status,
            outcome="passed",
            **({"request": request} if request else {}),
        )

    def refused(
        self, upstream: str, dialect: str, status: int, code: str, request: str = ""
    ) -> None:
        """The gateway answered with an error; `upstream` is empty where none was chosen."""
        self.metrics.requests[upstream, dialect, status, "refused"] += 1
        log = self.log.warning if status >= 500 else self.log.info
        log(
            "request",
            upstream=upstream,
            dialect=dialect,
            status=status,
            outcome="refused",
            reason=code,
            **({"request": request} if request else {}),
        )

    def sent(self, upstream: str, sent: SentRequest) -> None:
        """A request of a WebSocket client went upstream: continued, or in full."""
        metrics, reason = self.metrics, str(sent.plan.reason)
        metrics.wire_requests[upstream, sent.transport, reason] += 1
        metrics.wire_bytes[upstream, "sent"] += sent.size
        metrics.wire_bytes[upstream, "spared"] += max(0, sent.full_size - sent.size)

    # -- the store -------------------------------------------------------------------------------

    def lost(self, recording: Recording, error: Exception) -> None:
        """A turn could not be written: it waits for the store (`postponed`), or is lost."""
        fate = "postponed" if isinstance(error, Unavailable) else "lost"
        self.metrics.write_failures[fate,] += 1
        log = self.log.warning if fate == "postponed" else self.log.error
        log("write_failed", **_ids(recording), fate=fate, reason=scrub(str(error)))

    def dropped(self, batch: Batch, reason: str) -> None:
        """A turn that waited for the store will not be written any more."""
        self.metrics.write_failures["lost",] += 1
        self.log.error("write_failed", session=batch.session, fate="lost", reason=scrub(reason))

    def damaged(self, reason: str) -> None:
        """The store's file is damaged; said once."""
        self.log.error("store_damaged", reason=scrub(reason))

    def committed(self, seconds: float) -> None:
        """The store took this long to commit a turn."""
        self.metrics.commit_latency.observe(seconds)

    async def close(self) -> None:
        """Send the spans that wait to be sent."""
        if self._traces is not None:
            await self._traces.close()


def _ids(recording: Recording) -> dict[str, Any]:
    return {"session": recording.session, "turn": recording.turn, "tenant": recording.tenant}


def _ids_of(exchange: Exchange) -> dict[str, Any]:
    """Ids that the inspector's API can answer for: those of the turn, or of what failed."""
    if exchange.recording.finished and not exchange.recording.discarded:
        return _ids(exchange.recording)
    parent, request = exchange.decision.replay_plan.parent, exchange.failed_request
    return {
        **({"session": parent.session} if parent else {}),
        **({"request": request} if request else {}),
        "tenant": exchange.recording.tenant,
    }


def _place(exchange: Exchange) -> dict[str, Any]:
    return {
        "upstream": exchange.decision.target.name,
        "provider": exchange.decision.target.origin.provider,
        "dialect": exchange.decision.dialect.name,
        "model": exchange.decision.request.model[:_MAX_LENGTH],
    }


_WORDS = tuple(word.value for word in HEADER_ORDER)


def _replay(decision: RequestDecision) -> dict[str, Any]:
    """The counts of the replay header; words that did not occur are left out."""
    counts = zip(_WORDS, word_counts(decision.replay_plan.kinds()), strict=True)
    facts: dict[str, Any] = {word: count for word, count in counts if count}
    if (changed := decision.replay_plan.prefix_changed) is not None:
        facts["prefix_changed"] = changed + 1
    return facts | ({"thinking": "off"} if decision.replay_plan.thinking_off else {})


def _outcome(status: int) -> str:
    if status == _CLIENT_CLOSED:
        return "aborted"
    return "refused" if 400 <= status < 500 else "failed"


def _usage(end: TurnEnded | None) -> dict[str, int]:
    if end is None or end.usage is None:
        return {}
    named = zip(_TOKENS, astuple(end.usage), strict=True)
    return {f"{kind}_tokens": amount for kind, amount in named if amount is not None}


def scrub(text: str) -> str:
    """A reason without what looks like a credential in a URL, cut to a maximum length."""
    return mask(text)[:_MAX_LENGTH]
