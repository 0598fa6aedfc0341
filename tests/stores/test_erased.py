"""What is erased, and the entry of thoughts that have none."""

from stores.samples import ORIGIN, turn
from thoughtline.stores.erased import erased, is_erased, unfiled_entry
from thoughtline.stores.rules import read_thought


def stored():
    (draft,) = [d for d in turn("s", "t1", '"hm"').drafts if d.type == "reasoning"]
    return draft.version, draft.data


def test_a_thought_is_erased_once():
    thought = stored()
    assert not is_erased(*thought)
    blank = erased(*thought)
    assert is_erased(*blank) and erased(*blank) == blank
    assert read_thought(*blank).raw == "null"
    assert not is_erased(1, "{")


def test_an_entry_tells_where_its_thoughts_were_made():
    entry = unfiled_entry("s", "t1", [(1, "{"), stored()])
    assert (entry.session, entry.turn, entry.origin) == ("s", "t1", ORIGIN)
