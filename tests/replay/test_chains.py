"""Equal moves are not one conversation: what a weak match needs, and what speaks against it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.stored_conversations import (
    StoredConversations,
    ask,
    call,
    result,
    say,
    strip,
    target,
)
from thoughtline.log.decisions import MatchLevel
from thoughtline.log.parts import Call, Result, Text
from thoughtline.log.turns import Turn
from thoughtline.replay.match import match_turns
from thoughtline.replay.proof import looks_random

TALK = [
    ([ask("mend the parser")], [call("ls")]),
    ([result("a.py")], [call("cat", path="a.py")]),
    ([result("code")], [call("test")]),
    ([result("ok")], [say("It works.")]),
    ([ask("go on")], [call("ls", path="docs")]),
    ([result("b.md")], [call("cat", path="b.md")]),
    ([result("text")], [say("All is well.")]),
]


def matches(stored, turns, **facts):
    path = stored.path(turns, **facts)
    return match_turns(path, stored.look_up(path)).turns


def found(stored, turns, **facts):
    """The turns that were found, by number; None for those that were not."""
    return [
        int(m.entry.turn.split(".")[1]) if m.entry else None
        for m in matches(stored, turns, **facts)
        if m is not None
    ]


def with_ids(talk, prefix):
    """A conversation whose call ids look random."""
    return [
        (
            heard,
            [
                replace(part, id=f"call_{prefix}{number:02}a1b2c3d4e5")
                if type(part) is Call
                else part
                for part in spoken
            ],
        )
        for number, (heard, spoken) in enumerate(talk)
    ]


def edited(turns, number, *input):
    return [*turns[:number], replace(turns[number], input=input), *turns[number + 1 :]]


# -- other words of a user -------------------------------------------------------------------------


@pytest.mark.parametrize("talk", [TALK, with_ids(TALK, "one")], ids=["counted", "random"])
def test_a_look_alike_that_is_not_in_the_log_gets_nothing(talk):
    """It began with another question, before the gateway was there; or it was deleted since."""
    stored = StoredConversations()
    lived = strip(stored.converse(talk))
    other = (
        strip(StoredConversations().converse(with_ids(talk, "two"))) if talk is not TALK else lived
    )
    for length in range(1, len(TALK) + 1):
        request = [*edited(other, 0, ask("write the release notes"))[:length], other[-1]]
        assert not any(m and m.entry for m in matches(stored, request)), length


def test_what_follows_other_words_is_another_conversation():
    """Up to there all is the same, and nobody can tell the two apart."""
    stored = StoredConversations()
    lived = strip(stored.converse(TALK))
    assert found(stored, edited(lived, 4, ask("stop"))) == [0, 1, 2, 3, None, None, None]


@pytest.mark.parametrize("said", [(), ("hurry",)])
def test_words_beside_a_result_count(said):
    stored = StoredConversations()
    hurried = [*TALK[:1], ([result("a.py"), ask("slowly")], TALK[1][1]), *TALK[2:]]
    lived = strip(stored.converse(hurried))
    other = edited(lived, 1, result("a.py"), *map(ask, said))
    assert found(stored, other) == [0, *[None] * 6]


def test_words_that_the_log_has_not_count_too():
    stored = StoredConversations()
    lived = strip(stored.converse(TALK))
    assert found(stored, edited(lived, 1, result("a.py"), ask("hurry"))) == [0, *[None] * 6]


def test_a_client_that_names_its_turns_may_edit_its_words():
    """Ids that look random are the turn's own, and the plain turns stand between such."""
    stored = StoredConversations()
    lived = strip(stored.converse(with_ids(TALK, "one")))
    assert found(stored, edited(lived, 0, ask("mend it"))) == list(range(7))
    assert found(stored, edited(lived, 4, ask("go on then"))) == list(range(7))


def test_so_may_one_that_names_its_session():
    stored = StoredConversations()
    lived = strip(stored.converse(TALK, hints=("mine",)))
    assert found(stored, edited(lived, 0, ask("mend it")), hints=("mine",)) == list(range(7))


def test_a_proven_turn_decides_those_before_it_whatever_the_client_did_to_their_words():
    stored = StoredConversations()
    talk = [([ask("hi")], [say("Hello.")]), *with_ids(TALK, "one")]
    lived = strip(stored.converse(talk))
    assert found(stored, edited(lived, 0, ask("hi there"))) == list(range(8))


# -- what is left out or altered -------------------------------------------------------------------


def test_old_results_may_be_cleared():
    """The user's words are all there."""
    stored = StoredConversations()
    lived = strip(stored.converse(TALK))
    cleared = edited(edited(lived, 1, result("[cleared]")), 2, result("[cleared]"))
    assert found(stored, cleared) == list(range(7))


@pytest.mark.parametrize("number", [1, 2])
def test_within_a_loop_an_output_may_be_altered(number):
    """What follows it answers the same words as the certain turns before it."""
    stored = StoredConversations()
    lived = strip(stored.converse([*TALK[:3], ([result("ok")], [call("ls")]), *TALK[3:]]))
    pruned = [*lived]
    pruned[number] = replace(lived[number], output=(call("cat", path="(shortened)"),))
    assert found(stored, pruned) == [None if at == number else at for at in range(8)]


def test_where_a_user_speaks_in_between_those_words_must_be_known():
    """The log has them at the altered output, which is not looked up."""
    stored = StoredConversations()
    lived = strip(stored.converse([*TALK, ([ask("more")], [say("More.")])]))
    lived[4] = replace(lived[4], output=(call("ls", path="(shortened)"),))
    assert found(stored, [*lived[:7], lived[-1]]) == [0, 1, 2, 3, None, None, None]
    assert found(stored, lived) == [0, 1, 2, 3, None, None, None, 7]


def test_a_tail_without_its_user_message_is_not_recognised():
    stored = StoredConversations()
    lived = strip(stored.converse(TALK))
    tail = [replace(lived[1], input=(ask("Summary"),)), *lived[2:4], lived[-1]]
    assert found(stored, tail) == [None] * 3
    named = StoredConversations()
    lived = strip(named.converse(with_ids(TALK, "one")))
    tail = [replace(lived[1], input=(ask("Summary"),)), *lived[2:4], lived[-1]]
    assert found(named, tail) == [1, 2, 3]


def test_a_tail_is_not_extended_to_a_turn_whose_input_a_summary_replaces():
    stored = StoredConversations()
    lived = strip(stored.converse(TALK))
    tail = [replace(lived[3], input=(ask("Summary"),)), *lived[4:]]
    assert found(stored, tail) == [None, 4, 5, 6]


# -- ids -------------------------------------------------------------------------------------------


def kept(lived):
    """A tail behind a summary that the model answered."""
    return [Turn(input=(ask("Summary"),), output=(say("I see."),)), *lived[4:]]


def test_other_random_ids_are_of_another_turn():
    stored = StoredConversations()
    stored.converse(with_ids(TALK, "one"))
    other = strip(StoredConversations().converse(with_ids(TALK, "two")))
    assert found(stored, kept(other)) == [None] * 4


def test_ids_that_a_client_counts_or_drops_are_no_other_ids():
    stored = StoredConversations()
    stored.converse(with_ids(TALK, "one"))
    for id in ("toolu_1", "call00c6e", ""):
        renamed = [
            (heard, [replace(p, id=id) if type(p) is Call else p for p in spoken])
            for heard, spoken in TALK
        ]
        lived = strip(StoredConversations().converse(renamed))
        assert found(stored, kept(lived)) == [None, 4, 5, 6], id


def test_the_whole_history_is_recognised_under_any_ids():
    stored = StoredConversations()
    stored.converse(with_ids(TALK, "one"))
    lived = strip(StoredConversations().converse(with_ids(TALK, "two")))
    answers = matches(stored, lived)
    assert {m.level for m in answers[:-1]} == {MatchLevel.FULL}
    assert found(stored, lived) == list(range(7))


def test_the_name_of_a_tool_does_not_make_its_id_random():
    assert not looks_random("functions.base64encoder:0", "base64encoder")
    assert looks_random("base64encoder-c6e8f9a7b1d2", "base64encoder")
    stored = StoredConversations()
    stored.converse([([ask("one")], [call("base64encoder")])])
    other = [Turn(input=(ask("two"),), output=(call("base64encoder"),)), Turn(input=(result("x"),))]
    assert found(stored, other) == [None]


# -- rivals ----------------------------------------------------------------------------------------


def test_in_a_kept_tail_a_rival_of_another_endpoint_loses():
    stored = StoredConversations()
    here, there = target("kimi", model="kimi-k2.6"), target("mistral", model="magistral")
    lived = strip(stored.converse(TALK, to=here))
    first = [([ask("another beginning")], TALK[0][1]), *TALK[1:]]
    stored.converse(first, to=there)
    tail = kept(lived)
    for home, session in ((here, "s1"), (there, "s2")):
        answers = matches(stored, tail, target=home.origin)
        assert [m.entry and m.entry.turn for m in answers[:-1]] == [
            None,
            *[f"{session}.{n}" for n in (4, 5, 6)],
        ]
    assert found(stored, tail) == [None] * 4  # where nobody knows where it goes


def test_two_of_one_endpoint_stay_a_tie():
    stored = StoredConversations()
    lived = strip(stored.converse(TALK))
    stored.converse([([ask("another beginning")], TALK[0][1]), *TALK[1:]])
    assert found(stored, kept(lived), target=target().origin) == [None] * 4


def test_where_the_whole_history_is_that_of_others_it_is_no_kept_tail():
    """Two began with these words, so they are a tie; a third one said them later."""
    stored = StoredConversations()
    first = ([ask("go on")], [call("ls")])
    lived = strip(stored.converse([first, ([result("x")], [call("cat")])]))
    stored.converse([first])
    stored.converse([([ask("hi")], [say("Hello.")]), first, ([result("x")], [call("test")])])
    assert (
        found(stored, [lived[0], replace(lived[1], output=(call("test"),)), lived[-1]])
        == [None] * 2
    )


# -- nothing crosses -------------------------------------------------------------------------------

_moves = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["ls", "cat", "Done.", "Yes."])),
    min_size=1,
    max_size=8,
)
_ids = st.sampled_from(["", "counted", "random"])


def _written(moves, ids, salt):
    """A conversation of these moves; a result follows a call, words may stand beside it."""
    talk = []
    for number, (heard, spoken) in enumerate(moves):
        after_call = number and moves[number - 1][1].islower()
        if not after_call:
            given = [ask(heard)]
        else:
            given = (
                [result(heard), ask("hm")] if heard == "b" and number % 3 == 0 else [result("x")]
            )
        made = call(spoken, id=_id(ids, spoken, number, salt)) if spoken.islower() else say(spoken)
        talk.append((given, [made]))
    return talk


def _id(ids, name, number, salt):
    return {
        "": "",
        "counted": f"functions.{name}:{number}",
        "random": f"{salt}{number:02}a1b2c3d4",
    }[ids]


@given(_moves, _ids, st.booleans(), st.data())
def test_nothing_goes_to_a_look_alike_that_is_not_in_the_log(moves, ids, fork, data):
    """Two conversations share all moves but one user message, and only one of them was recorded.

    Up to that message they are visibly one. A fork has its ids there, too.
    """
    stored = StoredConversations()
    one = _written(moves, ids, "call_one")
    stored.converse(one)
    spoken = [at for at, (given, _) in enumerate(one) if any(type(p) is Text for p in given)]
    at = data.draw(st.sampled_from(spoken))
    two = _written(moves, ids, "call_two")
    two = [*(one if fork else two)[:at], *two[at:]]
    given = [p for p in two[at][0] if type(p) is Result]
    two[at] = ([*given, ask("something else")], two[at][1])
    for cleared in data.draw(st.sets(st.integers(0, len(two) - 1), max_size=2)):
        if all(type(p) is Result for p in two[cleared][0]):
            two[cleared] = ([result("[cleared]")], two[cleared][1])
    request = strip(StoredConversations().converse(two))
    assert found(stored, request)[at:] == [None] * (len(two) - at)
