"""Several logged turns fit an output: which one is meant, and when that stays unknown."""

import pytest
from msgspec.structs import replace

from support.stored_conversations import StoredConversations, ask, call, result, say, strip, target
from thoughtline.clock import uuid7
from thoughtline.log import keys
from thoughtline.log.decisions import MatchLevel
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Origin, Text, Thought
from thoughtline.log.turns import Turn
from thoughtline.replay import ties
from thoughtline.replay.match import EQUAL, OPEN, match_turns
from thoughtline.replay.proof import Echo

TALK = [
    ([ask("list the files")], [call("ls", path=".")]),
    ([result("a.txt")], [call("cat", path="a.txt")]),
    ([result("hello")], [say("It says hello.")]),
]
HOME = Origin(provider="kimi", endpoint="here", account="mine")


def matched(stored, turns, **facts):
    path = stored.path(turns, **facts)
    matches = match_turns(path, stored.look_up(path)).turns
    return [m.entry.turn if m.entry else m.reason for m in matches if m is not None]


def entry(turn, continued=0, origin=HOME, **fields):
    return IndexEntry(session=f"s-{turn}", turn=turn, origin=origin, continued=continued, **fields)


# -- the one that nobody has continued ------------------------------------------------------------


def test_a_second_run_is_followed_from_turn_to_turn():
    stored = StoredConversations()
    stored.converse(TALK)
    for number in range(1, 3):
        again = stored.converse(TALK[:number], session=f"run-{number}")
        assert matched(stored, strip(again)) == [f"run-{number}.{n}" for n in range(number)]
        for turn in again:
            stored.forget(turn.id)


def test_two_open_ones_are_a_tie_all_the_way():
    stored = StoredConversations()
    lived = stored.converse(TALK)
    stored.converse(TALK)
    assert matched(stored, strip(lived)) == ["ambiguous"] * 3


def test_a_tie_counts_as_not_recognised():
    stored = StoredConversations()
    lived = stored.converse(TALK[:1])
    stored.converse(TALK[:1])
    plan = stored.plan_replay(strip(lived))
    (decision,) = plan.decisions
    assert (decision.tied, decision.missed, decision.level) == (True, False, MatchLevel.NONE)
    assert plan.parent is None


def test_what_came_after_a_tie_decides_it_and_nothing_else():
    """Who was continued counts only for the turn that is continued now."""
    stored = StoredConversations()
    stored.converse(TALK)  # continued
    open_one = stored.converse(TALK[:1])
    orphan = stored.converse([([ask("x")], [say("y")])], session="orphan")
    path = [
        *strip(open_one)[:1],
        Turn(input=(ask("x"),), output=(say("y"),)),
        Turn(input=(ask("z"),)),
    ]
    key = keys.rolling_keys(path)[0][1]
    stored.file(replace(stored.index[orphan[0].id], keys=(key.full, key.local, key.content)))
    assert matched(stored, path) == ["ambiguous", "orphan.0"]


@pytest.mark.parametrize(
    ("tied", "meant"),
    [
        ([entry("a", 2), entry("b", 0)], "b"),
        ([entry("a", 1), entry("b", 0)], "b"),
        ([entry("a", 2), entry("b", 1)], "b"),  # its continuation may have been lost
        ([entry("a", 0), entry("b", 0)], None),
        ([entry("a", 1), entry("b", 1), entry("c", 2)], None),
        ([entry("a", 2), entry("b", 2)], None),
        ([entry("a", 0), entry("b", None)], None),  # not known
    ],
)
def test_the_least_continued_is_meant(tied, meant):
    chosen = ties.open_turn(tied, HOME)
    assert (chosen.turn if chosen else None) == meant


AWAY = replace(HOME, endpoint="there")


@pytest.mark.parametrize("away", [AWAY, replace(HOME, account="x"), replace(HOME, provider="x")])
@pytest.mark.parametrize(
    ("here", "there", "meant"),
    [
        ([0], [0], "h0"),
        ([0], [0, 0], "h0"),
        ([1], [0], "h0"),
        ([2], [1], "h0"),
        ([2], [2], "h0"),
        ([2], [0], None),  # perhaps a conversation that moved here
        ([0, 0], [0], None),
        ([2, 2], [2], None),
        ([], [2, 0], "t1"),
        ([], [2, 1], "t1"),
        ([], [2, 2], None),
        ([], [0, 0], None),
    ],
)
def test_a_rival_of_another_endpoint_loses(away, here, there, meant):
    tied = [entry(f"h{n}", depth) for n, depth in enumerate(here)]
    tied += [entry(f"t{n}", depth, away) for n, depth in enumerate(there)]
    chosen = ties.open_turn(tied, HOME)
    assert (chosen.turn if chosen else None) == meant


def test_equal_thoughts_go_back_and_say_nothing_about_the_rest():
    """Which of the two it is stays unknown: neither is continued, and no other thought follows."""
    stored = StoredConversations()
    talk = [TALK[0], ([result("a.txt")], [say("No thought.")])]
    lived = stored.converse(talk)
    stored.converse(talk)
    for turn in list(stored.index.values()):
        if turn.turn.endswith(".1"):
            stored.forget(turn.turn)
            stored.file(replace(turn, thoughts=()))
    plan = stored.plan_replay(strip(lived))
    assert [d.reason for d in plan.decisions] == ["ambiguous", "had none"]
    assert plan.parent is None
    path = stored.path(strip(lived))
    assert [m.reason for m in match_turns(path, stored.look_up(path)).turns if m] == [
        "ambiguous",
        EQUAL,
    ]


def test_why_a_turn_was_chosen_is_told():
    stored = StoredConversations()
    stored.converse(TALK)
    path = stored.path(strip(stored.converse(TALK[:2])))
    reasons = [m.reason for m in match_turns(path, stored.look_up(path)).turns if m]
    assert reasons == ["lineage", OPEN]


# -- tries ------------------------------------------------------------------------------------------


def tries(*spans, parent="p", session="s", hints=()):
    """Turns that ran from one millisecond to another."""
    return [
        IndexEntry(
            session=session,
            turn=uuid7(began, bytes(10)),
            parent=parent,
            at=ended / 1000,
            hints=hints,
        )
        for began, ended in spans
    ]


def kept(tied, unique_hints=()):
    echo = Echo(Turn(output=(say("x"),)), unique_hints=unique_hints)
    return [e.at * 1000 for e in ties.narrow(tied, echo)]


def test_the_last_of_several_tries_is_meant():
    assert kept(tries((1, 5), (6, 9), (9, 12))) == [12]


def test_two_that_ran_at_the_same_time_are_two():
    assert kept(tries((1, 5), (4, 9))) == [5, 9]
    assert kept(tries((1, 5), (4, 9), (7, 8))) == [9, 8]


def test_roots_are_tries_only_where_the_client_names_its_session():
    assert kept(tries((1, 5), (6, 9), parent="")) == [5, 9]
    assert kept(tries((1, 5), (6, 9), parent="", hints=("h",)), ["h"]) == [9]
    assert kept(tries((1, 5), (6, 9), parent="", hints=("h",)), ["other"]) == [5, 9]


def test_children_of_different_turns_are_no_tries():
    assert kept([*tries((1, 5)), *tries((6, 9), parent="q")]) == [5, 9]
    assert kept([*tries((1, 5)), *tries((6, 9), session="z")]) == [5, 9]


def test_ids_without_a_time_are_no_tries():
    one, two = tries((1, 5), (6, 9))
    assert kept([one, replace(two, turn="t2")]) == [5, 9]


# -- proof ------------------------------------------------------------------------------------------


def test_item_ids_that_the_client_echoes_are_proof():
    stored = StoredConversations()
    to = target("openai", "responses", "gpt-5.6")
    runs = []
    for run in range(3):
        talk = [([ask("hi")], [Text(text="Hello.", id=f"msg_{run}8c1f20de94ab")])]
        runs.append(stored.converse(talk, to=to))
    for run, lived in enumerate(runs):
        assert matched(stored, strip(lived)) == [f"s{run + 1}.0"]


def test_a_signature_that_the_client_echoes_is_proof():
    stored = StoredConversations()
    to = target("gemini", "gemini", "gemini-3-pro")
    mine = stored.converse(TALK[:1], to=to)
    stored.converse(TALK[:1], to=to)
    kept_whole = [*mine, Turn(input=(result("x"),))]
    assert type(mine[0].output[0]) is Thought
    assert matched(stored, kept_whole) == ["s1.0"]


def test_an_older_turn_that_is_proven_decides_the_newer_ones():
    stored = StoredConversations()
    talk = [([ask("go")], [call("ls", id="call_c6e8f9a7b1d2")]), *TALK[1:]]
    mine = stored.converse(talk)
    stored.converse([([ask("go")], [call("ls", id="call_0123456789ab")]), *TALK[1:]])
    assert matched(stored, strip(mine)) == ["s1.0", "s1.1", "s1.2"]
