"""The watcher: what the walk and the store say becomes numbers, one log line and a span.

`Telemetry` is told when thoughts were put back, when a refusal was healed, how a request ended,
and what could not be written. It looks at rulings, counts and times, never at a body. A line is
put together only if somebody will see it.
"""

import logging
import re
from collections.abc import Sequence
from typing import Any

from msgspec.structs import astuple

from thoughtline.clock import Clock, SystemClock
from thoughtline.errors import Unavailable
from thoughtline.events import TurnEnded, Usage
from thoughtline.exchanges import Exchange
from thoughtline.parts import Thought
from thoughtline.stores.base import Batch
from thoughtline.telemetry.logs import Log, open_log
from thoughtline.telemetry.metrics import Metrics
from thoughtline.telemetry.tallies import Counts, by_word, runs, tally
from thoughtline.telemetry.traces import Traces
from thoughtline.wires.answers import Sent

_LEFT = 499
_LONGEST = 200
_TOKENS = Usage.__struct_fields__
_KEY = re.compile(r"(?i)([?&][^=&\s]*(?:key|token|secret)[^=&\s]*=)[^&\s]+")


class Telemetry:
    """Watches; implements the walk's `Observer` and the hot store's `Watcher`."""

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
        self._before = Counts()  # the last reset
        self._traces = traces
        self._clock = clock or SystemClock()
        self._told = traces is not None or self.log.is_enabled_for(logging.INFO)

    # -- the walk --------------------------------------------------------------------------------

    def replayed(self, exchange: Exchange) -> None:
        """It was decided which thoughts go back; the request leaves now."""
        metrics, provider = self.metrics, exchange.target.origin.provider
        metrics.added.observe((self._clock.mono() - exchange.received) / 1e9)
        for kind, count in runs(exchange.restoration.rulings):
            metrics.outputs[provider, kind] += count
        if exchange.gap:
            self.log.warning("gap", **_place(exchange), why=scrub(exchange.gap))

    @property
    def counts(self) -> Counts:
        """How the cache of thoughts has done, since the start or the last `reset`."""
        return self._counted().since(self._before)

    def reset(self) -> None:
        """Begin again with `counts`."""
        self._before = self._counted()

    def _counted(self) -> Counts:
        return Counts.of((kind, count) for (_, kind), count in self.metrics.outputs.items())

    def healed(self, exchange: Exchange, remedy: str, *, changed: bool) -> None:
        """A refusal was understood; `changed`: the body could be changed and goes out again."""
        provider = exchange.target.origin.provider
        self.metrics.healed[provider, str(remedy), "yes" if changed else "no"] += 1
        self.log.info("healed", **_place(exchange), remedy=str(remedy), changed=changed)

    def ended(self, exchange: Exchange, status: int, reason: str) -> None:
        """The response is over, or the client is gone."""
        metrics, capture, target = self.metrics, exchange.capture, exchange.target
        end = capture.ended if status in (200, _LEFT) else None
        outcome = end.outcome if end else _outcome(status)
        provider, thoughts = target.origin.provider, capture.thoughts
        metrics.requests[target.name, target.origin.dialect, status, outcome] += 1
        for thought in thoughts:
            if (seconds := duration(thought)) is not None:
                metrics.thinking.observe(seconds, provider)
        if end is not None and end.usage is not None:
            for kind, amount in zip(_TOKENS, astuple(end.usage), strict=True):
                if amount is not None:
                    metrics.tokens[provider, kind] += amount
        if self._told:
            facts: dict[str, Any] = {"status": status, "outcome": str(outcome)}
            if reason:  # in our words: what a provider says may quote what it was sent
                facts["reason"] = scrub(reason)
            self._tell(exchange, facts, end, thoughts)

    def _tell(
        self,
        exchange: Exchange,
        facts: dict[str, Any],
        end: TurnEnded | None,
        thoughts: Sequence[Thought],
    ) -> None:
        now = self._clock.mono()
        known = [seconds for t in thoughts if (seconds := duration(t)) is not None]
        facts = {
            **facts,
            **_ids(exchange),
            **_place(exchange),
            "stream": exchange.request.stream,
            **by_word(tally(runs(exchange.restoration.rulings))),
            "thoughts": len(thoughts),
            **({"thought_seconds": round(sum(known), 3)} if known else {}),
            **_usage(end),
            "seconds": round((now - exchange.received) / 1e9, 4),
            "added_seconds": round((exchange.departed - exchange.received) / 1e9, 6),
        }
        bad = facts["status"] >= 500 or exchange.lapse
        log = self.log.warning if bad else self.log.info
        log("request", **facts)
        if self._traces is not None:
            self._trace(exchange, facts, end, now)

    def _trace(
        self, exchange: Exchange, facts: dict[str, Any], end: TurnEnded | None, now: int
    ) -> None:
        assert self._traces is not None  # noqa: S101 (said by the caller)
        if end is not None:
            facts |= {"served": end.model, "response": end.response}
        if facts["status"] != 200:
            facts["failure"] = str(facts["status"])
        elif facts["outcome"] in ("failed", "aborted"):
            facts["failure"] = facts["outcome"]
        wall = int(self._clock.wall() * 1e9)
        self._traces.ended(facts, began=wall - (now - exchange.received), ended=wall)

    def passed(self, upstream: str, dialect: str, status: int) -> None:
        """A request without a history went through untouched."""
        self.metrics.requests[upstream, dialect, status, "passed"] += 1
        self.log.info(
            "request", upstream=upstream, dialect=dialect, status=status, outcome="passed"
        )

    def refused(self, upstream: str, dialect: str, status: int, code: str) -> None:
        """We answered ourselves: `upstream` only where it is one of ours."""
        self.metrics.requests[upstream, dialect, status, "refused"] += 1
        log = self.log.warning if status >= 500 else self.log.info
        log(
            "request",
            upstream=upstream,
            dialect=dialect,
            status=status,
            outcome="refused",
            reason=code,
        )

    def sent(self, upstream: str, sent: Sent) -> None:
        """A request of a WebSocket's client went out: whole or continued, and what that cost."""
        metrics, reason = self.metrics, str(sent.plan.reason)
        metrics.wire_requests[upstream, sent.transport, reason] += 1
        metrics.wire_bytes[upstream, "sent"] += sent.size
        metrics.wire_bytes[upstream, "spared"] += max(0, sent.whole - sent.size)

    # -- the store -------------------------------------------------------------------------------

    def lost(self, exchange: Exchange, error: Exception) -> None:
        """A turn was not written: it waits, or the store will never take it."""
        fate = "postponed" if isinstance(error, Unavailable) else "lost"
        self.metrics.unwritten[fate,] += 1
        self.log.warning("unwritten", **_ids(exchange), fate=fate, why=scrub(str(error)))

    def dropped(self, batch: Batch, why: str) -> None:
        """A turn that waited for the store will not be written any more."""
        self.metrics.unwritten["lost",] += 1
        self.log.error("unwritten", session=batch.session, fate="lost", why=scrub(why))

    def committed(self, seconds: float) -> None:
        """The store took this long to commit a turn."""
        self.metrics.commit.observe(seconds)

    async def close(self) -> None:
        """Send what is waiting."""
        if self._traces is not None:
            await self._traces.close()


def _ids(exchange: Exchange) -> dict[str, Any]:
    return {"session": exchange.session, "turn": exchange.turn, "tenant": exchange.tenant}


def _place(exchange: Exchange) -> dict[str, Any]:
    return {
        "upstream": exchange.target.name,
        "provider": exchange.target.origin.provider,
        "dialect": exchange.dialect.name,
        "model": exchange.request.model[:_LONGEST],
    }


def _outcome(status: int) -> str:
    if status == _LEFT:
        return "aborted"
    return "refused" if 400 <= status < 500 else "failed"


def _usage(end: TurnEnded | None) -> dict[str, int]:
    if end is None or end.usage is None:
        return {}
    usage = end.usage
    named = (
        ("input_tokens", usage.input),
        ("output_tokens", usage.output),
        ("reasoning_tokens", usage.reasoning),
        ("cached_tokens", usage.cached),
    )
    return {name: amount for name, amount in named if amount is not None}


def duration(thought: Thought) -> float | None:
    """How long a thought took, in seconds; None when that is not known, or it was cut off."""
    timing = thought.timing
    if timing is None or timing.aborted:
        return None
    start = timing.first if timing.opened is None else timing.opened
    stop = timing.last if timing.closed is None else timing.closed
    return (stop - start) / 1e9 if start is not None and stop is not None else None


def scrub(text: str) -> str:
    """A reason without what looks like a key in a URL, and not without end."""
    return _KEY.sub(r"\1***", text)[:_LONGEST]
