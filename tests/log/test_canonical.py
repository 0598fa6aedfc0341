"""What is visible of a turn: one form for all spellings of it, and another for anything else."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.histories.chat import ARGUMENTS
from support.json_spellings import spell
from thoughtline.log import keys
from thoughtline.log.canonical import (
    canonical_arguments,
    visible,
    without_inline_thoughts,
)
from thoughtline.log.parts import Blob, Call, Carrier, Decision, Result, Text, Thought
from thoughtline.log.turns import Turn


def text(*words):
    return tuple(Text(text=word) for word in words)


def call(arguments, name="f"):
    return Call(name=name, arguments=arguments)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (text("a"), text("b")),
        (text("a b"), text("ab")),
        (text("a"), text("A")),
        (text("a"), ()),
        ((call('{"a":1}'),), (call('{"a":2}'),)),
        ((call('{"a":1}'),), (call('{"a":"1"}'),)),
        ((call('{"a":1}'),), (call('{"a":true}'),)),
        ((call('{"a":null}'),), (call("{}"),)),
        ((call('{"a":1.5}'),), (call('{"a":1}'),)),
        ((call("[1,2]"),), (call("[2,1]"),)),
        ((call("{}"),), (call("{}", name="g"),)),
        ((call("{}"),), (call("{}"), call("{}"))),
        (
            (call("{}", name="ab"), call("{}", name="c")),
            (call("{}", name="a"), call("{}", name="bc")),
        ),
        ((Result(content="a"),), (Result(content="b"),)),
        ((Result(content="a"),), text("a")),
        ((Result(content="a"), Result(content="b")), (Result(content="ab"),)),
        ((Blob(kind="image", digest="1"),), (Blob(kind="image", digest="2"),)),
        ((Blob(kind="image", digest="1"),), ()),
    ],
)
def test_different_things_look_different(one, other):
    assert visible(one) != visible(other)
    assert visible(one, is_input=True) != visible(other, is_input=True)


def test_a_users_tags_are_the_users_words():
    spoken, tagged = text("x"), text("<think>a</think>x")
    assert visible(spoken) == visible(tagged)
    assert visible(spoken, is_input=True) != visible(tagged, is_input=True)
    one, other = (
        keys.rolling_keys([Turn(input=t, output=text("a"))])[0][0] for t in (spoken, tagged)
    )
    assert one.full != other.full


def test_what_a_servers_own_tools_gave_does_not_count_beside_text():
    search = Blob(kind="web_search_tool_result", digest="1")
    assert visible((search, *text("a"))) == visible(text("a")) != visible((search,))
    assert visible((search, *text("a")), is_input=True) != visible(text("a"), is_input=True)


def test_ids_thoughts_and_decisions_are_not_visible():
    one = (Text(text="a", id="msg_1", raw="{}"), Thought(carrier=Carrier.ITEM, raw="{}"))
    assert visible(one) == visible((*text("a"), Decision(call="c", verdict="allow")))


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("said", ["", " a ", "<think>b</think> c", "\ufeffd", "é|1:", "\ud83d"])
def test_the_short_way_for_a_single_text_is_the_long_way(said, heard):
    one, more = [Text(text=said)], [Text(text=said), Text(text="")]
    assert visible(one, is_input=heard) == visible(more, is_input=heard)


# --- arguments ---------------------------------------------------------------------------------


@given(ARGUMENTS, st.integers(0, 2**32))
def test_any_spelling_of_arguments_is_the_same(value, seed):
    assert canonical_arguments(spell(value, Random(seed))) == canonical_arguments(json.dumps(value))


@pytest.mark.parametrize(
    "spellings",
    [
        ["5", "5.0", "5e0", "0.5e1", "50E-1", " 5 "],
        ["0", "-0", "-0.0", "0e9"],
        ["1e21", "1000000000000000000000", "1e+21"],
        ["12345678901234567890", "12345678901234567000", "1.2345678901234567e19"],
        ["9007199254740993", "9007199254740992", "9007199254740992.0"],
        ["0.1", "0.10", "1e-1", "0.1000000000000000055"],
        ['"\\u00e9"', '"é"'],
        ['"\\ud83d\\ude00"', '"😀"'],
        ['{"a":1,"b":2}', '{ "b": 2, "a": 1.0 }'],
        ['{"a":1,"a":2}', '{"a":2}'],
        ["", "{}", "null", "  ", " { } "],
        ['{"a":"\\ud83d"}', '{ "a" : "\\uD83D" }'],  # half an emoji
        ['{"a":"x\\ny"}', '{"a":"x\ny"}'],  # a bare line break
        ["not json", " not json\n"],
        ['{"id":"1234567890123456","n":5.0}', '{"n":5,"id":"1234567890123456"}'],
    ],
)
def test_spellings_that_are_one_thing(spellings):
    assert len({canonical_arguments(spelling) for spelling in spellings}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5", '"5"'),
        ("5", "5.1"),
        ("1", "true"),
        ("9007199254740992", "9007199254740994"),
        ('{"a":"1234567890123456"}', '{"a":1234567890123456}'),
        ("not json", "not Json"),
        ("{}", "[]"),
    ],
)
def test_spellings_that_are_two(one, other):
    assert canonical_arguments(one) != canonical_arguments(other)


@given(st.text(max_size=30) | st.text('{}[]":,\\ud8\x00 1e+.-', max_size=30))
def test_any_arguments_have_a_form(arguments):
    assert isinstance(canonical_arguments(arguments), bytes)


def test_deep_and_odd_arguments_have_a_form():
    for odd in ("[" * 100_000, "[" * 5000 + "]" * 5000, "1" * 10_000, "1e999", "-1e999", "\ud83d"):
        assert isinstance(canonical_arguments(odd), bytes)


# --- spoken ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("  a\n", "a"),
        ("<think>x</think>\n\na", "a"),
        ("\n<thinking>x</thinking>a", "a"),
        ("<THINK>x</THINK>a", "a"),
        ("<think>x</think> <think>y</think> a", "a"),
        (
            "\n<thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b>\nx\n</thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b>\n\na\n\n",
            "a",
        ),
        ("<think>unclosed", "<think>unclosed"),
        ("a <think>x</think>", "a"),
        ("a <think>x</think>\n\nb<think>y</think>c", "abc"),
        ("a </think> b <think> c", "a </think> b <think> c"),
        ("<thinker>x</thinker>", "<thinker>x</thinker>"),
        ("\ufeff a \ufeff", "a"),
        ("<think></think>", ""),
    ],
)
def test_spoken(said, heard):
    assert without_inline_thoughts(said) == heard


def test_many_thoughts_in_front_are_one_pass():
    pieces = 200_000  # slicing off one at a time would copy a terabyte
    assert without_inline_thoughts("<think></think>" * pieces + "a") == "a"
