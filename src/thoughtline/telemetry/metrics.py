"""Prometheus metrics, in a registry of their own.

On the hot path something is only added up: names, labels and buckets are put together when
somebody scrapes. Labels are names from the settings, enums and statuses, so that no client can make
up new series. With several workers every series says which one it is from, because a scrape
reaches only one of them.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric

import thoughtline
from thoughtline.telemetry.tallies import reported

ADDED = (
    *(0.00005, 0.0001, 0.0002, 0.0003, 0.0005, 0.00075, 0.001, 0.0015, 0.002, 0.003, 0.005),
    *(0.0075, 0.01, 0.02, 0.03, 0.05, 0.1, 0.5),
)
"""Buckets of added latency: fine between 50 µs and 50 ms, which is where it should be."""

COMMIT = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
THINKING = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200)


class Sums(Counter[Any]):
    """A counter's sums by their labels, or by what labels are made of: `sums[labels] += 1`."""

    def __init__(
        self,
        name: str,
        about: str,
        labels: Sequence[str],
        read: Callable[[Any], Iterable[str]] | None = None,
    ) -> None:
        super().__init__()
        self._about = (name, about, labels)
        self._read = read  # gives the labels of what was counted; None: it is them

    def collect(self) -> Iterator[Metric]:
        """As Prometheus knows them."""
        name, about, labels = self._about
        sums: Counter[tuple[str, ...]] = Counter()
        for counted, amount in list(self.items()):
            sums[tuple(map(str, self._read(counted) if self._read else counted))] += amount
        family = CounterMetricFamily(name, about, labels=labels)
        for values, amount in sums.items():
            family.add_metric(values, amount)
        yield family


class Spread:
    """A histogram: how many values fell into each bucket, and what they sum up to."""

    def __init__(self, name: str, about: str, buckets: Sequence[float], label: str = "") -> None:
        self._about = (name, about, [label] if label else [])
        self._buckets = buckets
        self._counts: dict[str, list[float]] = {}  # by label; after the buckets comes the sum
        if not label:
            self._begin("")

    def _begin(self, label: str) -> list[float]:
        return self._counts.setdefault(label, [0.0] * (len(self._buckets) + 2))

    def observe(self, value: float, label: str = "") -> None:
        """Count one."""
        counts = self._counts.get(label) or self._begin(label)
        counts[bisect_left(self._buckets, value)] += 1
        counts[-1] += value

    def collect(self) -> Iterator[Metric]:
        """As Prometheus knows it: each bucket holds those before it, too."""
        name, about, labels = self._about
        family = HistogramMetricFamily(name, about, labels=labels)
        ends = [*map(repr, map(float, self._buckets)), "+Inf"]
        for label, (*counts, total) in list(self._counts.items()):
            buckets = list(zip(ends, accumulate(counts), strict=True))
            family.add_metric([label] if labels else [], buckets, total)
        yield family


class Metrics:
    """Everything that is counted."""

    def __init__(self, *, worker: str = "") -> None:
        self.registry = CollectorRegistry()
        self._worker = worker
        self._added_up: list[Sums | Spread] = []

        def counter(name: str, about: str, *labels: str) -> Sums:
            made = Sums(f"thoughtline_{name}", about, labels)
            self._added_up.append(made)
            return made

        def histogram(name: str, about: str, buckets: Sequence[float], label: str = "") -> Spread:
            made = Spread(f"thoughtline_{name}", about, buckets, label)
            self._added_up.append(made)
            return made

        self.requests = counter(
            "requests", "Requests that ended.", "upstream", "dialect", "status", "outcome"
        )
        self.outputs = Sums(  # counted by provider and kind of ruling
            "thoughtline_outputs",
            "What became of the thoughts of earlier outputs, by the rung the answer stood on.",
            ("provider", "action", "rung"),
            lambda counted: (counted[0], *reported(counted[1])),
        )
        self._added_up.append(self.outputs)
        self.healed = counter(
            "healed",
            "Refusals about reasoning that were acted on.",
            "provider",
            "remedy",
            "changed",
        )
        self.unwritten = counter(
            "unwritten", "Turns that could not be written: postponed, or lost.", "fate"
        )
        self.wire_requests = counter(
            "wire_requests",
            "Requests of WebSocket clients by the way they went upstream: continued, or why whole.",
            *("upstream", "transport", "reason"),
        )
        self.wire_bytes = counter(
            "wire_bytes", "Bytes of these that were sent, and that were spared.", "upstream", "kind"
        )
        self.tokens = counter("tokens", "Tokens as providers counted them.", "provider", "kind")
        self.added = histogram(
            "added_seconds", "From a request's last byte to its departure upstream.", ADDED
        )
        self.commit = histogram(
            "commit_seconds", "How long the store took to commit a turn.", COMMIT
        )
        self.thinking = histogram(
            "thought_seconds", "How long models thought.", THINKING, "provider"
        )
        self._gauge("info", "This version; always 1.", lambda: 1.0, version=thoughtline.__version__)

    def _gauge(self, name: str, about: str, read: Callable[[], float], **labels: str) -> None:
        gauge = Gauge(f"thoughtline_{name}", about, list(labels), registry=self.registry)
        (gauge.labels(**labels) if labels else gauge).set_function(read)

    def watch(
        self,
        *,
        streams: Callable[[], float],
        trouble: Callable[[], object],
        backlog: Callable[[], float],
        memory: Callable[[], float],
    ) -> None:
        """Read these whenever somebody scrapes; they cost nothing in between."""
        self._gauge("streams_open", "Responses under way.", streams)
        self._gauge(
            "store_trouble", "1 while the store does not answer.", lambda: float(bool(trouble()))
        )
        self._gauge("store_backlog", "Turns that wait for the store.", backlog)
        self._gauge("memory_entries", "Remembered turns held in memory.", memory)

    # -- showing ---------------------------------------------------------------------------------

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        extra = {"worker": self._worker} if self._worker else {}
        own = chain.from_iterable(one.collect() for one in self._added_up)
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
