"""Items are compared as a model sees them, and lists by one digest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.wires.websocket.requests import RollingHash, comparable_item
from wires.websocket.samples import CALL, RESULT, THOUGHT, USER, texts


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (CALL, {**CALL, "id": "fc_1", "status": "completed"}),
        ({"role": "user", "content": "x"}, {"type": "message", "content": "x", "role": "user"}),
        (
            {"type": "message", "role": "assistant", "content": "x"},
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [
                    {"type": "output_text", "text": "x", "annotations": [], "logprobs": []}
                ],
            },
        ),
    ],
)
def test_labels_that_servers_put_on_items_make_no_difference(one, two):
    assert comparable_item(*texts(one)) == comparable_item(*texts(two))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (CALL, {**CALL, "arguments": "{ }"}),
        (CALL, {**CALL, "status": "incomplete"}),
        (THOUGHT, {**THOUGHT, "id": "rs_2"}),
        (THOUGHT, {**THOUGHT, "encrypted_content": None}),
        (USER, {**USER, "content": "Hello"}),
        (USER, {**USER, "role": "developer"}),
        ({"type": "x", "n": 1}, {"type": "x", "n": 1.0}),
        ({"type": "x", "n": None}, {"type": "x"}),
        ({"type": "x", "half": "\ud83d"}, {"type": "x", "half": "\ud83e"}),
        ({"type": "y", "half": "\ud83d"}, {"type": "y", "half": "\ufffd"}),
        (
            {"type": "message", "role": "assistant", "content": "x"},
            {"type": "message", "role": "assistant", "content": "x", "phase": "commentary"},
        ),
    ],
)
def test_whatever_a_model_might_notice_makes_a_difference(one, two):
    assert comparable_item(*texts(one)) != comparable_item(*texts(two))


@given(st.lists(st.sampled_from([USER, THOUGHT, CALL, RESULT]), max_size=8), st.data())
def test_a_rolling_hash_tells_where_two_lists_differ(items, data):
    whole = RollingHash().extend(texts(*items))
    cut = data.draw(st.integers(0, len(items)))
    more = texts(*data.draw(st.lists(st.sampled_from([USER, CALL]), max_size=3)))
    other = whole.prefix(cut).extend(more)
    same = texts(*items[:cut]) + more
    assert [whole.at(n + 1) for n in range(len(items))] == [
        RollingHash().extend(texts(*items[: n + 1])).digest for n in range(len(items))
    ]
    assert other.digest == RollingHash().extend(same).digest
    expected = next(
        (n for n, (a, b) in enumerate(zip(texts(*items), same, strict=False)) if a != b),
        min(len(items), len(same)),
    )
    assert whole.first_difference(other) == expected
    assert whole.is_prefix_of(other) == (texts(*items) == same[: len(items)])
