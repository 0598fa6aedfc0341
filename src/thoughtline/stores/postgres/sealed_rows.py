"""Rows and batches, sealed before they are written and opened after they are read."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from thoughtline.errors import Damaged
from thoughtline.log.events import Event
from thoughtline.log.index import IndexEntry
from thoughtline.stores.damage import DamagedSessions, damaged_entry, damaged_events
from thoughtline.stores.postgres.rows import (
    EntryRow,
    PackedBatch,
    Row,
    distinct,
    unpack_events,
    unpack_memo,
    unpack_thoughts,
)
from thoughtline.stores.postgres.tenant_seal import TenantSeal, entry_group
from thoughtline.stores.sealing.envelope import is_sealed, key_version

Values = Mapping[str, Any]
"""A row of an answer; one that was sealed has beside its columns the `versions` of its keys."""

_CONTENT = ("memo", "thoughts", "said")


def is_sealed_row(row: Values) -> bool:
    """Whether some of a row's content is sealed."""
    for column in _CONTENT:
        value = row.get(column)
        if value and any(map(is_sealed, value if isinstance(value, list) else [value])):
            return True
    return False


def open_row(
    row: Values, seal: TenantSeal, entry: str = "entry", damage: DamagedSessions | None = None
) -> Values:
    """Return a row with its content opened; raises `Damaged`.

    With `damage`, that is noted there, and what is damaged is empty.
    """

    def opened(value: bytes, session: bytes, name: bytes, column: str) -> bytes:
        try:
            return seal.open(value, session, name, column)
        except Damaged as error:
            if damage is None:
                raise
            damage.note(row["session"].decode(), error)
            return b""

    values, versions = {**row}, {}
    if row.get("memo"):
        values["memo"] = opened(row["memo"], entry_group(row[entry]), row[entry], "memo")
        versions["memo"] = key_version(row["memo"])
    if thoughts := row.get("thoughts"):
        several = thoughts if isinstance(thoughts, list) else [thoughts]
        group = entry_group(row[entry])
        some = [opened(one, group, row[entry], "thoughts") for one in several]
        values["thoughts"] = some if isinstance(thoughts, list) else some[0]
        versions["thoughts"] = key_version(several[0])
    if row.get("said"):
        name = row_name(row["id"], row["nth"])
        values["said"] = opened(row["said"], row["session"], name, "said")
    values["versions"] = versions
    return values


def read_events(row: Values, damage: DamagedSessions) -> list[Event]:
    """Return the events of an opened row; where it is damaged, what stands for them."""
    session, first, said = row["session"].decode(), row["first"], row["said"]
    try:
        return unpack_events(session, first, said, row.get("thoughts"))
    except Damaged as error:
        damage.note(session, error)
    try:
        return unpack_events(session, first, said, None)  # only its thoughts are damaged
    except Damaged:
        return damaged_events(session, first, row["count"], (row["turn"] or b"").decode())


def read_entry(row: Values, damage: DamagedSessions) -> IndexEntry:
    """Return the entry of an opened row; where it is damaged, what stands for it."""
    try:
        return unpack_memo(row["memo"])
    except Damaged as error:
        damage.note(row["session"].decode(), error)
        return damaged_entry(row["session"].decode(), row["turn"].decode())


def read_thoughts(row: Values, damage: DamagedSessions) -> list[tuple[int, str]] | None:
    """Return the thoughts of an opened row, of one turn or of a row of it; None: damaged."""
    thoughts = row["thoughts"]
    try:
        return unpack_thoughts(thoughts if isinstance(thoughts, list | None) else [thoughts])
    except Damaged as error:
        damage.note(row["session"].decode(), error)
        return None


def sealed_with(row: Values, column: str) -> int:
    """Return the version that a value of an opened row is sealed with; 0: it is plain."""
    return int(row.get("versions", {}).get(column, 0))


def row_name(batch: bytes, nth: int) -> bytes:
    """Return what a row is called within its session."""
    return b"%d %b" % (nth, batch)


def entry_names(seal: TenantSeal, entry: IndexEntry, *, version: int) -> list[bytes]:
    """Return the names under which an entry is filed, each once."""
    return list(dict.fromkeys(seal.names(entry.keys, entry.calls, version=version)))


def seal_batch(packed: PackedBatch, seal: TenantSeal) -> PackedBatch:
    """Return a batch with its content sealed, if that is switched on."""
    if not seal.seals:
        same = packed.key == seal.version
        return packed if same else msgspec.structs.replace(packed, key=seal.version)
    entries, names = seal_entries(packed.entries, packed.batch.index, seal)
    return msgspec.structs.replace(
        packed,
        rows=[_sealed_row(row, packed, seal) for row in packed.rows],
        entries=entries,
        names=names,
        key=seal.version,
    )


def _sealed_row(row: Row, packed: PackedBatch, seal: TenantSeal) -> Row:
    nth, *about, said, thoughts = row
    said = seal.seal(said, packed.session, row_name(packed.id, nth), "said")
    if thoughts is not None:
        thoughts = seal.seal_entry(thoughts, row[5] or b"", "thoughts")
    return (nth, *about, said, thoughts)  # type: ignore[return-value]


def seal_entries(
    entries: Sequence[EntryRow], index: Sequence[IndexEntry], seal: TenantSeal
) -> tuple[list[EntryRow], list[list[bytes]]]:
    """Return packed entries as they are stored, and the names of each."""
    version = seal.version if seal.seals else 0
    names = [entry_names(seal, entry, version=version) for entry in distinct(index)]
    return [(*row[:8], seal.seal_entry(row[8], row[0], "memo")) for row in entries], names
