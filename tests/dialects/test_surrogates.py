import json

from hypothesis import given
from hypothesis import strategies as st

from thoughtline.dialects.surrogates import (
    SurrogateJoiner,
    is_encodable,
    join_surrogates,
    replace_surrogates,
)
from thoughtline.log.events import TextDelta, ToolCallDelta

SMILE = "😀"
HIGH, LOW = "\ud83d", "\ude00"
TEXTS = st.text(st.sampled_from([HIGH, LOW, "a", SMILE, "\uffff", "\ufeff"]), max_size=8)


def test_halves_that_meet_are_a_character():
    assert join_surrogates(HIGH + LOW) == replace_surrogates(HIGH + LOW) == SMILE
    assert join_surrogates([{"a" + HIGH + LOW: [HIGH + LOW, 1, None]}]) == [
        {"a" + SMILE: [SMILE, 1, None]}
    ]


def test_a_half_that_is_alone():
    assert join_surrogates("a" + HIGH) == "a" + HIGH
    assert replace_surrogates("a" + HIGH) == "a\ufffd"
    assert replace_surrogates({LOW: LOW + HIGH}) == {"\ufffd": "\ufffd\ufffd"}


@given(TEXTS)
def test_mended_text_can_be_written(text):
    assert is_encodable(replace_surrogates(text))
    assert is_encodable(text) == (replace_surrogates(text) == text)
    assert json.loads(json.dumps(text)) == join_surrogates(text)
    assert len(replace_surrogates(text)) == len(join_surrogates(text))
    if is_encodable(text):
        assert replace_surrogates(text) is text


def test_a_character_that_was_cut_in_two_deltas_comes_with_the_second():
    joined = SurrogateJoiner()
    told = [TextDelta("a" + HIGH), ToolCallDelta(1, LOW), TextDelta(LOW + "b" + HIGH)]
    shown = [TextDelta("a"), ToolCallDelta(1, "\ufffd"), TextDelta(SMILE + "b")]
    assert [joined(delta) for delta in told] == shown
    assert joined(TextDelta("c")) == TextDelta("\ufffdc")
