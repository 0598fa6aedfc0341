"""Rows of a batch: how it is split, what is sealed and blinded, and that it comes back."""

import pytest
from msgspec.structs import replace

from stores.samples import after, fork, notes, plain, refusal, turn
from thoughtline.errors import Damaged, SealError
from thoughtline.log.index import IndexEntry
from thoughtline.stores.base import Batch
from thoughtline.stores.row import (
    ENDED,
    KINDS,
    OTHER,
    PLAIN,
    STARTED,
    THOUGHT,
    RowPlace,
    call_name,
    entry_names,
    kinds_of,
    open_entry,
    open_events,
    open_thoughts,
    pack,
    seal_rows,
)
from thoughtline.stores.rules import number_events
from thoughtline.stores.sealing.cipher import TenantCipher
from thoughtline.stores.sealing.envelope import is_sealed

A = b"a" * 16


def unpacked(rows, batch, cipher=PLAIN):
    events, first = [], 0
    for row in rows:
        place = RowPlace(batch.tenant, batch.session, row.id or row.turn)
        events += open_events(first, row.thoughts, row.said, place, cipher)
        first += row.count
    return events


def test_a_turn_is_one_row():
    batch = replace(turn("s", "t1", '"one"', '"two"', keys=[A], calls=("c1", "c2")), id="t1")
    [row] = pack(batch)
    assert (row.id, row.turn, row.parent, row.count) == ("t1", "t1", "", 4)
    assert row.kinds == STARTED | THOUGHT | ENDED
    assert (row.provider, row.model, row.outcome) == ("deepseek", "v4", "completed")
    assert (row.entries, row.chars) == (2, 2 * batch.index[0].chars)
    assert entry_names(row.entry) == (A, call_name("c1"), call_name("c2"))
    assert unpacked([row], batch) == number_events(batch, 0)
    place = RowPlace("T", "s", "t1")
    assert open_entry(row.memo, place, PLAIN) == replace(batch.index[0], thoughts=())
    assert [data for _, data in open_thoughts(row.thoughts, place, PLAIN)] == [
        draft.data for draft in batch.drafts if draft.type == "reasoning"
    ]


def test_thoughts_and_what_was_said_are_apart():
    [row] = pack(turn("s", "t1", '"secret"', drafts=(plain(parent="t1", data='"spoken"'),)))
    assert b"secret" in row.thoughts
    assert b"secret" not in row.said + row.memo
    assert b"spoken" in row.said
    assert b"spoken" not in row.thoughts + row.memo


def test_every_turn_of_a_batch_has_its_row():
    turns = [turn("s", f"t{n}", '"x"', keys=[bytes([n]) * 16]) for n in range(3)]
    batch = Batch(
        id="b",
        session="s",
        tenant="T",
        drafts=(plain(), *(draft for one in turns for draft in one.drafts)),
        index=(*(one.index[0] for one in turns), IndexEntry("s", "elsewhere", keys=(A,))),
    )
    rows = pack(batch)
    assert [(row.id, row.turn, row.count) for row in rows] == [
        ("b", "", 1),
        ("", "t0", 3),
        ("", "t1", 3),
        ("", "t2", 3),
        ("", "elsewhere", 0),
    ]
    assert [bool(row.memo) for row in rows] == [False, True, True, True, True]
    assert unpacked(rows, batch) == number_events(batch, 0)


def test_a_turn_that_starts_another_one_is_a_row_of_its_own():
    """The second start names the first turn as its parent, as all events of the first do."""
    first, second = turn("s", "t1", '"x"'), after("s", "t2", "t1")
    rows = pack(replace(first, drafts=(*first.drafts, *second.drafts)))
    assert [(row.turn, row.parent) for row in rows] == [("t1", ""), ("t2", "t1")]


def test_a_row_knows_its_entry_and_how_many_thoughts_it_has():
    batch = turn("s", "t1", '"one"', '"two"', drafts=(plain(parent="other"),))
    rows = pack(batch)
    assert [(row.turn, row.entry, row.reasoning) for row in rows] == [
        ("t1", batch.index[0], 2),
        ("other", None, 0),
    ]


def test_what_a_row_says_of_other_turns():
    [row] = pack(after("s", "t2", "t1"))
    assert (row.turn, row.parent) == ("t2", "t1")
    [row] = pack(refusal("s", "t1", 0, 2))
    assert row.references == (("quarantined", "t1", "[0,2]"),)
    [row] = pack(refusal("s", "t1"))
    assert row.references == (("quarantined", "t1", ""),)
    [row] = pack(fork("z", "s"))
    assert row.references == (("session_forked", "s", ""),)


class TenantRows:
    """Seals the rows of one tenant, with its own cipher."""

    seals = True

    def __init__(self):
        self._cipher = TenantCipher("T", {0: b"n" * 32}, {1: b"k" * 32})

    def seal(self, value, place, column):
        return self._cipher.seal(value, place.session, place.row, column)

    def open(self, value, place, column):
        return self._cipher.open(value, place.session, place.row, column)

    def blind(self, tenant, names):
        return self._cipher.blind(names)


def test_all_content_is_sealed_in_its_place():
    batch = replace(turn("s", "t1", '"secret"', keys=[A], calls=("call",)), id="t1")
    plain_rows, cipher = pack(batch), TenantRows()
    [row] = seal_rows(plain_rows, batch, cipher)
    assert is_sealed(row.memo) and is_sealed(row.thoughts) and is_sealed(row.said)
    assert unpacked([row], batch, cipher) == number_events(batch, 0)
    assert unpacked(plain_rows, batch) == number_events(batch, 0)  # the same rows may go again
    for elsewhere in (RowPlace("T", "z", "t1"), RowPlace("T", "s", "t2")):
        with pytest.raises(Damaged):
            open_events(0, row.thoughts, row.said, elsewhere, cipher)
    with pytest.raises(SealError, match="no keys are given"):
        open_entry(row.memo, RowPlace("T", "s", "t1"), PLAIN)
    assert seal_rows(plain_rows, batch, PLAIN) is plain_rows


def test_bits_of_types_never_change():
    assert (KINDS["turn_started"], KINDS["reasoning"], KINDS["request_failed"]) == (2, 8, 4096)
    assert pack(notes("s"))[0].kinds == OTHER
    assert kinds_of(["reasoning"]) == THOUGHT | OTHER
