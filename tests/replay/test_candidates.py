"""The logged turns that one output may echo, each at its strongest level."""

from msgspec.structs import replace

from support.stored_conversations import TALK, StoredConversations, ask, strip
from thoughtline.log.decisions import MatchLevel
from thoughtline.replay.candidates import Candidates
from thoughtline.replay.proof import Echo


def candidates(stored, turns, index):
    path = stored.path(turns)
    found, keys = stored.look_up(path), path.keys[index]
    return Candidates(Echo(path.turns[index]), keys, found, found.get(keys.full, ()))


def test_each_turn_stands_at_its_strongest_level():
    stored = StoredConversations()
    lived = strip(stored.converse(TALK))
    stored.converse([([ask("something else")], TALK[0][1]), *TALK[1:]])
    second, last = (candidates(stored, lived, index) for index in (0, 2))
    assert {id: level for id, (_, level) in second.by_turn.items()} == {
        "s1.0": MatchLevel.FULL,
        "s2.0": MatchLevel.CONTENT,
    }
    assert [entry.turn for entry in last.at_level(MatchLevel.LOCAL)] == ["s2.2"]
    assert last.level(stored.index["s1.2"]) is MatchLevel.FULL


def test_a_turn_is_found_by_its_id_whatever_its_level():
    stored = StoredConversations()
    lived = strip(stored.converse(TALK))
    here = candidates(stored, [replace(lived[0], input=(ask("other"),)), *lived[1:]], 1)
    match = here.match("s1.1", "lineage")
    assert (match.entry.turn, match.level, match.reason) == ("s1.1", MatchLevel.LOCAL, "lineage")
    assert here.match("s1.0", "") is None
