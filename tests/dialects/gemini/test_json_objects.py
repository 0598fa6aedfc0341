"""Objects of a streamed array are found in any split, and each byte is looked at once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.splits import splits
from thoughtline.dialects.gemini import json_objects
from thoughtline.dialects.gemini.json_objects import JsonObjects
from thoughtline.dialects.limits import TooComplex

VALUES = st.recursive(
    st.none() | st.integers() | st.text(alphabet='a"\\{}[]\n, é', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a{"', max_size=2), inner),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text('b}"', max_size=2), VALUES), max_size=4), st.data())
def test_objects_are_found_in_any_split(values, data):
    styles = [{}, {"indent": 0}, {"indent": 2}, {"ensure_ascii": False}]
    raws = [json.dumps(v, **data.draw(st.sampled_from(styles))).encode() for v in values]
    between = data.draw(st.sampled_from([b",", b"\n,\n", b" ,\r\n", b"\n"]))
    body = b"[" + between.join(raws) + b"]"
    one = JsonObjects()
    found = [raw for piece in data.draw(splits(body)) for raw in one.feed(piece)]
    assert found == raws


@given(st.text('a"\\\\{}', max_size=12), st.data())
def test_a_string_may_be_cut_anywhere(text, data):
    raw = json.dumps({"a": text, "b": {}}).encode()
    one = JsonObjects()
    found = [whole for piece in data.draw(splits(raw)) for whole in one.feed(piece)]
    assert found == [raw]


def test_an_object_in_very_many_pieces_is_looked_at_once(monkeypatch):
    """It was scanned again with each piece: 1.6 MB took 42 seconds."""
    looked_at = 0

    def counting(match):
        def called(data, at):
            nonlocal looked_at
            looked_at += len(data) - at
            return match(data, at)

        return called

    for name in ("_rest", "_outside", "_brace"):
        monkeypatch.setattr(json_objects, name, counting(getattr(json_objects, name)))
    whole = b'{"a":"' + b"}x" * 10_000 + b'"}'
    one = JsonObjects()
    pieces = [b"[", *(whole[at : at + 20] for at in range(0, len(whole), 20))]
    assert [found for piece in pieces for found in one.feed(piece)] == [whole]
    assert looked_at < 4 * len(whole)


def test_an_object_that_does_not_end_is_given_up():
    one = JsonObjects(max_size=1000)
    one.feed(b'{"a":"' + b"a" * 900)
    with pytest.raises(TooComplex):
        one.feed(b"a" * 100)


@given(st.lists(st.dictionaries(st.text('b}"', max_size=2), VALUES), max_size=4), st.data())
def test_a_large_piece_is_looked_at_in_slices(values, data):
    raws = [json.dumps(value).encode() for value in values]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_objects, "MAX_SLICE", data.draw(st.integers(1, 9)))
        looked = []
        patched.setattr(json_objects, "check_event_count", lambda _, size: looked.append(size))
        assert JsonObjects().feed(b"[" + b",".join(raws) + b"]") == raws
        assert max(looked) <= json_objects.MAX_SLICE
