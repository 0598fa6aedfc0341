"""Parts of a Gemini content: what each one is, and which are one."""

import json

import pytest

from thoughtline.dialects.gemini.parts import (
    merged_part,
    part_kind,
    runs,
    set_member,
    signature,
    without_signature,
)


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"text": "hm", "thought": True}, "thought"),
        ({"text": "hi", "thoughtSignature": "s"}, "text"),
        ({"text": "hi", "thought": False}, "text"),
        ({"functionCall": {"name": "ls"}}, "call"),
        ({"function_call": {"name": "ls"}, "thought_signature": "s"}, "call"),
        ({"text": "", "thoughtSignature": "s"}, "seal"),
        ({"text": ""}, ""),
        ({"inlineData": {"data": "AAAA"}, "functionCall": {"name": "", "args": {}}}, "blob"),
        ({"inlineData": {}}, ""),
        ({"functionCall": None}, ""),
        (None, "blob"),
    ],
)
def test_what_a_part_is(part, kind):
    assert part_kind(part) == kind


def test_what_goes_on_across_a_border_is_one_run():
    contents = [
        [{"text": "I th", "thought": True}],
        [{"text": "ink.", "thought": True, "thoughtSignature": "s"}],
        [{"text": "A new one", "thought": True}, {"text": "He"}],
        [{"text": "llo"}, {"text": ""}, {"text": "!", "thoughtSignature": "t"}],
    ]
    found = [(run.kind, run.places) for run in runs(contents)]
    assert found == [("thought", [0, 1]), ("thought", [2]), ("text", [3, 4]), ("text", [6])]


def test_parts_side_by_side_stay_apart():
    assert [run.places for run in runs([[{"text": "a"}, {"text": "b"}]])] == [[0], [1]]


def test_a_run_is_one_part_with_the_last_signature_and_everything_else_of_the_first():
    first = b'{"x": 1.10, "text":"I th","thought":true}'
    last = {"text": "ink", "thoughtSignature": "s"}
    made = merged_part(first, ["I th", "ink"], last)
    assert made.startswith(b'{"x": 1.10, ')
    assert json.loads(made) == {
        "x": 1.1,
        "text": "I think",
        "thought": True,
        "thoughtSignature": "s",
    }
    assert merged_part(first, ["I th"], last) is first


def test_signatures_in_either_spelling():
    assert [signature({key: "s"}) for key in ("thoughtSignature", "thought_signature")] == ["s"] * 2
    assert signature({"thoughtSignature": 1}) == signature(None) == ""
    assert without_signature(b'{"text":"a", "thought_signature":"s"}') == b'{"text":"a"}'


def test_a_key_that_stands_twice_is_read_as_everybody_reads_it():
    assert set_member(b'{"a":1,"a":2}', "b", b"3") == b'{"a":2,"b":3}'
