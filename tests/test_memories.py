import pytest

from thoughtline import keys
from thoughtline.events import Outcome
from thoughtline.memories import Memory, readable, remember, words
from thoughtline.parts import Call, Carrier, Origin, Text, Thought
from thoughtline.turns import Turn

KEYS = keys.Keys(b"c" * 16, b"n" * 16, b"a" * 16)
ORIGIN = Origin(dialect="responses", provider="openai")
SEALED = Thought(
    carrier=Carrier.ITEM, raw="{}", id="rs_1", seals=(keys.seal("gAAA"), keys.seal("gBBB"))
)
TURN = Turn(
    id="t1",
    parent="t0",
    session="s1",
    target=ORIGIN,
    outcome=Outcome.COMPLETED,
    response="resp_1",
    ended=5.0,
    quarantined=frozenset({0}),
    output=(
        SEALED,
        Text(text=" Let me look. ", id="msg_1"),
        Call(name="ls", arguments="{}", id="call_1", item="fc_1"),
        Call(name="ls", arguments="{}", id="call_2"),
    ),
)


def test_a_memory_says_where_the_turn_stands_and_how_it_ended():
    made = remember(TURN, KEYS, hints=("h",), skipped={"k": "why"})
    assert made == Memory(
        session="s1",
        turn="t1",
        parent="t0",
        origin=ORIGIN,
        outcome=Outcome.COMPLETED,
        at=5.0,
        outline="txcc",
        thoughts=(SEALED,),
        calls=("call_1", "call_2"),
        words=keys.seal("Let me look."),
        hints=("h",),
        skipped={"k": "why"},
        quarantined=frozenset({0}),
        chars=2,
        names=made.names,
    )


def test_characters_are_counted_as_people_read_them():
    plain = Thought(carrier=Carrier.REASONING_CONTENT, raw='"h\\n"', text="h\n")
    assert readable([plain]) == "h\n"
    assert readable([plain, SEALED]) == "h\n\n\n{}"
    assert readable([]) == ""


def test_a_turn_is_filed_under_everything_it_may_be_asked_for_by():
    assert remember(TURN, KEYS).names == (
        KEYS.chain,
        KEYS.near,
        KEYS.alone,
        keys.sealed(keys.seal("gAAA")),
        keys.sealed(keys.seal("gBBB")),
        keys.ref("item", "rs_1"),
        keys.ref("item", "msg_1"),
        keys.ref("item", "fc_1"),
        keys.ref("response", "resp_1"),
    )


def test_a_call_id_is_no_name():
    turn = Turn(output=(Call(name="ls", arguments="{}", id="functions.ls:0"),))
    assert remember(turn, KEYS).names == (KEYS.chain, KEYS.near, KEYS.alone)


def test_a_response_is_a_name_where_a_request_may_say_it():
    turn = Turn(target=Origin(dialect="chat"), response="chatcmpl-1")
    assert remember(turn, KEYS).names == (KEYS.chain, KEYS.near, KEYS.alone)


def test_words_without_calls_are_in_the_keys_already():
    assert remember(Turn(output=(Text(text="Hello."),)), KEYS).words == ""
    assert words(Turn(output=(Text(text="Hello."),))) == keys.seal("Hello.")


def test_each_name_once():
    twin = keys.Keys(b"x" * 16, b"x" * 16, b"x" * 16)
    turn = Turn(output=(SEALED, SEALED))
    assert len(remember(turn, twin).names) == 4


@pytest.mark.parametrize("outcome", [None, *Outcome])
def test_a_turn_that_never_ended_counts_as_aborted(outcome):
    made = remember(Turn(outcome=outcome), KEYS)
    assert made.outcome is (outcome or Outcome.ABORTED)


def test_words_are_what_was_spoken():
    def said(*texts):
        return words(Turn(output=tuple(Text(text=text) for text in texts)))

    assert said() == said("", " \n") == ""
    assert said("a b") == said(" a b\n") == said("a ", "b") == said("<think>x</think>\n\na b")
    assert said("a b") != said("ab")
