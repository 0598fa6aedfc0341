"""Prometheus metrics, in a registry of their own.

Children are bound once per combination of labels and then only counted: no label is formatted on
the hot path. Labels are names from the settings, enums and statuses, so that no client can make
up new series. With several workers every series says which one it is from, because a scrape
reaches only one of them.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric

import thoughtline

T = TypeVar("T", Counter, Histogram)

ADDED = (
    *(0.00005, 0.0001, 0.0002, 0.0003, 0.0005, 0.00075, 0.001, 0.0015, 0.002, 0.003, 0.005),
    *(0.0075, 0.01, 0.02, 0.03, 0.05, 0.1, 0.5),
)
"""Buckets of added latency: fine between 50 µs and 50 ms, which is where it should be."""

COMMIT = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
THINKING = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200)


class Children(dict[tuple[str, ...], T], Generic[T]):
    """Children of a metric by their labels, made when first asked for."""

    def __init__(self, parent: T) -> None:
        super().__init__()
        self._parent: T = parent

    def __missing__(self, labels: tuple[str, ...]) -> T:
        child: T = self._parent.labels(*labels)
        self[labels] = child
        return child


class Metrics:
    """Everything that is counted."""

    def __init__(self, *, worker: str = "") -> None:
        self.registry = CollectorRegistry()
        self._worker = worker

        def counter(name: str, about: str, *labels: str) -> Children[Counter]:
            made = Counter(f"thoughtline_{name}", about, labels, registry=self.registry)
            return Children(made)

        def histogram(name: str, about: str, buckets: Sequence[float], *labels: str) -> Histogram:
            return Histogram(
                f"thoughtline_{name}", about, labels, buckets=buckets, registry=self.registry
            )

        self.requests = counter(
            "requests", "Requests that ended.", "upstream", "dialect", "status", "outcome"
        )
        self.outputs = counter(
            "outputs",
            "What became of the thoughts of earlier outputs, by the rung the answer stood on.",
            *("provider", "action", "rung"),
        )
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
        self.thinking = Children(
            histogram("thought_seconds", "How long models thought.", THINKING, "provider")
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
        """All metrics, without the times at which their series were made."""
        extra = {"worker": self._worker} if self._worker else {}
        for metric in self.registry.collect():
            metric.samples = [
                sample._replace(labels=sample.labels | extra)
                for sample in metric.samples
                if not sample.name.endswith("_created")
            ]
            yield metric

    def page(self, accept: str = "") -> tuple[bytes, str]:
        """The page that Prometheus scrapes, and its content type."""
        encoder, kind = choose_encoder(accept)
        view: Any = self  # the encoders ask for nothing but `collect`
        return encoder(view), kind
