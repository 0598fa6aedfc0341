"""Call ids of nine characters."""

import json

from hypothesis import given
from hypothesis import strategies as st

from thoughtline.dialects.chat import rewrites as chat

IDS = st.text(min_size=1, max_size=12) | st.sampled_from(["abcdefghi", "call_1", "functions.ls:0"])


@given(st.lists(st.lists(IDS, min_size=1, max_size=3), max_size=5))
def test_nine_characters_are_one_to_one_and_always_the_same(turns):
    messages = []
    for ids in turns:
        messages.append({"role": "assistant", "tool_calls": [{"id": id} for id in ids]})
        messages += [{"role": "tool", "tool_call_id": id} for id in ids]
    body = json.dumps({"messages": messages}).encode()
    made = chat.short_call_ids(body)
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
    assert chat.short_call_ids(made) is made
