"""Which remembered turn is meant: rungs, ties, corroboration, and never another conversation's."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from thoughtline import keys
from thoughtline.matching import Rung, resolve, telling
from thoughtline.parts import Call, Text
from thoughtline.turns import Turn
from worlds import World, ask, call, result, say, strip

RANDOM_ID = "call_00_c6e8f9a7b1d2"
TALK = [
    ([ask("list the files")], [call("ls", path=".")]),
    ([result("a.txt")], [say("One file."), call("cat", path="a.txt")]),
    ([result("hello")], [say("It says hello.")]),
]


def matches(world, turns, **facts):
    path = world.path(turns, **facts)
    found = {n: world.archive[n] for n in path.names() if world.archive.get(n)}
    return resolve(path, found)


def found(world, turns, **facts):
    return [m.memory.turn if m and m.memory else None for m in matches(world, turns, **facts)]


def test_an_exact_history_is_found_on_the_chain():
    world = World()
    lived = world.converse(TALK)
    answers = matches(world, strip(lived))
    assert [m.memory.turn for m in answers[:-1]] == ["s1.0", "s1.1", "s1.2"]
    assert {m.rung for m in answers[:-1]} == {Rung.CHAIN}
    assert answers[-1] is None  # the turn to be answered


def test_a_plain_turn_is_a_turn_like_any_other():
    world = World()
    lived = world.converse([([ask("hi")], [say(" Hello! ")])])
    assert found(world, strip(lived))[0] == "s1.0"


def test_another_tenants_archive_is_not_asked():
    world, other = World(), World()
    lived = other.converse(TALK)
    assert found(world, strip(lived)) == [None] * 4


def test_text_beside_calls_may_be_gone():
    world = World()
    lived = world.converse(TALK)
    bare = [
        replace(t, output=tuple(p for p in t.output if not isinstance(p, Text)) or t.output)
        for t in strip(lived)
    ]
    assert found(world, bare)[:3] == ["s1.0", "s1.1", "s1.2"]


def test_two_conversations_that_look_alike_are_ambiguous():
    world = World()
    lived = world.converse(TALK)
    world.converse(TALK)
    answers = matches(world, strip(lived))
    assert {(m.memory, m.reason) for m in answers[:-1]} == {(None, "ambiguous")}


def test_equal_thoughts_are_no_ambiguity():
    world = World()
    lived = world.converse(TALK, think=False)
    world.converse(TALK, think=False)
    assert None not in found(world, strip(lived))[:-1]


def test_ids_break_a_tie():
    world = World()
    mine = world.converse([([ask("go")], [call("ls", id=RANDOM_ID)])])
    world.converse([([ask("go")], [call("ls", id="call_00_ffffffffffff")])])
    assert found(world, strip(mine))[0] == "s1.0"


def test_repeating_ids_do_not_break_a_tie():
    world = World()
    mine = world.converse([([ask("go")], [call("ls")])])
    world.converse([([ask("go")], [call("ls")])])
    assert found(world, strip(mine))[0] is None


def test_session_hints_break_a_tie():
    world = World()
    world.converse(TALK, hints=("one",))
    lived = world.converse(TALK, hints=("two",))
    assert found(world, strip(lived), hints=("two",))[:3] == ["s2.0", "s2.1", "s2.2"]


def test_a_certain_turn_settles_the_ones_before_it():
    world = World()
    mine = world.converse([*TALK, ([ask("mine")], [say("Only here.")])])
    world.converse([*TALK, ([ask("other")], [say("Only there.")])])
    assert found(world, strip(mine))[:4] == ["s1.0", "s1.1", "s1.2", "s1.3"]


def test_an_edited_beginning_is_found_by_neighbours():
    world = World()
    lived = strip(world.converse([*TALK, ([ask("more")], [say("More, then.")])]))
    edited = [replace(lived[0], input=(ask("list them all"),)), *lived[1:]]
    answers = matches(world, edited)
    assert [m.memory.turn if m.memory else None for m in answers[:4]] == [
        "s1.0",
        "s1.1",
        "s1.2",
        "s1.3",
    ]
    assert answers[3].rung is Rung.NEAR


def test_a_compacted_history_keeps_its_tail():
    world = World()
    lived = strip(
        world.converse(
            [*TALK, ([ask("more")], [call("ls", path="/")]), ([result("x")], [say("x.")])]
        )
    )
    compacted = [
        Turn(input=(ask("Summary: we looked at files."), *lived[2].input), output=lived[2].output),
        *lived[3:],
    ]
    assert found(world, compacted)[1:3] == ["s1.3", "s1.4"]


def test_the_same_words_alone_are_not_the_same_turn():
    world = World()
    world.converse([([ask("one thing")], [say("Done.")])])
    stranger = [
        Turn(input=(ask("another thing"),), output=(say("Done."),)),
        Turn(input=(ask("next"),)),
    ]
    answer = matches(world, stranger)[0]
    assert (answer.memory, answer.reason) == (None, "uncorroborated")


def test_the_same_calls_with_a_telling_id_are():
    world = World()
    world.converse([([ask("one thing")], [call("ls", id=RANDOM_ID)])])
    edited = [
        Turn(input=(ask("one thing, at 12:03"),), output=(call("ls", id=RANDOM_ID),)),
        Turn(input=(result("x"),)),
    ]
    answer = matches(world, edited)[0]
    assert answer.memory.turn == "s1.0"
    assert answer.rung is Rung.ALONE


def test_a_seal_the_client_brings_names_its_turn():
    from worlds import target

    world = World()
    lived = world.converse(TALK, to=target("openai", "responses", "gpt-5.6"))
    echoed = [
        Turn(
            input=(ask("rewritten by a client"),),
            output=(lived[0].output[0], say("also rewritten")),
        )
    ]
    answer = matches(world, echoed)[0]
    assert (answer.memory.turn, answer.rung) == ("s1.0", Rung.SEAL)


def test_a_turn_stands_in_a_path_only_once():
    world = World()
    lived = world.converse([([ask("go")], [call("ls", id=RANDOM_ID)])])
    twice = [*strip(lived)[:1], *strip(lived)[:1], Turn(input=(ask("next"),))]
    assert [t for t in found(world, twice) if t] == ["s1.0"]


def test_telling_ids():
    assert telling("call_00_c6e8f9a7b1d2") and telling("toolu_01A09q90qw90lq917835lq9")
    assert telling("chatcmpl-tool-5f3e2a1b0c9d8e7f")
    for counter in (
        "functions.list_dir:0",
        "list_dir:12",
        "Bash_0",
        "toolu_1",
        "call_1",
        "gemini-call-0",
        "",
        "call00c6e",
    ):
        assert not telling(counter), counter


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
        st.sampled_from(["as is", "cut the head", "edit an input", "drop a turn", "edit an output"])
    )
    at = data.draw(st.integers(0, len(turns) - 1))
    if kind == "cut the head":
        return turns[at:], at
    if kind == "edit an input":
        turns[at] = replace(turns[at], input=(ask(data.draw(_inputs)),))
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
    world = World()
    lived = [world.converse(_written(talk)) for talk in talks]
    which = data.draw(st.integers(0, len(lived) - 1))
    mine = strip(lived[which])[:-1]
    request, _ = _altered(data, mine)
    pending = [*request, Turn(input=(ask("next"),))]
    path = world.path(pending)
    for position, answer in enumerate(matches(world, pending)):
        if answer is None or answer.memory is None or answer.memory.session == f"s{which + 1}":
            continue
        number = int(answer.memory.turn.split(".")[1])
        theirs, _ = keys.trail(lived[int(answer.memory.session[1:]) - 1])
        assert path.keys[position].chain == theirs[number].chain, (answer, pending)


def test_calls_are_compared_with_their_arguments():
    world = World()
    lived = world.converse([([ask("go")], [call("ls", path="/a")])])
    other = [
        replace(strip(lived)[0], output=(Call(name="ls", arguments='{"path":"/b"}'),)),
        strip(lived)[1],
    ]
    assert found(world, other)[0] is None
