"""The prefix that a signature is bound to."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.alterations import brought_back
from support.histories import messages as histories
from thoughtline.dialects.messages import Messages, prefix

MESSAGES = Messages()


def read(**members):
    return MESSAGES.read(json.dumps({"messages": [], **members}).encode())


SYSTEM = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]


TOOLS = [
    {"name": "b", "input_schema": {"type": "object"}},
    {"name": "a", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}},
    {"name": "z", "defer_loading": True},
]


@given(histories.conversations(), st.data())
def test_a_prefix_is_blind_to_what_providers_are_blind_to(conversation, data):
    said, question = conversation
    plain = histories.body(said, question, system="Be brief.", tools=TOOLS[:2])
    changes = data.draw(st.lists(st.sampled_from([histories.no_thoughts, histories.cached])))
    other = histories.body(
        [
            ([{"type": "text", "text": asked}] if isinstance(asked, str) else asked, output)
            for asked, output in brought_back(said, changes)
        ],
        question,
        spelling=True,
        system=SYSTEM,
        tools=[TOOLS[1], TOOLS[2], TOOLS[0]],
        max_tokens=5,
        metadata={"user_id": "x"},
    )
    one, two = MESSAGES.prefixes(MESSAGES.read(plain)), MESSAGES.prefixes(MESSAGES.read(other))
    assert one == two
    assert len(set(one)) == len(said) + 1


@pytest.mark.parametrize(
    "change",
    [
        {"system": "Be long."},
        {"tools": TOOLS[:1]},
        {"messages": [{"role": "user", "content": "Hi!"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}] * 2}]},
    ],
)
def test_a_prefix_sees_an_edit(change):
    members = {
        "system": "Be brief.",
        "tools": TOOLS,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    assert MESSAGES.prefixes(read(**members)) != MESSAGES.prefixes(read(**members | change))


def test_markers_inside_of_results_do_not_count_and_inputs_do():
    def digest(result, input):
        call = {"type": "tool_use", "id": "1", "name": "f", "input": input}
        answer = {"type": "tool_result", "tool_use_id": "1", "content": result}
        messages = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
        return MESSAGES.prefixes(read(messages=messages))[-1]

    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    assert digest("a", {}) == digest([marked], {})
    assert digest("a", {}) != digest("a", {"cache_control": 1})


TURN = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes."}]
HEADS = [
    {},
    {"system": "Be brief."},
    {"system": SYSTEM},
    {"system": None, "tools": TOOLS},
    {"system": "Be brief.", "tools": TOOLS},
    {"system": "Be brief.", "tools": TOOLS[:1]},
    {"system": "", "tools": {}},
    {"system": "x" * prefix.MAX_KEPT_SIZE},
    *[{"system": f"You are number {number}."} for number in range(prefix.MAX_KEPT)],
]


@given(st.lists(st.sampled_from(HEADS), max_size=30))
@example(HEADS * 2)
def test_what_is_kept_of_the_head_is_what_would_be_made(heads):
    for members in heads:
        request = read(**members, messages=TURN)
        kept, found = prefix.prefixes(request), prefix._heads
        prefix._heads = ()
        made = prefix.prefixes(request)
        prefix._heads = found
        assert made.digests == kept.digests
        assert len(found) <= prefix.MAX_KEPT
        assert all(len(one.system) + len(one.tools) <= prefix.MAX_KEPT_SIZE for one in found)
        assert prefix.prefixes(request, kept.states[-1]).digests != kept.digests
        if "system" in members:
            assert prefix.prefixes(read(messages=TURN, system="Other."), kept.states[-1]) is None
