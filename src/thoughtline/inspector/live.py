"""What runs right now: read from the running exchanges when somebody looks.

A request writes nothing down for this: its reader knows anyway when a thought opened. Turns that
run in other workers of the same gateway are asked for; a library's run in another process is seen
once it is written.
"""

from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from thoughtline.exchanges import Exchange
from thoughtline.inspector.neighbours import Neighbours, Running
from thoughtline.turns import Turn


class Live:
    """Looks at running exchanges; at those of other workers too, where there is a `folder`."""

    def __init__(self, exchanges: Iterable[Exchange], folder: Path | None = None) -> None:
        self._exchanges = exchanges
        self._neighbours = Neighbours(folder, self.own) if folder else None

    async def look(self) -> None:
        """See what runs elsewhere."""
        if self._neighbours is not None:
            await self._neighbours.look()

    @property
    def beside(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """What is to run for as long as others may ask, if there are others."""
        return [self._neighbours.answer] if self._neighbours else []

    def own(self) -> Iterator[Exchange]:
        """Those of this process whose turn is not written yet."""
        return (exchange for exchange in list(self._exchanges) if exchange.running)

    def running(self) -> Iterator[Running]:
        """Those, and what ran elsewhere when that was last looked at."""
        yield from self.own()
        if self._neighbours is not None:
            yield from self._neighbours.running()

    def turns(self, session: str | None = None) -> list[tuple[str, Turn]]:
        """Tenant and turn of each, as far as it has come, in the order they started."""
        found = [
            (running.tenant, running.glimpse())
            for running in self.running()
            if session in {None, running.session}
        ]
        return sorted(found, key=lambda pair: (pair[1].started, pair[1].id))
