"""Is a policy row right? A few small requests to the real endpoint tell.

A short conversation is held first; then its history goes out again and again, each time with one
thing changed, and the endpoint's yes or no is compared with what the row assumes. `histories` makes
the changed histories, `checks` lists what is asked, `running` asks, `reports` says what came of it.
"""

from thoughtline.verifying.checks import Check, Expected, estimate, plan
from thoughtline.verifying.reports import Outcome, Report, Row, Verdict
from thoughtline.verifying.running import verify

__all__ = [
    "Check",
    "Expected",
    "Outcome",
    "Report",
    "Row",
    "Verdict",
    "estimate",
    "plan",
    "verify",
]
