"""Last changes of a body: only what must, and the very same object where there is nothing to do."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.gateway import rewrites
from thoughtline.gateway.flattening import flattened
from thoughtline.gateway.headers import joined
from thoughtline.gateway.learned import Lesson, strengthened
from thoughtline.gateway.learned import joined as both
from thoughtline.policies import Need, lookup

ALL = [
    rewrites.nine_characters,
    rewrites.nameless,
    rewrites.unrepeated,
    rewrites.summarised,
    rewrites.uncompacted,
    rewrites.unclearing,
    flattened,
]
PLAIN = [
    b'{ "messages" : [ {"role":"user", "content":"hi"} ], "x": 1.10 }',
    b'{"input":"hi"}',
    b'{"input":[{"role":"user","content":"hi"}, 1, null, "x"]}',
    b'{"messages":[1,null,{"tool_calls":[1,{"id":2}],"tool_call_id":null},{"content":3}]}',
    b'{"messages":{}, "input":null, "thinking":{"type":"disabled"},"context_management":[]}',
    b"{}",
]


@pytest.mark.parametrize("rewrite", ALL, ids=lambda rewrite: rewrite.__name__)
@pytest.mark.parametrize("body", PLAIN)
def test_nothing_to_do_is_the_same_object(rewrite, body):
    assert rewrite(body) is body


IDS = st.text(min_size=1, max_size=12) | st.sampled_from(["abcdefghi", "call_1", "functions.ls:0"])


@given(st.lists(st.lists(IDS, min_size=1, max_size=3), max_size=5))
def test_nine_characters_are_one_to_one_and_always_the_same(turns):
    messages = []
    for ids in turns:
        messages.append({"role": "assistant", "tool_calls": [{"id": id} for id in ids]})
        messages += [{"role": "tool", "tool_call_id": id} for id in ids]
    body = json.dumps({"messages": messages}).encode()
    made = rewrites.nine_characters(body)
    names = {}
    for before, after in zip(messages, json.loads(made)["messages"], strict=True):
        pairs = [(before.get("tool_call_id"), after.get("tool_call_id"))]
        calls = zip(before.get("tool_calls", ()), after.get("tool_calls", ()), strict=True)
        pairs += [(one["id"], other["id"]) for one, other in calls]
        for one, other in pairs:
            assert names.setdefault(one, other) == other
    names.pop(None, None)
    assert len(set(names.values())) == len(names)
    assert all(len(name) == 9 and name.isascii() and name.isalnum() for name in names.values())
    assert rewrites.nine_characters(made) is made


def test_items_keep_their_bytes_but_for_what_goes():
    body = (
        b'{"input":[ {"type":"reasoning", "id":"rs_1","encrypted_content":"x"},'
        b' {"type":"function_call","id":"fc_1", "call_id":"c"},{"id":"msg_1","role":"user"},'
        b'{"type":"reasoning","id":"rs_1"} ]}'
    )
    assert rewrites.nameless(body) == (
        b'{"input":[ {"type":"reasoning","encrypted_content":"x"},'
        b' {"type":"function_call", "call_id":"c"},{"id":"msg_1","role":"user"},'
        b'{"type":"reasoning","id":"rs_1"} ]}'
    )
    last = b',{"type":"reasoning","id":"rs_1"}'
    assert rewrites.unrepeated(body) == body.replace(last, b"")
    summarised = json.loads(rewrites.summarised(body))["input"]
    assert ["summary" in item for item in summarised] == [True, False, False, True]


def test_header_values_are_added_to():
    mine = [("Anthropic-Beta", "a, b"), ("x", "y")]
    assert joined(mine, {"anthropic-beta": "c"}) == [("Anthropic-Beta", "a, b,c"), ("x", "y")]
    assert joined(mine, {"anthropic-beta": "b"}) == mine
    assert joined([("x", "y")], {"anthropic-beta": "c"}) == [("x", "y"), ("anthropic-beta", "c")]


def test_lessons_add_up_and_the_later_one_counts():
    old = Lesson(need=Need.REQUIRED, lost='""', drops=("a",), nameless=True)
    new = Lesson(lost='" "', drops=("b",), nameless=False)
    made = both(old, new)
    assert made == Lesson(need=Need.REQUIRED, lost='" "', drops=("a", "b"), nameless=False)
    row = lookup("generic", "chat", "m")
    assert strengthened(row, Lesson(nine=True)) is row
    assert (strengthened(row, made).need, strengthened(row, made).lost) == (Need.REQUIRED, '" "')
