"""A wire to simulated servers, and what they and the client saw of each other."""

import contextlib
import json

from thoughtline.wires.http import HttpWire
from thoughtline.wires.websocket.http_adapter import http_fallback
from thoughtline.wires.websocket.wire import ResponsesWire

QUIET = 2  # events before any output: created, in_progress


CLEAN = "altered=0; missing=0; misplaced=0; foreign=0"


class SendStats:
    """Counts of what was sent over a wire so far."""

    def __init__(self):
        self.requests = self.size = self.full_size = 0
        self.reasons = {}
        self.sent = []

    def add(self, sent):
        self.sent.append(sent)
        self.requests += 1
        self.size += sent.size
        self.full_size += sent.full_size
        self.reasons[sent.plan.reason] = self.reasons.get(sent.plan.reason, 0) + 1


def counted(**how):
    """A wire whose `stats` count what it sends."""
    stats = SendStats()
    wire = ResponsesWire(**{"on_send": stats.add, **how})
    wire.stats = stats
    return wire


@contextlib.asynccontextmanager
async def wired(**how):
    """A wire with a way out over HTTP."""
    http = HttpWire()
    wire = counted(fallback=http_fallback(http), **how)
    try:
        yield wire
    finally:
        await wire.close()
        await http.close()


def kinds(shown):
    return [json.loads(event)["type"] for event in shown]


def clean(sim):
    """What the server says of the thoughts it got back with the last request."""
    audit = sim.requests[-1].audit
    return str(audit).endswith(CLEAN) and audit.exact
