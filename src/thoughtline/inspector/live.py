"""What runs right now, in this process: read from the running exchanges when somebody looks.

A request writes nothing down for this: its reader knows anyway when a thought opened. Turns that
run in another process of the same gateway are seen there, and here once they are written.
"""

from collections.abc import Iterable, Iterator

from thoughtline.exchanges import Exchange
from thoughtline.turns import Turn


class Live:
    """Looks at running exchanges."""

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        self._exchanges = exchanges

    def exchanges(self) -> Iterator[Exchange]:
        """Those whose turn is not written yet."""
        return (exchange for exchange in list(self._exchanges) if exchange.running)

    def turns(self, session: str | None = None) -> list[tuple[str, Turn]]:
        """Tenant and turn of each, as far as it has come, in the order they started."""
        found = [
            (exchange.tenant, exchange.glimpse())
            for exchange in self.exchanges()
            if session in {None, exchange.session}
        ]
        return sorted(found, key=lambda pair: (pair[1].started, pair[1].id))
