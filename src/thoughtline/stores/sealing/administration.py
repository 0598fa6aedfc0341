"""Changing the keys of a store while it is in use: rotate, re-encrypt, retire, check.

With many processes the order is: add the new key to every ring, rotate, re-encrypt, retire the old
one, take it out of every ring. Each step may be interrupted and run again.
"""

from collections import Counter

from msgspec import Struct

from thoughtline.errors import SealError
from thoughtline.stores.base import Progress
from thoughtline.stores.sealing.ring import KeyRing, MasterKey
from thoughtline.stores.sealing.tenant_keys import (
    MAX_VERSION,
    KeyRow,
    new_row,
    rewrap,
    unwrap,
)
from thoughtline.stores.sealing.vault import KeyVault

CHUNK = 200
"""Keys of tenants that are wrapped again in one transaction."""
SAMPLE = 3
"""Values of each tenant that a check opens."""


class KeyUse(Struct, frozen=True, kw_only=True):
    """A master key, and what is wrapped with it."""

    id: str
    in_ring: bool
    fingerprint: str = ""
    primary: bool = False
    tenants: int = 0  # whose keys it wraps
    rows: int = 0  # that are sealed with those


class KeyReport(Struct, frozen=True, kw_only=True):
    """The master keys of a store and its ring."""

    keys: list[KeyUse]
    plain: int = 0  # rows that are not sealed
    lost: int = 0  # rows that are sealed with keys which the store does not have any more


async def list_keys(vault: KeyVault, ring: KeyRing | None) -> KeyReport:
    """Return the keys of the ring and of the store, and what each seals."""
    state, rows, counts = (
        await vault.seal_state(),
        await vault.key_rows(),
        await vault.value_counts(),
    )
    tenants: dict[str, set[str]] = {}
    sealed: Counter[str] = Counter()
    for row in rows:
        tenants.setdefault(row.master, set()).add(row.tenant)
        sealed[row.master] += counts.sealed.get((row.tenant, row.version), 0)
    ids = dict.fromkeys([*(ring.ids if ring else ()), *sorted(tenants)])
    if state.primary:
        ids.setdefault(state.primary)
    keys = [
        KeyUse(
            id=id,
            in_ring=ring is not None and id in ring,
            fingerprint=ring.get(id).fingerprint if ring is not None and id in ring else "",
            primary=id == state.primary,
            tenants=len(tenants.get(id, ())),
            rows=sealed[id],
        )
        for id in ids
    ]
    there = {(row.tenant, row.version) for row in rows}
    lost = sum(count for place, count in counts.sealed.items() if place not in there)
    return KeyReport(keys=keys, plain=counts.plain, lost=lost)


async def rotate(vault: KeyVault, ring: KeyRing, id: str, progress: Progress | None = None) -> int:
    """Let a key wrap what is new, and wrap the keys of all tenants with it; returns how many."""
    master = ring.get(id)
    await _refuse_other(vault, ring)
    await vault.set_primary(id)
    total, done = 0, 0
    while stale := [row for row in await vault.key_rows() if row.master != id]:
        total = max(total, done + len(stale))
        for start in range(0, len(stale), CHUNK):
            chunk = stale[start : start + CHUNK]
            done += await vault.replace_keys([(row, rewrap(row, ring, master)) for row in chunk])
            if progress:
                progress(done, total)
    await vault.reseal_notes()
    return done


async def re_encrypt(
    vault: KeyVault,
    ring: KeyRing,
    *,
    tenant: str | None = None,
    names: bool = False,
    rate: float = 0.0,
    progress: Progress | None = None,
) -> int:
    """Seal everything with a new key of each tenant, then delete the old ones; returns the rows.

    What is plain is sealed on the way. `names`: the look-up keys get a new key as well. A tenant
    that has two keys already was interrupted: it goes on.
    """
    await _refuse_other(vault, ring)
    state = await vault.seal_state()
    master = ring.get(state.primary or ring.newest.id)
    if not state.primary:
        await vault.set_primary(master.id)
    tenants = _by_tenant(await vault.key_rows(), tenant)
    while fresh := [row for rows in tenants.values() for row in _fresh(rows, master, names=names)]:
        await vault.add_keys(fresh)  # unless somebody else just did
        tenants = _by_tenant(await vault.key_rows(), tenant)
    resealed = await vault.reseal(tenant=tenant, rate=rate, progress=progress)
    # Somebody else may have begun again meanwhile: only what was old before is not needed any more.
    old = _opened([row for rows in tenants.values() for row in _superseded(rows)], ring)
    while rows := _same(await vault.key_rows(), old, ring):
        await vault.drop_keys(rows)  # unless they were just wrapped again
    return resealed


async def _refuse_other(vault: KeyVault, ring: KeyRing) -> None:
    """Raise `SealError` before anything is written, where the ring does not open every key.

    A key that such a ring has wrapped could lock out those that do.
    """
    _opened(await vault.key_rows(), ring)


def _opened(rows: list[KeyRow], ring: KeyRing) -> dict[tuple[str, int], bytes]:
    """Return the keys of rows, by tenant and version."""
    return {(row.tenant, row.version): unwrap(row, ring) for row in rows}


def _same(rows: list[KeyRow], keys: dict[tuple[str, int], bytes], ring: KeyRing) -> list[KeyRow]:
    """Return the rows that have these keys, however they are wrapped.

    A tenant that was deleted and came back has others, perhaps of the same versions.
    """
    there = [row for row in rows if (row.tenant, row.version) in keys]
    return [row for row in there if unwrap(row, ring) == keys[row.tenant, row.version]]


def _by_tenant(rows: list[KeyRow], tenant: str | None) -> dict[str, list[KeyRow]]:
    """Return the keys by tenant: those of look-up keys first, and the newest last."""
    found: dict[str, list[KeyRow]] = {}
    for row in sorted(rows, key=lambda row: row.version):
        if tenant in {None, row.tenant}:
            found.setdefault(row.tenant, []).append(row)
    return found


def _fresh(rows: list[KeyRow], master: MasterKey, *, names: bool) -> list[KeyRow]:
    """Return the new keys of a tenant; none where it has got them already."""
    versions = [row.version for row in rows]
    newest = versions[-1]
    if sum(version > 0 for version in versions) > 1 and (not names or -newest in versions):
        return []
    if newest == MAX_VERSION:
        owner = rows[0].tenant
        raise SealError(f"tenant {owner!r} has had {MAX_VERSION} keys, and cannot have more")
    wanted = [newest + 1, *([-(newest + 1)] if names else [])]
    return [new_row(rows[0].tenant, version, master) for version in wanted]


def _superseded(rows: list[KeyRow]) -> list[KeyRow]:
    """Return the keys that nothing needs that is sealed with the newest one."""
    newest = rows[-1].version
    lookup = min(row.version for row in rows)  # the last that came
    return [row for row in rows if row.version not in {newest, lookup}]


async def refuse_use(vault: KeyVault, id: str) -> None:
    """Raise `SealError` while something in the store needs a master key."""
    if (await vault.seal_state()).primary == id:
        raise SealError(
            f"the key {id} wraps what is new; run `thoughtline keys rotate` with another one first"
        )
    if count := len({row.tenant for row in await vault.key_rows() if row.master == id}):
        raise SealError(
            f"the keys of {count} tenant(s) are wrapped with {id}; run `thoughtline keys rotate`"
        )
    if id in await vault.note_keys():
        raise SealError(
            f"notes of what was deleted are sealed with {id}; run `thoughtline keys rotate`"
        )


async def lost_keys(vault: KeyVault, ring: KeyRing) -> list[str]:
    """Return what a store needs of the ring that is not there, or is another key."""
    state, rows = await vault.seal_state(), await vault.key_rows()
    needed = Counter(row.master for row in rows)
    if state.primary:
        needed.setdefault(state.primary, 0)
    problems = [
        f"the key {id} is not in the ring (it has {', '.join(ring.ids)}), and the keys of tenants "
        f"in the store are wrapped with it ({count})"
        for id, count in needed.items()
        if id not in ring
    ]
    wrong: dict[str, str] = {}
    for row in rows:
        if row.master in ring and row.master not in wrong:
            try:
                unwrap(row, ring)
            except SealError as error:
                wrong[row.master] = str(error)
    return [*problems, *wrong.values()]


async def check_keys(vault: KeyVault, ring: KeyRing) -> list[str]:
    """Unwrap every key and open a few values of each tenant; returns what is wrong."""
    return await lost_keys(vault, ring) or list(dict.fromkeys(await vault.sample(SAMPLE)))
