"""Prometheus metrics, in a registry of their own.

A request only adds to a sum: names, labels and buckets are put together by a scrape.
Labels are names from the settings, enums and statuses, so that no client can make up new series.
With several workers every series has a `worker` label, because a scrape reaches one of them.
A replay decision is counted under one word (`log.decisions.ReplayWord`).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any

from msgspec import Struct
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric

import thoughtline
from thoughtline.log.decisions import Action, ReplayDecision, example

ADDED_BUCKETS = (
    *(0.00005, 0.0001, 0.0002, 0.0003, 0.0005, 0.00075, 0.001, 0.0015, 0.002, 0.003, 0.005),
    *(0.0075, 0.01, 0.02, 0.03, 0.05, 0.1, 0.5),
)
"""Buckets of added latency: fine between 50 µs and 50 ms, the range it is expected in."""

COMMIT_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
THOUGHT_BUCKETS = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200)
_NOT_WANTED = frozenset({"forbidden", "none", "had none"})
_SENT = frozenset({Action.RESTORED, Action.REPLACED})
_LOOKED_UP = _SENT | {Action.DROPPED, Action.PLACEHOLDER}


# -- replay decisions ----------------------------------------------------------------------------


class CacheCounts(Struct):
    """Hits and misses of the cache of thoughts."""

    hits: int = 0  # outputs that lacked their thought, and whose turn was found
    misses: int = 0  # outputs that lacked their thought, and whose turn was not found
    replays: int = 0  # hits whose thought went back

    def add(self, decision: ReplayDecision, count: int) -> None:
        """Add to the count of this kind of decision. What the client itself brings is neither."""
        action, wanted = decision.action, decision.reason not in _NOT_WANTED
        if decision.unmatched and not decision.unverified:
            self.misses += count
        elif decision.entry and wanted and action in _LOOKED_UP:
            self.hits += count
            self.replays += count if action in _SENT else 0

    @property
    def rate(self) -> str:
        """The percentage of look-ups after which a thought went back."""
        lookups = self.hits + self.misses
        return f"{100 * self.replays / lookups:.1f}%" if lookups else "0.0%"


# -- metrics -------------------------------------------------------------------------------------


class LabelledCounter(Counter[Any]):
    """A counter metric, by labels: `counter[labels] += 1`."""

    def __init__(self, name: str, about: str, labels: Sequence[str]) -> None:
        super().__init__()
        self._about = (name, about, labels)

    def collect(self) -> Iterator[Metric]:
        """The metric as Prometheus knows it."""
        name, about, labels = self._about
        family = CounterMetricFamily(name, about, labels=labels)
        for values, amount in list(self.labelled().items()):
            family.add_metric(list(map(str, values)), amount)
        yield family

    def labelled(self) -> "Counter[Any]":
        """The amounts by labels."""
        return self


class DecisionCounter(LabelledCounter):
    """Replay decisions by provider and kind; their labels are the provider, a word and a level."""

    def labelled(self) -> "Counter[Any]":
        counts: Counter[Any] = Counter()
        for (provider, kind), amount in self.items():
            counts[provider, example(kind).word, example(kind).level] += amount
        return counts

    def cached(self, before: "Counter[Any]") -> CacheCounts:
        """Hits and misses, without those that were counted before."""
        counts = CacheCounts()
        for (_, kind), amount in (self - before).items():
            counts.add(example(kind), amount)
        return counts


class Histogram:
    """A histogram metric: how many values fell into each bucket, and their sum."""

    def __init__(self, name: str, about: str, buckets: Sequence[float], label: str = "") -> None:
        self._about = (name, about, [label] if label else [])
        self._buckets = buckets
        self._counts: dict[str, list[float]] = {}  # by label; after the buckets comes the sum
        if not label:
            self._add_label("")

    def _add_label(self, label: str) -> list[float]:
        return self._counts.setdefault(label, [0.0] * (len(self._buckets) + 2))

    def observe(self, value: float, label: str = "") -> None:
        """Count a value."""
        counts = self._counts.get(label) or self._add_label(label)
        counts[bisect_left(self._buckets, value)] += 1
        counts[-1] += value

    def collect(self) -> Iterator[Metric]:
        """The metric as Prometheus knows it: each bucket includes those before it."""
        name, about, labels = self._about
        family = HistogramMetricFamily(name, about, labels=labels)
        ends = [*map(repr, map(float, self._buckets)), "+Inf"]
        for label, (*counts, total) in list(self._counts.items()):
            buckets = list(zip(ends, accumulate(counts), strict=True))
            family.add_metric([label] if labels else [], buckets, total)
        yield family


class Metrics:
    """All metrics of the gateway."""

    def __init__(self, *, worker: str = "") -> None:
        self.registry = CollectorRegistry()
        self._worker = worker
        self._own: list[LabelledCounter | Histogram] = []

        def counter(name: str, about: str, *labels: str) -> LabelledCounter:
            metric = LabelledCounter(f"thoughtline_{name}", about, labels)
            self._own.append(metric)
            return metric

        def histogram(
            name: str, about: str, buckets: Sequence[float], label: str = ""
        ) -> Histogram:
            metric = Histogram(f"thoughtline_{name}", about, buckets, label)
            self._own.append(metric)
            return metric

        self.requests = counter(
            "requests", "Requests that ended.", "upstream", "dialect", "status", "outcome"
        )
        self.decisions = DecisionCounter(
            "thoughtline_outputs",
            "Replay decisions about the thoughts of earlier outputs, by action and match level.",
            ("provider", "action", "rung"),
        )
        self._own.append(self.decisions)
        self.thinking_off = counter(
            "thinking_off",
            "Requests for which thinking was switched off, because a demanded thought is lost.",
            "provider",
        )
        self.unread = counter(
            "unread",
            "Thoughts that came back to their provider, and that the model did not get to see.",
            *("provider", "reason"),
        )
        self.histories = counter(
            "histories",
            "Histories of which the settled beginning was reused, or why the whole was walked.",
            *("walk", "why"),
        )
        self.recovered = counter(
            "healed",
            "Reasoning-related errors of providers for which a recovery strategy was found.",
            "provider",
            "remedy",
            "changed",
        )
        self.write_failures = counter(
            "unwritten", "Turns that could not be written: postponed, or lost.", "fate"
        )
        self.wire_requests = counter(
            "wire_requests",
            "Requests of WebSocket clients: continued, or why they were sent in full.",
            *("upstream", "transport", "reason"),
        )
        self.wire_bytes = counter(
            "wire_bytes",
            "Bytes of these that were sent, or spared by continuing.",
            "upstream",
            "kind",
        )
        self.tokens = counter("tokens", "Tokens as providers report them.", "provider", "kind")
        self.added_latency = histogram(
            "added_seconds",
            "Time from a request's last byte until it is sent upstream.",
            ADDED_BUCKETS,
        )
        self.commit_latency = histogram(
            "commit_seconds", "How long the store took to commit a turn.", COMMIT_BUCKETS
        )
        self.thought_seconds = histogram(
            "thought_seconds", "How long models thought.", THOUGHT_BUCKETS, "provider"
        )
        self._gauge("info", "This version; always 1.", lambda: 1.0, version=thoughtline.__version__)

    def _gauge(self, name: str, about: str, read: Callable[[], float], **labels: str) -> None:
        gauge = Gauge(f"thoughtline_{name}", about, list(labels), registry=self.registry)
        (gauge.labels(**labels) if labels else gauge).set_function(read)

    def add_gauges(
        self,
        *,
        streams: Callable[[], float],
        trouble: Callable[[], object],
        backlog: Callable[[], float],
        memory_entries: Callable[[], float],
    ) -> None:
        """Add gauges that are read by each scrape."""
        self._gauge("streams_open", "Responses under way.", streams)
        self._gauge(
            "store_trouble", "1 while the store does not answer.", lambda: float(bool(trouble()))
        )
        self._gauge("store_backlog", "Turns that wait for the store.", backlog)
        self._gauge("memory_entries", "Index entries held in memory.", memory_entries)

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        extra = {"worker": self._worker} if self._worker else {}
        own = chain.from_iterable(one.collect() for one in self._own)
        for metric in chain(own, self.registry.collect()):
            metric.samples = [
                sample._replace(labels=sample.labels | extra) for sample in metric.samples
            ]
            yield metric

    def page(self, accept: str = "") -> tuple[bytes, str]:
        """The page that Prometheus scrapes, and its content type."""
        encoder, kind = choose_encoder(accept)
        view: Any = self  # the encoders ask for nothing but `collect`
        return encoder(view), kind
