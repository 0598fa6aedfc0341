import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.alterations import CHAT, TURNS
from support.histories.chat import ARGUMENTS, body, histories
from support.json_spellings import spell
from thoughtline.dialects.chat import ChatCompletions
from thoughtline.log import keys
from thoughtline.log.canonical import canonical_json, visible
from thoughtline.log.parts import Blob, Call, Carrier, Decision, Result, Text, Thought
from thoughtline.log.turns import Turn


def read(messages):
    return ChatCompletions().read(body(messages)).turns


def text(*words):
    return tuple(Text(text=word) for word in words)


def call(arguments, name="f"):
    return Call(name=name, arguments=arguments)


# --- the law: what a client does to a history does not change what is visible of it --------------


@given(histories())
def test_visible_survives_every_alteration(messages):
    before = read(messages)
    for name, alteration in CHAT.items():
        after = read(alteration(messages))
        assert views(before) == views(after), name
        for one, other in zip(
            keys.rolling_keys(before)[0], keys.rolling_keys(after)[0], strict=True
        ):
            # an output that was only thoughts may be gone
            assert one == other or None in {one, other}, name


def views(turns):
    return [(visible(t.input, is_input=True), visible(t.output)) for t in turns]


@given(histories(), st.lists(st.sampled_from([*CHAT]), min_size=2, max_size=4))
def test_visible_survives_several_at_once(messages, names):
    altered = messages
    for name in names:
        altered = CHAT[name](altered)
    assert views(read(messages)) == views(read(altered))
    assert _next_keys(read(messages)) == _next_keys(read(altered))


@given(histories())
def test_visible_survives_every_alteration_in_any_dialect(messages):
    turns = read(messages)
    for name, alteration in TURNS.items():
        altered = [alteration(turn) for turn in turns]
        assert views(turns) == views(altered), name
        assert _next_keys(turns) == _next_keys(altered), name


def _next_keys(turns):
    """Names of the turn that comes after all of these: they hang on every one of them."""
    path = keys.rolling_keys(turns)[1]
    path.add_input(text("and then?"))
    return path.add_output(text("then"))


def test_every_alteration_does_something():
    """An alteration that never alters anything would prove nothing."""
    thought = {
        "reasoning_content": " I think so. ",
        "reasoning": "r",
        "reasoning_details": [{"a": 1}],
    }
    use = {"name": "f", "arguments": '{"n": 5.0, "a":{"x":"é", "y":1}}'}
    plain = {"name": "g", "arguments": "{}"}
    calls = [
        {
            "id": "functions.f:0",
            "type": "function",
            "function": use,
            "extra_content": {"google": {"thought_signature": "s"}},
        },
        {"id": "call_2_abc", "type": "function", "function": plain},
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": " ok "} for call in calls]
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": " said ", "tool_calls": calls} | thought,
        *results,
        {"role": "user", "content": "go on"},
        {"role": "assistant", "tool_calls": calls},
        *results,
        {"role": "assistant", "content": None, "tool_calls": calls},
        *results,
        {"role": "assistant", "content": "\ufeff text "} | thought,
        {"role": "user", "content": "more"},
        {"role": "assistant", "content": [{"type": "text", "text": "parts"}]},
        {"role": "user", "content": "end"},
    ]
    assert [name for name, alter in CHAT.items() if alter(messages) == messages] == []
    turns = read(messages)
    idle = [name for name, alter in TURNS.items() if all(alter(turn) == turn for turn in turns)]
    assert idle == []


# --- what must make a difference ---------------------------------------------------------------


@given(st.lists(st.sampled_from([text("a"), text("b"), (call("{}"),)]), min_size=1, max_size=4))
def test_a_chain_names_everything_before_it(outputs):
    turns = [Turn(input=text(f"q{n}"), output=output) for n, output in enumerate(outputs)]
    whole = keys.rolling_keys(turns)[0]
    for index in range(len(turns)):
        edited = list(turns)
        edited[index] = Turn(input=text("other"), output=turns[index].output)
        made = keys.rolling_keys(edited)[0]
        for n, (old, new) in enumerate(zip(whole, made, strict=True)):
            assert (old.full == new.full) == (n < index)
            assert (old.local == new.local) == (n != index)
            assert old.content == new.content


def test_what_is_looked_up_together_begins_alike():
    said = [text("a"), text("b"), (call("{}"),)]
    found, _ = keys.rolling_keys([Turn(input=text("go"), output=output) for output in said])
    for made in found:
        assert (
            made.full[: keys.SHARED_BYTES]
            == made.local[: keys.SHARED_BYTES]
            == made.content[: keys.SHARED_BYTES]
        )
        assert len({made.full, made.local, made.content}) == 3
    assert len({made.full[: keys.SHARED_BYTES] for made in found}) == 3


def test_near_survives_when_old_turns_are_edited_away():
    turns = [Turn(input=text(f"q{n}"), output=text(f"a{n}")) for n in range(5)]
    whole = keys.rolling_keys(turns)[0]
    cut = keys.rolling_keys([Turn(input=text("summary"), output=text("ok")), *turns[2:]])[0]
    assert [key.local for key in cut[2:]] == [key.local for key in whole[3:]]
    assert [key.content for key in cut[1:]] == [key.content for key in whole[2:]]
    assert not {key.full for key in cut} & {key.full for key in whole}


# --- parallel calls ------------------------------------------------------------------------------


def parallel(order, ids=True, times=1, results=("one", "two", "three")):
    """A turn with three calls and the next one with their results, both in this order."""
    made = [Call(name="f", arguments=f"[{n}]", id=f"id{n}" if ids else "") for n in range(3)]
    given = [Result(content=text, call=made[n].id) for n, text in enumerate(results)]
    calls, answers = ([made[n] for n in order], [given[n] for n in order])
    return [
        Turn(input=text("go"), output=tuple(calls)),
        Turn(input=tuple(answers * times), output=text("Done.")),
    ]


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("times", [1, 2])
@given(order=st.permutations(range(3)))
def test_the_order_of_parallel_calls_does_not_count(ids, times, order):
    natural = keys.rolling_keys(parallel(range(3)))[0]
    assert keys.rolling_keys(parallel(order, ids, times))[0] == natural


@given(st.permutations(range(3)))
def test_results_may_come_in_the_order_of_their_ends(order):
    first, second = parallel(range(3))
    shuffled = replace(second, input=tuple(second.input[n] for n in order))
    assert keys.rolling_keys([first, shuffled])[0] == keys.rolling_keys([first, second])[0]


@pytest.mark.parametrize("ids", [True, False])
def test_which_call_a_result_is_of_counts(ids):
    one = keys.rolling_keys(parallel(range(3), ids))[0][1]
    other = keys.rolling_keys(parallel(range(3), ids, results=("two", "one", "three")))[0][1]
    assert (one.full, one.local) != (other.full, other.local)


# --- the rolling key -----------------------------------------------------------------------------


@given(histories(), st.integers(0, 6))
def test_a_rolling_key_can_be_made_in_pieces(messages, cut):
    turns = read(messages)
    whole = keys.rolling_keys(turns)[0]
    path = keys.rolling_keys(turns[:cut])[1]
    for turn, expected in zip(turns[cut:], whole[cut:], strict=True):
        if expected is not None and (cut == 0 or turns[cut - 1].output):
            path.add_input(turn.input)
            assert path.add_output(turn.output) == expected
        else:
            break


def test_a_path_knows_what_it_leads_to():
    first = [Turn(input=text("q"), output=text("a")), Turn(input=text("r"))]
    path = keys.rolling_keys(first)[1]
    for said in ("b", "c"):
        assert path.leads_to(path.keys_for(text(said)))
    compacted = [replace(first[0], input=text("summary")), *first[1:]]
    assert path.leads_to(keys.rolling_keys(compacted)[1].keys_for(text("b")))
    other = keys.rolling_keys([Turn(input=text("q"), output=text("x")), Turn(input=text("r"))])[1]
    assert not path.leads_to(other.keys_for(text("b")))
    assert not path.leads_to(keys.rolling_keys([Turn(input=text("r"), output=text("b"))])[0][0])


def test_asking_for_keys_takes_nothing_in():
    path = keys.rolling_keys([Turn(input=text("q"), output=text("a")), Turn(input=text("r"))])[1]
    assert path.keys_for(text("b")) == path.keys_for(text("b")) == path.add_output(text("b"))


def test_what_was_heard_before_an_empty_answer_stays_in_the_chain():
    """aider's empty assistant messages; models that think and then say nothing."""
    silent = Turn(input=text("hello"))
    last = Turn(input=text("hm?"), output=text("yes"))
    captured = Turn(input=text("hello"), output=(Thought(carrier=Carrier.THINK, raw='"t"'),))
    other = Turn(input=text("goodbye"))
    assert keys.rolling_keys([silent, last])[0][0] is None
    assert keys.rolling_keys([silent, last])[0][1] == keys.rolling_keys([captured, last])[0][1]
    assert keys.rolling_keys([silent, last])[0][1] != keys.rolling_keys([last])[0][0]
    assert keys.rolling_keys([silent, last])[0][1] != keys.rolling_keys([other, last])[0][1]


def test_a_turn_that_waits_has_no_keys_and_is_taken_up():
    waiting = Turn(input=text("hello"))
    found, path = keys.rolling_keys([waiting])
    assert found == [None]
    assert (
        path.add_output(text("hi"))
        == keys.rolling_keys([Turn(input=text("hello"), output=text("hi"))])[0][0]
    )


# --- seals and names ---------------------------------------------------------------------------


def test_names_of_different_kinds_never_meet():
    names = [
        keys.reference_key("item", "a"),
        keys.reference_key("response", "a"),
        keys.seal_key(keys.string_digest("a")),
    ]
    names += [
        keys.reference_key("it", "ema"),
        keys.reference_key("item", ""),
        keys.seal_key(keys.string_digest("")),
    ]
    assert len(set(names)) == len(names)
    assert {len(name) for name in names} == {keys.KEY_SIZE}


@given(st.text(max_size=10) | st.just("\ud83d"))
def test_seals_tell_values_apart_without_keeping_them(value):
    assert len(keys.string_digest(value)) == 2 * keys.KEY_SIZE
    assert keys.string_digest(value) != keys.string_digest(value + "x")


@given(ARGUMENTS, st.integers(0, 2**32))
def test_digests_are_blind_to_formatting(value, seed):
    assert keys.json_digest(value) == keys.json_digest(json.loads(spell(value, Random(seed))))
    assert canonical_json({"b": 1, "a": ["\ud83d"]}) == '{"a":["\\ud83d"],"b":1}'


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize(
    "part",
    [
        Call(name="run", arguments='{"b": 1.0, "a": "é"}', id="c"),
        Call(name="", arguments=""),
        Result(content=" 5 files\n", call="c"),
        Result(content="\ud83d"),
        Blob(kind="image", digest="d"),
        Thought(carrier=Carrier.REASONING, raw='"x"'),
    ],
)
def test_the_short_way_for_any_other_single_part_is_the_long_way(part, heard):
    more = [part, Decision(call="c", verdict="allow")]
    assert visible([part], is_input=heard) == visible(more, is_input=heard)
    thought = Thought(carrier=Carrier.REASONING, raw='"x"')
    rolling = keys.RollingKey()
    assert rolling.keys_for((thought, part)) == rolling.keys_for((thought, *more))


# --- several texts, each trimmed -------------------------------------------------------------------


def keys_of(*texts):
    turns = [
        Turn(input=text("Hi."), output=text("Yes.")),
        Turn(input=text("Go."), output=text(*texts)),
    ]
    return keys.rolling_keys(turns)[0][1]


@pytest.mark.parametrize("texts", [("a. ", "b."), ("a.", "\n\nb.\n"), (" a.", " ", "b.")])
def test_an_output_is_also_filed_with_each_of_its_texts_trimmed(texts):
    emitted, echoed = keys_of(*texts), keys_of(*(one.strip() for one in texts))
    assert emitted.trimmed == (echoed.full, echoed.local, echoed.content)
    assert emitted.full != echoed.full
    assert echoed.trimmed == ()


@pytest.mark.parametrize("texts", [("a. ",), ("a.", "b."), (" a.", "b. ")])
def test_it_is_not_where_that_makes_no_difference(texts):
    assert keys_of(*texts).trimmed == ()


def test_where_there_are_calls_only_they_count():
    turn = Turn(input=text("Go."), output=(*text("a. ", "b."), call("{}")))
    assert keys.rolling_keys([turn])[0][0].trimmed == ()
