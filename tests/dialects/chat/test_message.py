"""An assistant message: the parts that it has."""

import pytest

from support.histories.chat import body
from thoughtline.dialects.chat import ChatCompletions
from thoughtline.log.turns import output_shape

CHAT = ChatCompletions()


def read(*messages, **more):
    return CHAT.read(body(list(messages), **more))


def use(name="f", arguments="{}", **more):
    return {
        "id": "c1",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    } | more


@pytest.mark.parametrize(
    ("message", "shape"),
    [
        ({"content": None}, ""),
        ({"content": "a"}, "x"),
        ({"content": [{"type": "text", "text": "a"}, "b", {"text": ""}]}, "xx"),
        ({"content": "<think>t</think>a"}, "tx"),
        ({"content": ["<think>t</think>a"]}, "tx"),
        ({"content": "<think>t</think>a\n<think>u</think>b"}, "txtx"),
        ({"content": "<think>t</think>a\n<think>u</think>", "tool_calls": [use()]}, "txtc"),
        ({"content": "a\n<think>u</think>b"}, "x"),
        ({"content": "<think>t"}, "t"),
        ({"content": [{"type": "thinking", "thinking": []}, {"text": "a"}]}, "tx"),
        ({"content": [{"type": "thinking", "text": "not a text"}]}, "t"),
        ({"content": [{"type": "refusal", "refusal": "no"}, 5, None]}, "bbb"),
        ({"content": {"odd": 1}}, "b"),
        ({"content": 5}, "b"),
        ({"reasoning": "r", "reasoning_details": [], "reasoning_content": ""}, "ttt"),
        ({"reasoning": None, "reasoning_content": None}, ""),
        ({"reasoning_text": "r", "reasoning_opaque": "o", "content": "a"}, "ttx"),
        ({"tool_calls": [use(), use(extra_content={"google": {}})]}, "ctc"),
        ({"tool_calls": [use(extra_content=None)]}, "c"),
        ({"tool_calls": [{"type": "custom", "custom": {"name": "p", "input": "x"}}]}, "c"),
        ({"tool_calls": [None, 5, {}, {"function": 5}]}, "bbbb"),
        ({"tool_calls": {"odd": 1}}, ""),
        ({"function_call": {"name": "f", "arguments": "{}"}}, "c"),
        ({"function_call": "auto"}, ""),
    ],
)
def test_what_is_in_an_answer(message, shape):
    (turn,) = read({"role": "assistant"} | message).turns
    assert output_shape(turn.output) == shape


@pytest.mark.parametrize(
    ("arguments", "text"),
    [("{}", "{}"), ("", ""), (None, ""), ({"a": 1}, '{"a":1}'), ([1], "[1]"), (5, "5")],
)
def test_arguments_are_text(arguments, text):
    (turn,) = read({"role": "assistant", "tool_calls": [use(arguments=arguments)]}).turns
    assert turn.calls[0].arguments == text
