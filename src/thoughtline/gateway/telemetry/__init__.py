"""Telemetry: metrics, log lines and traces of the same events.

- `observer`   `Telemetry`, which proxy and store call when something happens
- `metrics`    Prometheus counters and histograms, in a registry of their own
- `logs`       one line per request, as JSON or in columns
- `traces`     OpenTelemetry spans with the names of its GenAI conventions, when configured

They report ids, counts and durations; they are never given bodies, thoughts or credentials.
"""

from thoughtline.gateway.telemetry.logs import Log, open_log
from thoughtline.gateway.telemetry.metrics import CacheCounts, Metrics
from thoughtline.gateway.telemetry.observer import Telemetry
from thoughtline.gateway.telemetry.traces import Traces, connect

__all__ = ["CacheCounts", "Log", "Metrics", "Telemetry", "Traces", "connect", "open_log"]
