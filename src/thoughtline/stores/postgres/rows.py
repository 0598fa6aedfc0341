"""Batches and index entries as rows, and back: nothing else knows the form of what is stored.

A batch becomes a row for each turn that it is about, mostly one: the data of its thoughts apart
from what was said. An index entry is stored without its thoughts, which are in the log.
All of it is bytes: text in PostgreSQL cannot hold every character, and JSON respells numbers.
"""

import os
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from thoughtline.errors import Damaged, StoreError
from thoughtline.log.events import DAMAGED_VERSION, Draft, Event
from thoughtline.log.index import IndexEntry
from thoughtline.log.keys import KEY_SIZE
from thoughtline.stores import rules
from thoughtline.stores.base import Batch

KINDS = (
    "user_message",
    "reasoning",
    "assistant_message",
    "tool_call",
    "tool_result",
    "permission_decision",
    "turn_started",
    "turn_ended",
    "quarantined",
    "session_forked",
    "endpoint_learned",
    "request_failed",
)
"""Types of events that have a bit of their own in `batches.kinds`. The order never changes."""

_BITS = {name: 1 << n for n, name in enumerate(KINDS)}
_OTHER = 1 << 62
"""The bit of all other types."""

REFUSAL, FORK = "r", "f"
"""Kinds of pointers."""

_encode = msgspec.msgpack.Encoder().encode
_said = msgspec.msgpack.Decoder(list[tuple[str, str, float, str, int, str | None]])
_thoughts = msgspec.msgpack.Decoder(list[tuple[int, str]])
_memo = msgspec.msgpack.Decoder(IndexEntry)

Row = tuple[
    int, int, int, int, float, bytes | None, bytes | None, bytes | None, bytes, bytes | None
]
"""nth, offset, count, kinds, newest, entry, turn, parent, said, thoughts."""
EntryRow = tuple[bytes, bytes, float, bytes, bytes, bytes, int, int, bytes]
"""id, turn, at, provider, endpoint, model, shown, chars, memo."""


def kinds_mask(types: Iterable[str]) -> int:
    """Return the bits of these types of events."""
    mask = 0
    for name in types:
        mask |= _BITS.get(name, _OTHER)
    return mask


class PackedBatch(Struct, eq=False):
    """A batch as rows."""

    batch: Batch
    id: bytes
    session: bytes
    tenant: bytes
    turns: int
    oldest: float | None
    newest: float | None
    rows: list[Row]
    entries: list[EntryRow]
    names: list[list[bytes]]  # of each entry
    pointers: list[tuple[bytes, str, bytes]]  # about, kind, data
    size: int  # about how many bytes go over the line
    epoch: int | None = None  # of the tenant when the batch was made, where it had to wait since
    key: int = 0  # version of the key that it is sealed with; 0: it is plain


def pack(batch: Batch) -> PackedBatch:
    """Return a batch as rows. Raises `StoreError` for what cannot be stored."""
    rules.check_batch(batch)
    try:
        return _pack(batch)
    except UnicodeEncodeError as error:
        raise StoreError(f"a text of session {batch.session!r} is not Unicode: {error}") from None


def _pack(batch: Batch) -> PackedBatch:
    session, tenant = batch.session.encode(), batch.tenant.encode()
    drafts = batch.drafts
    shape = _shape(tuple([draft.type for draft in drafts]))
    times = [draft.at for draft in drafts]
    rows: list[Row] = []
    first = size = 0
    for last, turn in _spans(drafts, shape):
        row = _row(session, len(rows), first, drafts[first:last], turn)
        rows.append(row)
        size += len(row[8]) + len(row[9] or b"")
        first = last
    entries, names = pack_entries(session, tenant, batch.index)
    for entry, own in zip(entries, names, strict=True):
        size += len(entry[8]) + 40 * len(own)
    return PackedBatch(
        batch,
        batch.id.encode() or os.urandom(16),
        session,
        tenant,
        shape.starts,
        min(times, default=None),
        max(times, default=None),
        rows,
        entries,
        names,
        _pointers([drafts[n] for n in shape.references]) if shape.references else [],
        size + 500,
    )


def _pointers(drafts: Sequence[Draft]) -> list[tuple[bytes, str, bytes]]:
    pointers: list[tuple[bytes, str, bytes]] = []
    for draft in drafts:
        about = rules.referred_id(draft.type, draft.data)
        if about is not None:
            kind = REFUSAL if draft.type == "quarantined" else FORK
            pointers.append((about.encode(), kind, _pointer(draft)))
    return pointers


def _pointer(draft: Draft) -> bytes:
    """Return what has to be known of a refusal; the rest of what it says is in its row."""
    record = rules.read_quarantine(draft.data) if draft.type == "quarantined" else None
    return msgspec.json.encode(record) if record is not None else b""


class _Shape(NamedTuple):
    """What the types of some events say about them."""

    kinds: int
    starts: int  # how many turns start
    about: tuple[int, ...]  # places of those that are about a turn of their own: starts, thoughts
    references: tuple[int, ...]  # places of refusals and forks


@lru_cache(1024)
def _shape(types: tuple[str, ...]) -> _Shape:
    """Return what types say: most turns have the same."""
    return _Shape(
        kinds_mask(types),
        types.count("turn_started"),
        tuple([n for n, type in enumerate(types) if type in ("turn_started", "reasoning")]),
        tuple([n for n, type in enumerate(types) if type in rules.REFERRING_TYPES]),
    )


def _spans(drafts: Sequence[Draft], shape: _Shape) -> list[tuple[int, str | None]]:
    """Return where the rows of a batch end, and the turn that each is about."""
    spans: list[tuple[int, str | None]] = []
    turn: str | None = None
    for n in shape.about:
        draft = drafts[n]
        starts = draft.type == "turn_started"
        about = draft.id if starts else draft.parent
        if turn is not None and (starts or about != turn):
            spans.append((n, turn))
        turn = about
    if drafts:
        spans.append((len(drafts), turn))
    return spans


def _row(session: bytes, nth: int, first: int, drafts: Sequence[Draft], turn: str | None) -> Row:
    started: bytes | None = None
    parent: bytes | None = None
    said: list[tuple[str, str, float, str, int, str | None]] = list(map(astuple, drafts))
    thoughts: list[tuple[int, str]] = []
    shape = _shape(tuple([draft.type for draft in drafts]))
    for n in shape.about:
        draft = drafts[n]
        if draft.type == "reasoning":
            thoughts.append((draft.version, draft.data))
            said[n] = (draft.id, draft.parent, draft.at, "reasoning", draft.version, None)
        elif draft.parent:
            started, parent = draft.id.encode(), draft.parent.encode()
    return (
        nth,
        first,
        len(drafts),
        shape.kinds,
        max([draft.at for draft in drafts]),
        entry_id(session, turn.encode()) if turn is not None and thoughts else None,
        started,
        parent,
        _encode(said),
        _encode(thoughts) if thoughts else None,
    )


def entry_id(session: bytes, turn: bytes) -> bytes:
    """Return the id of a turn's index entry: the same turn always has the same one."""
    return blake2b(b"%d %b%b" % (len(session), session, turn), digest_size=16).digest()


@lru_cache(4096)
def tenant_mark(tenant: bytes) -> bytes:
    """Return what the names of a tenant begin with."""
    return blake2b(tenant, digest_size=8).digest()


def blind(tenant: bytes, keys: Iterable[bytes]) -> list[bytes]:
    """Return the names of look-up keys: those of two tenants differ."""
    mark = tenant_mark(tenant)
    return [mark + key if len(key) == KEY_SIZE else mark + _digest(key) for key in keys]


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=KEY_SIZE, person=b"key").digest()


def call_name(tenant: bytes, call: str) -> bytes:
    """Return the name under which the entries of a tool call are found."""
    name = blake2b(call.encode(), digest_size=KEY_SIZE, person=b"call").digest()
    return tenant_mark(tenant) + name


def pack_entries(
    session: bytes, tenant: bytes, index: Sequence[IndexEntry]
) -> tuple[list[EntryRow], list[list[bytes]]]:
    """Return index entries as rows, and the names of each; of those of one turn the last."""
    index = distinct(index)
    entries = [pack_entry(session, entry) for entry in index]
    return entries, [_plain_names(tenant, entry) for entry in index]


def entry_values(
    batch: int, names: Sequence[list[bytes]], entries: Sequence[EntryRow]
) -> list[tuple[Any, ...]]:
    """Return entries of a batch as the database takes them, the names of each as one value."""
    return [(batch, b"".join(own), *entry) for own, entry in zip(names, entries, strict=True)]


def _plain_names(tenant: bytes, entry: IndexEntry) -> list[bytes]:
    calls = [call_name(tenant, call) for call in entry.calls]
    return list(dict.fromkeys([*blind(tenant, entry.keys), *calls]))


def distinct(index: Sequence[IndexEntry]) -> Sequence[IndexEntry]:
    """Return index entries, of those of one turn the last."""
    return index if len(index) < 2 else list({entry.turn: entry for entry in index}.values())


def pack_entry(session: bytes, entry: IndexEntry) -> EntryRow:
    """Return an index entry as a row, without its thoughts."""
    turn, origin = entry.turn.encode(), entry.origin
    shown = len(rules.shown_calls(entry))
    return (
        entry_id(session, turn),
        turn,
        entry.at,
        origin.provider.encode(),
        origin.endpoint.encode(),
        (origin.asked or origin.model).encode(),
        shown,
        entry.chars if shown else 0,
        pack_memo(entry),
    )


def pack_memo(entry: IndexEntry) -> bytes:
    """Return an entry as it is stored."""
    if entry.thoughts or entry.continued is not None:
        entry = msgspec.structs.replace(entry, thoughts=(), continued=None)
    return _encode(entry)


def unpack_memo(memo: bytes) -> IndexEntry:
    """Return an entry, without its thoughts; raises `Damaged`."""
    try:
        return _memo.decode(memo)
    except rules.UNREADABLE as error:
        raise Damaged("a value (memo) is damaged") from error


def unpack_thoughts(thoughts: Iterable[bytes] | None) -> list[tuple[int, str]]:
    """Return versions and data of the thoughts in rows; raises `Damaged`."""
    try:
        return list(chain.from_iterable([_thoughts.decode(some) for some in thoughts or ()]))
    except rules.UNREADABLE as error:
        raise Damaged("a value (thoughts) is damaged") from error


def pack_thoughts(thoughts: Sequence[tuple[int, str]]) -> bytes:
    """Return versions and data of thoughts, as they are stored."""
    return _encode(thoughts)


def unpack_events(session: str, first: int, said: bytes, thoughts: bytes | None) -> list[Event]:
    """Return the events of a row; raises `Damaged`.

    Without `thoughts`, those are events whose body is damaged.
    """
    data = None if thoughts is None else unpack_thoughts([thoughts])[::-1]
    try:
        rows = _said.decode(said)
    except rules.UNREADABLE as error:
        raise Damaged("a value (said) is damaged") from error
    events: list[Event] = []
    for seq, (id, parent, at, type, version, text) in enumerate(rows, first):
        if text is not None:
            stored = version, text
        elif data is None:
            stored = DAMAGED_VERSION, ""
        elif data:
            stored = data.pop()
        else:
            raise Damaged("a value (thoughts) is damaged")
        events.append(Event(session, seq, id, parent, at, type, *stored))
    return events


def with_refusals(entry: IndexEntry, refusals: Iterable[bytes] | None) -> IndexEntry:
    """Return an entry with the thoughts marked that providers have refused."""
    if not refusals:
        return entry
    quarantined = entry.quarantined
    for data in refusals:
        if record := rules.read_quarantine(data.decode()):
            quarantined |= frozenset(record.thoughts or range(len(entry.thoughts)))
    return msgspec.structs.replace(entry, quarantined=quarantined)
