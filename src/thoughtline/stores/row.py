"""A row of the log, packed and unpacked: the one place where a store's content can be sealed.

A row has the events that a batch says of one turn, and the index entry of that turn if it was filed
with them. Mostly a batch is one turn and makes one row.

Content, sealed by a `Cipher` and bound to its tenant, session, row and column:

- `memo`: the index entry, without its thoughts;
- `thoughts`: versions and data of the reasoning events. A look-up reads these two columns only;
- `said`: everything else of the events: their envelopes, and the data of all others.

Blinded: look-up keys, and the ids of tool calls that entries are listed under.

Everything else stays visible, because stores look by it: tenants, sessions, turns and what they
continue, ids of batches, numbers, times, kinds of events, how turns ended, provider, endpoint and
models, sizes, and which turn a quarantine or which session a fork refers to.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import NamedTuple, Protocol

import msgspec
from msgspec import Struct

from thoughtline.errors import Damaged, SealError
from thoughtline.log.events import DAMAGED_VERSION, Draft, Event
from thoughtline.log.index import IndexEntry
from thoughtline.log.keys import KEY_SIZE
from thoughtline.stores import rules
from thoughtline.stores.base import Batch
from thoughtline.stores.sealing.envelope import is_sealed

# -- sealing ---------------------------------------------------------------------------------


class RowPlace(NamedTuple):
    """Where a value belongs, and nowhere else."""

    tenant: str
    session: str
    row: str  # the id of its batch, or of its turn


class Cipher(Protocol):
    """Seals values and blinds names, each with the keys of its tenant."""

    @property
    def seals(self) -> bool:
        """Whether what is written is sealed."""

    def renew(self) -> None:
        """Begin another piece of work: keys may have changed."""

    def is_current(self, state: object) -> bool:
        """Whether keys are as they were when they were read; takes note of the state that is."""

    def hold(self, tenant: str) -> None:
        """Keep the keys of a tenant that are about to be deleted, to delete the rest of it."""

    def release(self, tenant: str) -> None:
        """Drop the keys that were held."""

    def seal(self, value: bytes, place: RowPlace, column: str) -> bytes:
        """Return a value as it is stored."""

    def open(self, value: bytes, place: RowPlace, column: str) -> bytes:
        """Return a value as it was given; raises `SealError` when it does not belong there."""

    def reseal(self, value: bytes, place: RowPlace, column: str, *, version: int) -> bytes:
        """Return a value as it is stored in place of one that is sealed with a version, or plain.

        It stays as it was: an entry's look-up keys are filed as its memo says.
        """

    def blind(self, tenant: str, names: Sequence[bytes]) -> list[bytes]:
        """Return what names are filed under that are new."""

    def filed(self, tenant: str, names: Sequence[bytes], *, version: int) -> list[bytes]:
        """Return what names of an entry are filed under that is sealed with a version, or plain."""

    def asked(
        self, tenant: str, names: Sequence[bytes], *, check: bool = True
    ) -> dict[bytes, bytes]:
        """Return what names may be filed under, each with its name.

        Without `check`, the caller finds out whether keys have changed.
        """


class PlainCipher:
    """Stores everything as it is."""

    seals = False

    def renew(self) -> None:
        """There are no keys."""

    def is_current(self, state: object) -> bool:
        return True

    def hold(self, tenant: str) -> None:
        """There are no keys."""

    def release(self, tenant: str) -> None:
        """There are no keys."""

    def seal(self, value: bytes, place: RowPlace, column: str) -> bytes:
        return value

    def open(self, value: bytes, place: RowPlace, column: str) -> bytes:
        if is_sealed(value):
            raise _no_keys(place)
        return value

    def reseal(self, value: bytes, place: RowPlace, column: str, *, version: int) -> bytes:
        if version:
            raise _no_keys(place)
        return value

    def blind(self, tenant: str, names: Sequence[bytes]) -> list[bytes]:
        return list(names)

    def filed(self, tenant: str, names: Sequence[bytes], *, version: int) -> list[bytes]:
        return list(names)

    def asked(
        self, tenant: str, names: Sequence[bytes], *, check: bool = True
    ) -> dict[bytes, bytes]:
        return {name: name for name in names}


def _no_keys(place: RowPlace) -> SealError:
    return SealError(
        f"session {place.session!r} is sealed, and no keys are given; name them in `store.keys`"
    )


PLAIN = PlainCipher()

# -- kinds of events -------------------------------------------------------------------------

_KINDS = (
    "",  # every type that is not here
    "turn_started",
    "turn_ended",
    "reasoning",
    "user_message",
    "assistant_message",
    "tool_call",
    "tool_result",
    "permission_decision",
    "quarantined",
    "session_forked",
    "endpoint_learned",
    "request_failed",
)
"""Types by the number of their bit. Stored: a type is only ever added at the end."""

KINDS = {type: 1 << number for number, type in enumerate(_KINDS)}
OTHER, STARTED, ENDED, THOUGHT = (KINDS[t] for t in ("", "turn_started", "turn_ended", "reasoning"))


def kinds_of(types: Iterable[str]) -> int:
    """Return the bits of rows that may have events of these types.

    Rows of an earlier version have a type that is known today among the others.
    """
    bits = OTHER
    for type in types:
        bits |= KINDS.get(type, OTHER)
    return bits


# -- packing ---------------------------------------------------------------------------------


class Reference(NamedTuple):
    """The turn that a quarantine is about, or the session that a fork goes on from."""

    type: str
    about: str
    thoughts: str  # positions of refused thoughts, as a JSON array; empty: all


class Row(Struct):
    """The events of one turn in one batch, and what is known about them without opening them.

    Up to `said` it has the columns of the log, in their order.
    """

    count: int = 0  # events; none: only the entry is new
    id: str = ""  # of the batch, at its first row
    turn: str = ""  # empty: events of the session itself
    parent: str = ""  # the turn that is continued, where the turn starts here
    kinds: int = 0
    began: float = 0.0  # time of the first event
    provider: str = ""
    endpoint: str = ""
    model: str = ""
    asked: str = ""  # the model as asked for, where it is another
    served: str = ""  # the model as the answer names it
    outcome: str = ""  # where the turn ends here
    entries: int = 0  # how many the index entry makes in a listing
    chars: int = 0  # of all of them together
    ended: float = 0.0  # time of the index entry
    memo: bytes = b""
    thoughts: bytes = b""
    said: bytes = b""
    references: Sequence[Reference] = ()
    entry: IndexEntry | None = None  # what the memo says, with its thoughts
    reasoning: int = 0  # how many of the events are thoughts


class _Target(Struct, frozen=True):
    provider: str = ""
    endpoint: str = ""
    model: str = ""
    asked: str = ""


class _Started(Struct, frozen=True):
    target: _Target | None = None


class _Ended(Struct, frozen=True):
    outcome: str = ""
    model: str = ""


Said = tuple[str, str, float, str, int, str]
"""Id, parent, time, type, version and data of an event; a thought has its own in `thoughts`."""

_encode = msgspec.msgpack.Encoder().encode
_json = msgspec.json.Encoder().encode
_started = msgspec.json.Decoder(_Started)
_ended = msgspec.json.Decoder(_Ended)
_said = msgspec.msgpack.Decoder(list[Said])
_thoughts = msgspec.msgpack.Decoder(list[tuple[int, str]])
_entry = msgspec.msgpack.Decoder(IndexEntry)


def pack(batch: Batch) -> list[Row]:
    """Return the rows of a batch, not sealed yet."""
    rows = _pack_turns(batch.drafts, batch.index) if batch.drafts else []
    by_turn = {row.turn: row for row in rows}  # of several the last
    for entry in batch.index:
        row = by_turn.get(entry.turn)
        if row is None:
            row = by_turn[entry.turn] = Row(turn=entry.turn)
            rows.append(row)
        _file(row, entry)
    if rows:
        rows[0].id = batch.id
    return rows


def _pack_turns(drafts: Sequence[Draft], index: Sequence[IndexEntry]) -> list[Row]:
    """Return a row for every turn that neighbouring events belong to."""
    turn = _turn_of(drafts[0])
    for one in drafts[1:]:
        if one.parent != turn or one.type == "turn_started":
            return [_pack_events(turn, list(some)) for turn, some in groupby(drafts, _turn_of)]
    filed = len(index) == 1 and index[0].turn == turn
    return [_pack_events(turn, drafts, filed=filed)]  # the usual case: one turn


def _turn_of(one: Draft) -> str:
    return one.id if one.type == "turn_started" else one.parent


def seal_rows(rows: Sequence[Row], batch: Batch, cipher: Cipher) -> Sequence[Row]:
    """Return the rows of a batch as they are stored."""
    if not cipher.seals:
        return rows
    return [_sealed(row, batch, cipher) for row in rows]


def _sealed(row: Row, batch: Batch, cipher: Cipher) -> Row:
    place = RowPlace(batch.tenant, batch.session, row.id or row.turn)
    return msgspec.structs.replace(
        row,
        memo=cipher.seal(row.memo, place, "memo") if row.memo else b"",
        thoughts=cipher.seal(row.thoughts, place, "thoughts") if row.thoughts else b"",
        said=cipher.seal(row.said, place, "said") if row.said else b"",
    )


def _pack_events(turn: str, drafts: Sequence[Draft], *, filed: bool = False) -> Row:
    """Pack the events of a turn; `filed`: its entry will say where it was sent."""
    row = Row(len(drafts), turn=turn, began=drafts[0].at)
    said: list[Said] = []
    thoughts: list[tuple[int, str]] = []
    kinds = 0
    for one in drafts:
        type, version, data = one.type, one.version, one.data
        kinds |= KINDS.get(type, OTHER)
        if type == "reasoning":
            thoughts.append((version, data))
            version, data = DAMAGED_VERSION, ""  # until the thoughts are put in
        elif type == "turn_started":
            row.parent = one.parent
            if not filed:
                _note_start(row, data)
        elif type == "turn_ended":
            _note_end(row, data)
        elif type in rules.REFERRING_TYPES and (reference := _reference(type, data)):
            row.references = (*row.references, reference)
        said.append((one.id, one.parent, one.at, type, version, data))
    row.kinds, row.said = kinds, _encode(said)
    if thoughts:
        row.thoughts, row.reasoning = _encode(thoughts), len(thoughts)
    return row


def _note_start(row: Row, data: str) -> None:
    try:
        target = _started.decode(data).target or _Target()
    except rules.UNREADABLE:
        return
    row.provider, row.endpoint = target.provider, target.endpoint
    row.model, row.asked = target.model, target.asked


def _note_end(row: Row, data: str) -> None:
    try:
        ended = _ended.decode(data)
    except rules.UNREADABLE:
        return
    row.outcome, row.served = ended.outcome, ended.model


def _reference(type: str, data: str) -> Reference | None:
    about = rules.referred_id(type, data)
    if not about:
        return None
    quarantine = rules.read_quarantine(data) if type == "quarantined" else None
    positions = quarantine.thoughts if quarantine else ()
    return Reference(type, about, _json(positions).decode() if positions else "")


def _file(row: Row, entry: IndexEntry) -> None:
    """Put an index entry into its row, with what statistics and filters need of it."""
    origin, entries = entry.origin, len(rules.shown_calls(entry))
    row.provider, row.endpoint = origin.provider, origin.endpoint
    row.model, row.asked = origin.model, origin.asked
    row.entries, row.chars, row.ended = entries, entry.chars * entries, entry.at
    row.memo, row.entry = pack_entry(entry), entry


def entry_names(entry: IndexEntry) -> Sequence[bytes]:
    """Return what an entry is filed under: its look-up keys, and its tool calls."""
    calls = [call_name(call) for call in dict.fromkeys(entry.calls) if call]
    return (*entry.keys, *calls) if calls else entry.keys


def call_name(call: str) -> bytes:
    """Return the name under which the entries of a tool call are found."""
    text = call.encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=KEY_SIZE, person=b"call").digest()


def pack_entry(entry: IndexEntry) -> bytes:
    """Return the `memo` of an index entry: without its thoughts, which are in the log."""
    if entry.thoughts:
        entry = msgspec.structs.replace(entry, thoughts=())
    return _encode(entry)


def reseal_thoughts(
    thoughts: Sequence[tuple[int, str]], place: RowPlace, cipher: Cipher, *, version: int
) -> bytes:
    """Return versions and data of reasoning events as they are stored in place of others."""
    return cipher.reseal(_encode(thoughts), place, "thoughts", version=version)


# -- unpacking -------------------------------------------------------------------------------


def open_entry(memo: bytes, place: RowPlace, cipher: Cipher) -> IndexEntry:
    """Return an index entry, without its thoughts; raises `Damaged`."""
    try:
        return _entry.decode(cipher.open(memo, place, "memo"))
    except rules.UNREADABLE as error:
        raise _garbled(place, "memo") from error


def open_thoughts(thoughts: bytes, place: RowPlace, cipher: Cipher) -> list[tuple[int, str]]:
    """Return versions and data of the reasoning events of a row; raises `Damaged`."""
    try:
        return _thoughts.decode(cipher.open(thoughts, place, "thoughts")) if thoughts else []
    except rules.UNREADABLE as error:
        raise _garbled(place, "thoughts") from error


def open_said(said: bytes, place: RowPlace, cipher: Cipher) -> bytes:
    """Return the packed events, in which the data of thoughts is empty: to look for a text."""
    return cipher.open(said, place, "said")


def unpack_said(said: bytes, place: RowPlace) -> list[Said]:
    """Return the events of an opened row, in which thoughts are empty; raises `Damaged`."""
    try:
        return _said.decode(said)
    except rules.UNREADABLE as error:
        raise _garbled(place, "said") from error


def _garbled(place: RowPlace, column: str) -> Damaged:
    return Damaged(f"a value ({column}, row {place.row!r}) is damaged")


def open_events(
    first: int, thoughts: bytes | None, said: bytes, place: RowPlace, cipher: Cipher
) -> list[Event]:
    """Return the events of a row, numbered from `first` on; raises `Damaged`.

    Without `thoughts`, those are events whose body is damaged.
    """
    if not said:
        return []
    reasoning = None if thoughts is None else open_thoughts(thoughts, place, cipher)[::-1]
    events: list[Event] = []
    for seq, (id, parent, at, type, version, data) in enumerate(
        unpack_said(open_said(said, place, cipher), place), first
    ):
        if type == "reasoning" and reasoning is not None:
            if not reasoning:
                raise _garbled(place, "thoughts")
            version, data = reasoning.pop()  # noqa: PLW2901
        events.append(Event(place.session, seq, id, parent, at, type, version, data))
    return events
