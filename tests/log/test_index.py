import pytest

from thoughtline.log import keys
from thoughtline.log.events import Outcome
from thoughtline.log.index import IndexEntry, index_entry, readable, text_digest
from thoughtline.log.parts import Blob, Call, Carrier, Origin, Result, Text, Thought
from thoughtline.log.turns import Turn, output_shape

KEYS = keys.TurnKeys(b"c" * 16, b"n" * 16, b"a" * 16)
ORIGIN = Origin(dialect="responses", provider="openai")
SEALED = Thought(
    carrier=Carrier.ITEM,
    raw="{}",
    id="rs_1",
    seals=(keys.string_digest("gAAA"), keys.string_digest("gBBB")),
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
    made = index_entry(TURN, KEYS, hints=("h",), skipped={"k": "why"})
    assert made == IndexEntry(
        session="s1",
        turn="t1",
        parent="t0",
        origin=ORIGIN,
        outcome=Outcome.COMPLETED,
        at=5.0,
        shape="txcc",
        thoughts=(SEALED,),
        calls=("call_1", "call_2"),
        text_digest=keys.string_digest("Let me look."),
        hints=("h",),
        skipped={"k": "why"},
        quarantined=frozenset({0}),
        chars=2,
        keys=made.keys,
    )


def test_the_shape_of_an_entry_is_that_of_the_output():
    output = (Blob(kind="image", digest="00"), *TURN.output, Result(content=""), SEALED)
    assert index_entry(Turn(output=output), KEYS).shape == output_shape(output) == "btxccbt"


def test_characters_are_counted_as_people_read_them():
    plain = Thought(carrier=Carrier.REASONING_CONTENT, raw='"h\\n"', text="h\n")
    assert readable([plain]) == "h\n"
    assert readable([plain, SEALED]) == "h\n\n\n{}"
    assert readable([]) == ""


def test_a_thought_under_several_keys_of_a_message_counts_once():
    keyed = (Carrier.REASONING_CONTENT, Carrier.REASONING, Carrier.REASONING_DETAILS)
    same = tuple(_thought(carrier, "same") for carrier in keyed)
    assert readable(same) == "same"
    assert index_entry(Turn(output=same), KEYS).chars == 4
    assert readable([*same, _thought(Carrier.REASONING_TEXT, "other")]) == "same\n\nother"
    assert readable([same[0], _thought(keyed[0], "same")]) == "same\n\nsame"  # one key: two


def test_parts_of_an_item_that_say_the_same_count_each():
    parts = [Thought(carrier=Carrier.ITEM, raw="{}", id="rs_1", text="same") for _ in range(2)]
    assert readable(parts) == "same\n\nsame"


def _thought(carrier, text):
    return Thought(carrier=carrier, raw=f'"{text}"', text=text)


def test_a_turn_is_filed_under_everything_it_may_be_asked_for_by():
    assert index_entry(TURN, KEYS).keys == (
        KEYS.full,
        KEYS.local,
        KEYS.content,
        keys.seal_key(keys.string_digest("gAAA")),
        keys.seal_key(keys.string_digest("gBBB")),
        keys.reference_key("item", "rs_1"),
        keys.reference_key("item", "msg_1"),
        keys.reference_key("item", "fc_1"),
        keys.reference_key("response", "resp_1"),
    )


def test_a_call_id_is_no_name():
    turn = Turn(output=(Call(name="ls", arguments="{}", id="functions.ls:0"),))
    assert index_entry(turn, KEYS).keys == (KEYS.full, KEYS.local, KEYS.content)


def test_a_response_is_a_name_where_a_request_may_say_it():
    turn = Turn(target=Origin(dialect="chat"), response="chatcmpl-1")
    assert index_entry(turn, KEYS).keys == (KEYS.full, KEYS.local, KEYS.content)


def test_words_without_calls_are_in_the_keys_already():
    assert index_entry(Turn(output=(Text(text="Hello."),)), KEYS).text_digest == ""


def test_blobs_beside_text_tell_two_answers_apart():
    one, other = (
        index_entry(Turn(output=(Blob(kind="image", digest=d), Text(text="Here."))), KEYS)
        for d in ("1", "2")
    )
    assert "" != one.text_digest != other.text_digest
    assert text_digest(Turn(output=(Text(text="Hello."),))) == keys.string_digest("Hello.")


def test_each_name_once():
    twin = keys.TurnKeys(b"x" * 16, b"x" * 16, b"x" * 16)
    turn = Turn(output=(SEALED, SEALED))
    assert len(index_entry(turn, twin).keys) == 4


@pytest.mark.parametrize("outcome", [None, *Outcome])
def test_a_turn_that_never_ended_counts_as_aborted(outcome):
    made = index_entry(Turn(outcome=outcome), KEYS)
    assert made.outcome is (outcome or Outcome.ABORTED)


def test_words_are_what_was_spoken():
    def said(*texts):
        return text_digest(Turn(output=tuple(Text(text=text) for text in texts)))

    assert said() == said("", " \n") == ""
    assert said("a b") == said(" a b\n") == said("a ", "b") == said("<think>x</think>\n\na b")
    assert said("a b") != said("ab")
