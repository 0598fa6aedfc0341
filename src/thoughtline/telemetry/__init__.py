"""Who watches the walk: metrics, log lines and traces of the same few moments.

- `observer`  `Telemetry`, which the walk and the store tell what happens
- `tallies`   a request's rulings, counted: what all three of them report
- `metrics`   Prometheus counters and histograms, in a registry of their own
- `logs`      one line per request, as JSON or for people
- `traces`    OpenTelemetry spans with the names of its GenAI conventions, when asked for

Ids, counts and durations leave here; bodies, thoughts and credentials never come in.
"""

from thoughtline.telemetry.logs import Log, adopt, open_log
from thoughtline.telemetry.metrics import Metrics
from thoughtline.telemetry.observer import Telemetry
from thoughtline.telemetry.tallies import Counts
from thoughtline.telemetry.traces import Traces, connect

__all__ = ["Counts", "Log", "Metrics", "Telemetry", "Traces", "adopt", "connect", "open_log"]
