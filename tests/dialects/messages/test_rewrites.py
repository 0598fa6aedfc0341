"""Messages bodies with thinking switched off: nothing to clear, and a tool loop told as text."""

import json

from thoughtline.dialects.messages.rewrites import drop_clear_thinking, flatten_tool_loop

CLEAR = {"type": "clear_thinking_20251015", "keep": "all"}
OTHER = {"type": "clear_tool_uses_20250919"}


def body(**members):
    return json.dumps({"model": "m", **members}).encode()


def test_thinking_is_not_cleared_where_there_is_none():
    off, on = {"type": "disabled"}, {"type": "enabled", "budget_tokens": 1024}
    kept = body(thinking=on, context_management={"edits": [CLEAR]})
    assert drop_clear_thinking(kept) is kept
    both = drop_clear_thinking(body(thinking=off, context_management={"edits": [CLEAR, OTHER]}))
    assert json.loads(both)["context_management"] == {"edits": [OTHER]}
    alone = drop_clear_thinking(body(thinking=off, context_management={"edits": [CLEAR]}))
    assert json.loads(alone) == {"model": "m", "thinking": off}


def test_a_running_loop_is_told_to_the_model():
    use = {"type": "tool_use", "id": "t", "name": "ls", "input": {"path": "."}}
    answer = [{"type": "text", "text": "a.txt"}, {"type": "image", "source": {}}]
    messages = [
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, use]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": answer}],
        },
    ]
    first, told = json.loads(flatten_tool_loop(body(messages=messages)))["messages"]
    assert first == messages[0]
    texts = [block.get("text") for block in told["content"]]
    assert (told["role"], texts[1], told["content"][2]) == (
        "user",
        "<tool_result>a.txt</tool_result>",
        answer[1],
    )
    assert texts[0] == '<tool_call name=\'ls\'>{"path":"."}</tool_call>'


def test_a_loop_that_has_ended_stays_as_it_is():
    messages = [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "ls", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": ""}]},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "And now?"},
    ]
    over = body(messages=messages)
    assert flatten_tool_loop(over) is over
