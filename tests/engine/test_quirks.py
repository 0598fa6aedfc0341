from thoughtline.engine.quirks import joined as both
from thoughtline.engine.quirks import strengthened
from thoughtline.log.quirks import Need, Quirk
from thoughtline.providers.contracts import find_policy


def test_quirks_add_up_and_the_later_one_counts():
    old = Quirk(need=Need.REQUIRED, lost='""', drops=("a",), strip_item_ids=True)
    new = Quirk(lost='" "', drops=("b",), strip_item_ids=False)
    made = both(old, new)
    assert made == Quirk(need=Need.REQUIRED, lost='" "', drops=("a", "b"), strip_item_ids=False)
    row = find_policy("generic", "chat", "m")
    assert strengthened(row, Quirk(short_call_ids=True)) is row
    assert (strengthened(row, made).need, strengthened(row, made).lost) == (Need.REQUIRED, '" "')
