"""Which remembered turn is meant: match levels, ties, corroboration, and never another conversation's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.stored_conversations import StoredConversations, ask, call, result, say, strip
from thoughtline.log import keys
from thoughtline.log.decisions import MatchLevel
from thoughtline.log.parts import Call, Text
from thoughtline.log.turns import Turn
from thoughtline.replay.match import match_by_evidence, match_lineage, match_turns

RANDOM_ID = "call_00_c6e8f9a7b1d2"
TALK = [
    ([ask("list the files")], [call("ls", path=".")]),
    ([result("a.txt")], [say("One file."), call("cat", path="a.txt")]),
    ([result("hello")], [say("It says hello.")]),
]


def matches(stored, turns, **facts):
    path = stored.path(turns, **facts)
    return match_turns(path, stored.look_up(path)).turns


def found(stored, turns, **facts):
    return [m.entry.turn if m and m.entry else None for m in matches(stored, turns, **facts)]


def test_an_exact_history_is_found_on_the_chain():
    stored = StoredConversations()
    lived = stored.converse(TALK)
    answers = matches(stored, strip(lived))
    assert [m.entry.turn for m in answers[:-1]] == ["s1.0", "s1.1", "s1.2"]
    assert {m.level for m in answers[:-1]} == {MatchLevel.FULL}
    assert answers[-1] is None  # the turn to be answered


def test_a_plain_turn_is_a_turn_like_any_other():
    stored = StoredConversations()
    lived = stored.converse([([ask("hi")], [say(" Hello! ")])])
    assert found(stored, strip(lived))[0] == "s1.0"


def test_another_tenants_archive_is_not_asked():
    stored, other = StoredConversations(), StoredConversations()
    lived = other.converse(TALK)
    assert found(stored, strip(lived)) == [None] * 4


def test_text_beside_calls_may_be_gone():
    stored = StoredConversations()
    lived = stored.converse(TALK)
    bare = [
        replace(t, output=tuple(p for p in t.output if not isinstance(p, Text)) or t.output)
        for t in strip(lived)
    ]
    assert found(stored, bare)[:3] == ["s1.0", "s1.1", "s1.2"]


def test_two_conversations_that_look_alike_are_ambiguous():
    stored = StoredConversations()
    lived = stored.converse(TALK)
    stored.converse(TALK)
    answers = matches(stored, strip(lived))
    assert {(m.entry, m.reason) for m in answers[:-1]} == {(None, "ambiguous")}


def test_equal_thoughts_are_no_ambiguity():
    stored = StoredConversations()
    lived = stored.converse(TALK, silent=range(3))
    stored.converse(TALK, silent=range(3))
    assert None not in found(stored, strip(lived))[:-1]


def test_ids_break_a_tie():
    stored = StoredConversations()
    mine = stored.converse([([ask("go")], [call("ls", id=RANDOM_ID)])])
    stored.converse([([ask("go")], [call("ls", id="call_00_ffffffffffff")])])
    assert found(stored, strip(mine))[0] == "s1.0"


def test_repeating_ids_do_not_break_a_tie():
    stored = StoredConversations()
    mine = stored.converse([([ask("go")], [call("ls")])])
    stored.converse([([ask("go")], [call("ls")])])
    assert found(stored, strip(mine))[0] is None


def test_session_hints_break_a_tie():
    stored = StoredConversations()
    stored.converse(TALK, hints=("one",))
    lived = stored.converse(TALK, hints=("two",))
    assert found(stored, strip(lived), hints=("two",))[:3] == ["s2.0", "s2.1", "s2.2"]


def test_a_certain_turn_settles_the_ones_before_it():
    stored = StoredConversations()
    mine = stored.converse([*TALK, ([ask("mine")], [say("Only here.")])])
    stored.converse([*TALK, ([ask("other")], [say("Only there.")])])
    assert found(stored, strip(mine))[:4] == ["s1.0", "s1.1", "s1.2", "s1.3"]


def test_what_follows_an_edited_result_is_found_by_neighbours():
    stored = StoredConversations()
    lived = strip(stored.converse([*TALK, ([ask("more")], [say("More, then.")])]))
    edited = [lived[0], replace(lived[1], input=(result("[cleared]"),)), *lived[2:]]
    answers = matches(stored, edited)
    assert [m.entry.turn if m.entry else None for m in answers[:4]] == [
        "s1.0",
        "s1.1",
        "s1.2",
        "s1.3",
    ]
    assert answers[3].level is MatchLevel.LOCAL


def test_a_compacted_history_keeps_its_tail():
    stored = StoredConversations()
    lived = strip(
        stored.converse(
            [*TALK, ([ask("more")], [call("ls", path="/")]), ([result("x")], [say("x.")])]
        )
    )
    compacted = [
        Turn(input=(ask("Summary: we looked at files."), *lived[2].input), output=lived[2].output),
        *lived[3:],
    ]
    assert found(stored, compacted)[1:3] == ["s1.3", "s1.4"]


@pytest.mark.parametrize("front", [(), ("Summary",), ("Summary", "and what is left to do")])
def test_a_summary_may_stand_in_front_of_the_users_words(front):
    stored = StoredConversations()
    talk = [([ask("first")], [say("ok")]), ([ask("look")], [call("ls")])]
    lived = strip(stored.converse([*talk, ([result("x")], [call("cat")])]))
    summary = tuple(map(ask, front))
    kept = [replace(lived[1], input=(*summary, ask("look"))), *lived[2:]]
    assert found(stored, kept)[:2] == ["s1.1", "s1.2"]
    other = [replace(lived[1], input=(*summary, ask("look here"))), *lived[2:]]
    assert not any(found(stored, other))
    stored.converse([([ask("second")], [say("ok")]), *talk[1:], ([result("x")], [call("cat")])])
    assert not any(found(stored, kept))  # two of them are a tie


def test_one_kept_turn_is_not_recognised_by_its_words_alone():
    """Nobody has seen the result of its calls: another conversation may ask and do the same."""
    stored = StoredConversations()
    lived = strip(stored.converse([([ask("first")], [say("ok")]), ([ask("look")], [call("ls")])]))
    kept = [replace(lived[1], input=(ask("Summary"), ask("look"))), Turn(input=(result("x"),))]
    assert not any(found(stored, kept))


def test_the_same_words_alone_are_not_the_same_turn():
    stored = StoredConversations()
    stored.converse([([ask("one thing")], [say("Done.")])])
    unknown = [
        Turn(input=(ask("another thing"),), output=(say("Done."),)),
        Turn(input=(ask("next"),)),
    ]
    answer = matches(stored, unknown)[0]
    assert (answer.entry, answer.reason) == (None, "uncorroborated")


def test_the_same_calls_with_a_telling_id_are():
    stored = StoredConversations()
    stored.converse([([ask("one thing")], [call("ls", id=RANDOM_ID)])])
    edited = [
        Turn(input=(ask("one thing, at 12:03"),), output=(call("ls", id=RANDOM_ID),)),
        Turn(input=(result("x"),)),
    ]
    answer = matches(stored, edited)[0]
    assert answer.entry.turn == "s1.0"
    assert answer.level is MatchLevel.CONTENT


def test_a_seal_the_client_brings_names_its_turn():
    from support.stored_conversations import target

    stored = StoredConversations()
    lived = stored.converse(TALK, to=target("openai", "responses", "gpt-5.6"))
    echoed = [
        Turn(
            input=(ask("rewritten by a client"),),
            output=(lived[0].output[0], say("also rewritten")),
        )
    ]
    answer = matches(stored, echoed)[0]
    assert (answer.entry.turn, answer.level) == ("s1.0", MatchLevel.SEAL)


def test_a_turn_stands_in_a_path_only_once():
    stored = StoredConversations()
    lived = stored.converse([([ask("go")], [call("ls", id=RANDOM_ID)])])
    twice = [*strip(lived)[:1], *strip(lived)[:1], Turn(input=(ask("next"),))]
    assert [t for t in found(stored, twice) if t] == ["s1.0"]


# -- nothing crosses -----------------------------------------------------------------------------

_inputs = st.sampled_from(["a", "b"])
_outputs = st.sampled_from(["ls", "cat", "Done.", "Yes."])
_talks = st.lists(st.tuples(_inputs, _outputs), min_size=1, max_size=5)


def _written(talk):
    made = []
    for number, (heard, spoken) in enumerate(talk):
        after_call = number and talk[number - 1][1].islower()
        part = result(heard) if after_call else ask(heard)
        made.append(([part], [call(spoken) if spoken.islower() else say(spoken)]))
    return made


def _altered(data, turns):
    """Something a client may do to a history."""
    turns = list(turns)
    kind = data.draw(
        st.sampled_from(
            ["as is", "cut the head", "compact", "edit an input", "drop a turn", "edit an output"]
        )
    )
    at = data.draw(st.integers(0, len(turns) - 1))
    if kind == "cut the head":
        return turns[at:], at
    if kind == "compact":
        summary = ask(data.draw(_inputs))
        return [replace(turns[at], input=(summary, *turns[at].input)), *turns[at + 1 :]], at
    if kind == "edit an input":  # into words of another one: a tail of that may look the same
        turns[at] = replace(turns[at], input=(ask("words that nobody else has said"),))
    elif kind == "edit an output":
        turns[at] = replace(turns[at], output=(say(data.draw(_outputs)),))
    elif kind == "drop a turn" and at < len(turns) - 1:
        del turns[at]
    return turns, 0


@given(st.lists(_talks, min_size=1, max_size=5), st.data())
def test_a_turn_is_never_taken_for_one_of_another_conversation(talks, data):
    """Many conversations of few words; whatever is found is this very turn, or looks the same.

    Everything said so far being equal is the one case in which two conversations cannot be told
    apart; then both have it, and the tie is a miss unless their thoughts are equal.
    """
    stored = StoredConversations()
    lived = [stored.converse(_written(talk)) for talk in talks]
    which = data.draw(st.integers(0, len(lived) - 1))
    mine = strip(lived[which])[:-1]
    request, _ = _altered(data, mine)
    pending = [*request, Turn(input=(ask("next"),))]
    path = stored.path(pending)
    for position, answer in enumerate(matches(stored, pending)):
        if answer is None or answer.entry is None or answer.entry.session == f"s{which + 1}":
            continue
        number = int(answer.entry.turn.split(".")[1])
        theirs, _ = keys.rolling_keys(lived[int(answer.entry.session[1:]) - 1])
        assert path.keys[position].full == theirs[number].full, (answer, pending)


def _reparented(data, stored):
    """An archive in which a turn continues another one than it did, or is filed no more."""
    turns = sorted(stored.index)
    one, other = data.draw(st.sampled_from(turns)), data.draw(st.sampled_from(["", *turns]))
    kind = data.draw(st.sampled_from(["as is", "forget", "another parent", "once more"]))
    entry = stored.index[one]
    if kind in ("forget", "another parent"):
        stored.forget(one)
    if kind == "another parent":
        stored.file(replace(entry, parent=other))
    elif kind == "once more":
        stored.file(replace(entry, turn=f"{one}.again"))


@given(st.lists(_talks, min_size=1, max_size=3), st.data())
def test_lineage_alone_finds_what_all_evidence_finds(talks, data):
    stored = StoredConversations()
    lived = [stored.converse(_written(talk)) for talk in talks]
    _reparented(data, stored)
    request, _ = _altered(data, strip(data.draw(st.sampled_from(lived)))[:-1])
    path = stored.path([*request, Turn(input=(ask("next"),))])
    answers = stored.look_up(path)
    alone = match_lineage(path, answers)
    assert alone is None or alone == match_by_evidence(path, answers)


def test_lineage_alone_is_enough_where_nothing_else_looks_alike():
    stored = StoredConversations()
    path = stored.path(strip(stored.converse(TALK)))
    alone = match_lineage(path, stored.look_up(path))
    assert alone is not None
    assert alone.last.turn == "s1.2"
    assert [match.reason for match in alone.turns[:-1]] == ["lineage", "lineage", ""]


def test_calls_are_compared_with_their_arguments():
    stored = StoredConversations()
    lived = stored.converse([([ask("go")], [call("ls", path="/a")])])
    other = [
        replace(strip(lived)[0], output=(Call(name="ls", arguments='{"path":"/b"}'),)),
        strip(lived)[1],
    ]
    assert found(stored, other)[0] is None
