"""Batches as rows, and back."""

import pytest
from msgspec.structs import replace

from stores.samples import notes, plain, refusal, turn
from thoughtline.errors import StoreError
from thoughtline.log.events import TurnStarted, draft
from thoughtline.stores import rules
from thoughtline.stores.base import Batch
from thoughtline.stores.postgres.rows import (
    blind,
    entry_id,
    kinds_mask,
    pack,
    unpack_events,
    unpack_memo,
    with_refusals,
)


def events(packed):
    found = []
    for _, offset, _, _, _, _, _, _, said, thoughts in packed.rows:
        found += unpack_events(packed.batch.session, offset, said, thoughts)
    return found


def test_a_turn_is_one_row_with_its_thoughts_apart():
    batch = turn("s", "t1", '"secret thought"', keys=[b"k"])
    packed = pack(batch)
    [row] = packed.rows
    assert b"secret thought" in row[9] and b"secret thought" not in row[8]
    assert events(packed) == rules.number_events(batch, 0)
    assert row[5] == packed.entries[0][0] == entry_id(b"s", b"t1")
    assert unpack_memo(packed.entries[0][8]) == replace(batch.index[0], thoughts=())


def test_several_turns_in_a_batch_are_several_rows():
    one, two = turn("s", "t1", '"a"'), turn("s", "t2", '"b"')
    batch = Batch(
        session="s", tenant="T", drafts=(plain(), *one.drafts, *two.drafts, *one.drafts[1:2])
    )
    packed = pack(batch)
    assert [row[5] for row in packed.rows] == [
        entry_id(b"s", b"t1"),
        entry_id(b"s", b"t2"),
        entry_id(b"s", b"t1"),
    ]
    assert events(packed) == rules.number_events(batch, 0)


def test_what_a_turn_continues_can_be_looked_up():
    start = draft(TurnStarted(), id="t2", parent="t1", at=1.0)
    packed = pack(Batch(session="s", tenant="T", drafts=(start,)))
    assert packed.rows[0][6:8] == (b"t2", b"t1")
    assert packed.turns == 1


def test_names_of_two_tenants_differ():
    assert set(blind(b"A", [b"k", b""])).isdisjoint(blind(b"B", [b"k", b""]))


def test_types_that_are_not_known_share_a_bit():
    assert kinds_mask(["reasoning"]) != kinds_mask(["of the future"]) == kinds_mask(["another"])
    assert pack(notes("s")).rows[0][3] == kinds_mask(["note"])


def test_what_cannot_be_stored_is_refused():
    with pytest.raises(StoreError, match="Unicode"):
        pack(notes("\ud800"))


def test_refusals_mark_thoughts():
    entry = turn("s", "t1", '"a"', '"b"').index[0]
    all_of_it = refusal("s", "t1").drafts[0].data.encode()
    one = refusal("s", "t1", 1).drafts[0].data.encode()
    assert with_refusals(entry, None) is entry
    assert with_refusals(entry, [one]).quarantined == {1}
    assert with_refusals(entry, [one, all_of_it, b"{"]).quarantined == {0, 1}
