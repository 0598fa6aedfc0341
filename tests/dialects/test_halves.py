import json

from hypothesis import given
from hypothesis import strategies as st

from thoughtline.dialects.halves import clean, join, mend

SMILE = "😀"
HIGH, LOW = "\ud83d", "\ude00"
TEXTS = st.text(st.sampled_from([HIGH, LOW, "a", SMILE, "\uffff", "\ufeff"]), max_size=8)


def test_halves_that_meet_are_a_character():
    assert join(HIGH + LOW) == mend(HIGH + LOW) == SMILE
    assert join([{"a" + HIGH + LOW: [HIGH + LOW, 1, None]}]) == [{"a" + SMILE: [SMILE, 1, None]}]


def test_a_half_that_is_alone():
    assert join("a" + HIGH) == "a" + HIGH
    assert mend("a" + HIGH) == "a\ufffd"
    assert mend({LOW: LOW + HIGH}) == {"\ufffd": "\ufffd\ufffd"}


@given(TEXTS)
def test_mended_text_can_be_written(text):
    assert clean(mend(text))
    assert clean(text) == (mend(text) == text)
    assert json.loads(json.dumps(text)) == join(text)
    assert len(mend(text)) == len(join(text))
    if clean(text):
        assert mend(text) is text
