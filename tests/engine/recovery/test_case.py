"""The evidence of a refusal: which items it names, and which thoughts of the log those are."""

from support.stored_conversations import say, target, thought
from thoughtline.engine.recovery.case import named, positions, quarantined
from thoughtline.log.index import IndexEntry, index_entry
from thoughtline.log.keys import RollingKey
from thoughtline.log.turns import Turn

ORIGIN = target("openai", "responses", "gpt-5.6").origin


def filed(*thoughts) -> IndexEntry:
    key = RollingKey()
    turn = Turn(output=(*thoughts, say("Done.")), id="t1", session="s", target=ORIGIN)
    key.add_input(turn.input)
    return index_entry(turn, key.add_output(turn.output))


def test_items_are_named_once_and_in_order():
    words = "Item 'rs_2' of type 'reasoning' … 'fc_1' … 'rs_2' was provided without …"
    assert named(words) == ["rs_2", "fc_1"]
    assert named("invalid signature") == []


def test_a_thought_is_known_by_its_seal_its_id_or_its_words():
    one, two = thought("a", ORIGIN, seal="one"), thought("b", ORIGIN, seal="two")
    entry = filed(one, two)
    assert positions(entry, two) == {1}
    assert positions(entry, thought("b", ORIGIN, seal="another")) == {1}  # the same id
    assert positions(entry, thought("c", ORIGIN, seal="another")) == frozenset()
    assert positions(None, one) == frozenset()


def test_what_is_in_quarantine_is_so_under_every_key():
    entry = filed(thought("a", ORIGIN, seal="one"))
    found = {b"x": [entry], b"y": [entry]}
    gone = quarantined(found, {"t1": frozenset({0})})
    assert [[one.quarantined for one in entries] for entries in gone.values()] == [[{0}], [{0}]]
    assert entry.quarantined == frozenset()
    assert quarantined(found, {}) is found
