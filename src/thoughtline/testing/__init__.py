"""Doubles to test agents with: strict simulated providers that need no network and no key.

`simulator("deepseek")` answers requests in memory; `serving("deepseek", "kimi")` puts several on a
loopback port for the length of a `with` block. See `thoughtline.testing.sims`.
"""

from thoughtline.testing.frozen import FrozenClock
from thoughtline.testing.sims import PROVIDERS, simulator
from thoughtline.testing.sims.base import (
    Audit,
    Emission,
    Fault,
    Pace,
    Piece,
    Record,
    Reply,
    Request,
    Say,
    Script,
    Simulator,
    Think,
    Tool,
    Use,
)
from thoughtline.testing.sims.serve import Serving, serving

__all__ = [
    "PROVIDERS",
    "Audit",
    "Emission",
    "Fault",
    "FrozenClock",
    "Pace",
    "Piece",
    "Record",
    "Reply",
    "Request",
    "Say",
    "Script",
    "Serving",
    "Simulator",
    "Think",
    "Tool",
    "Use",
    "serving",
    "simulator",
]
