"""What a store offers about its keys, for administration: the port, and what it tells.

Requests do not use it. A store implements it over two small tables: the wrapped keys of its
tenants, and one row that says which master key wraps what is new.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from thoughtline.stores.base import Progress
from thoughtline.stores.sealing.tenant_keys import KeyRow


class SealState(Struct, frozen=True, kw_only=True):
    """Whether a store is sealed, and with what."""

    primary: str = ""  # id of the master key that wraps what is new; empty: nothing is sealed
    plain: bool = False  # whether plain values may be there beside the sealed ones


class ValueCounts(Struct, frozen=True, kw_only=True):
    """How many rows are plain, and how many are sealed with each version of each tenant's key."""

    plain: int = 0
    sealed: dict[tuple[str, int], int] = {}  # tenant and version → rows


class KeyVault(Protocol):
    """The keys of a store."""

    async def seal_state(self) -> SealState:
        """Return whether the store is sealed; needs no keys."""

    async def key_rows(self) -> list[KeyRow]:
        """Return the wrapped keys of all tenants; needs no keys."""

    async def value_counts(self) -> ValueCounts:
        """Count the rows by key; looks at all of them, and needs no keys."""

    async def set_primary(self, id: str) -> None:
        """Say which master key wraps what is new."""

    async def add_keys(self, rows: Sequence[KeyRow]) -> int:
        """Write keys of tenants, newer than those they have; returns how many.

        A key of look-up keys is written together with the key of values that it begins with.
        """

    async def replace_keys(self, rows: Sequence[tuple[KeyRow, KeyRow]]) -> int:
        """Replace rows by others, each only if it is still the same; returns how many."""

    async def drop_keys(self, rows: Sequence[KeyRow]) -> int:
        """Delete rows that are still the same; what was sealed with them cannot be read again."""

    async def reseal(
        self,
        *,
        tenant: str | None = None,
        plain: bool = False,
        rate: float = 0.0,
        progress: Progress | None = None,
    ) -> int:
        """Seal every row with the newest key of its tenant, a few at a time; returns how many.

        `plain`: open them instead. `rate`: rows per second at most. Rows that are as they
        should be are passed over, so it goes on where it was interrupted.
        """

    async def note_keys(self) -> set[str]:
        """Return the ids of the master keys that notes between processes are sealed with."""

    async def reseal_notes(self) -> int:
        """Seal those notes with the key that wraps what is new; returns how many."""

    async def sample(self, limit: int) -> list[str]:
        """Open a few values of each tenant; returns what went wrong."""


@runtime_checkable
class VaultStore(Protocol):
    """A store that can be sealed."""

    @property
    def vault(self) -> KeyVault:
        """The keys of the store."""
