import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.json_spellings import VALUES
from thoughtline.dialects.chat.chunks import merge_details


def text(piece, index=0, **more):
    return {"type": "reasoning.text", "text": piece, "index": index} | more


def test_fragments_of_one_index_are_joined():
    assert merge_details([[text("a")], [text("b")], [text("c")]]) == [text("abc")]
    assert merge_details([[text("a", 0), text("x", 1)], [text("b", 1)], [text("c", 0)]]) == [
        text("ac", 0),
        text("xb", 1),
    ]


def test_a_signature_that_comes_last_joins_its_text():
    assert merge_details(
        [[text("a")], [{"type": "reasoning.text", "index": 0, "signature": "s"}]]
    ) == [text("a", signature="s")]
    assert merge_details([[text("a", signature=None)], [text("", signature="s")]]) == [
        text("a", signature="s")
    ]


def test_types_under_one_index_are_two_details():
    """A summary and the encrypted item it belongs to, as OpenAI's come through OpenRouter."""
    summary = {"type": "reasoning.summary", "summary": "s", "index": 0}
    sealed = {"type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1", "index": 0}
    assert merge_details([[summary], [summary], [sealed]]) == [summary | {"summary": "ss"}, sealed]


def test_different_ids_are_different_details():
    one = {"type": "reasoning.encrypted", "data": "x", "id": "call_1", "index": 0}
    other = {"type": "reasoning.encrypted", "data": "y", "id": "call_2", "index": 0}
    assert merge_details([[one], [other]]) == [one, other]
    assert merge_details([[one], [other, other]]) == [one, other | {"data": "yy"}]
    assert merge_details([[one | {"id": None}], [other]]) == [other | {"data": "xy"}]


def test_without_an_index_the_last_of_its_type_goes_on():
    one = {"type": "reasoning.text", "text": "a"}
    assert merge_details([[one], [one]]) == [{"type": "reasoning.text", "text": "aa"}]


def test_other_fields_are_the_first_ones_given():
    first = text("a", format="f1", id=None)
    assert merge_details([[first], [text("b", format="f2", id="i", extra=[1])]]) == [
        text("ab", format="f1", id="i", extra=[1])
    ]


def test_what_was_given_is_not_changed():
    first = text("a")
    merge_details([[first], [text("b")]])
    assert first == text("a")


@pytest.mark.parametrize("odd", [None, 5, "text", {"a": 1}])
def test_a_fragment_that_is_no_list_is_nothing(odd):
    assert merge_details([odd]) == []


def test_what_is_no_detail_is_kept():
    assert merge_details([["a", None, 5], [["b"]]]) == ["a", None, 5, ["b"]]


@given(
    st.lists(VALUES, max_size=4)
    | st.lists(
        st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "type": VALUES,
                    "index": VALUES,
                    "text": VALUES,
                    "signature": VALUES,
                    "id": VALUES,
                },
            ),
            max_size=3,
        ),
        max_size=4,
    )
)
def test_any_fragments_can_be_merged(fragments):
    assert isinstance(merge_details(fragments), list)


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 2), st.text(max_size=3)), max_size=3), max_size=5)
)
def test_no_text_is_lost_and_order_is_kept(fragments):
    merged = merge_details(
        [[text(piece, index) for index, piece in fragment] for fragment in fragments]
    )
    for detail in merged:
        pieces = [p for fragment in fragments for i, p in fragment if i == detail["index"]]
        assert detail["text"] == "".join(pieces)
    arrival = [i for fragment in fragments for i, _ in fragment]
    assert [detail["index"] for detail in merged] == list(dict.fromkeys(arrival))
