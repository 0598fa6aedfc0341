"""What a refusal lists as legal, and the nearest of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.dialects import splice
from thoughtline.dialects.params import EFFORTS
from thoughtline.engine.legal_values import legal_fields, listed_values, refused_value

LISTS = [
    ("reasoning_effort must be one of ['low', 'medium', 'high']", ("low", "medium", "high")),
    ("Invalid value: 'xhigh'. Supported values are: 'low', 'medium', and 'high'.", ("low", "medium", "high")),
    ("unknown level \"xhigh\", valid levels: none, low, high, max", ("none", "low", "high", "max")),
    ("effort must be (low|high|max)", ("low", "high", "max")),
    ("thinking level not supported (allowed: minimal, high)", ("minimal", "high")),
    ("This model only supports the following reasoning efforts: high, xhigh", ("high", "xhigh")),
    ("thinking cannot be disabled, please use low, high, or max", ("low", "high", "max")),
    ("Input should be 'low', 'medium' or 'high'", ("low", "medium", "high")),
    ("Range of max_tokens should be [1, 131072]", ("1..131072",)),
    ("max_tokens must be in [1,131072]", ("1..131072",)),
    ("tool_choice must be one of auto, none, required", ()),
    ("messages.[1].content is wrong", ()),
    ("The model does not exist", ()),
]  # fmt: skip


@pytest.mark.parametrize(("text", "legal"), LISTS)
def test_a_list_is_read_however_it_is_told(text, legal):
    assert listed_values(text) == legal


PLACES = [
    ({"reasoning_effort": "xhigh"}, "'reasoning_effort' must be one of low, high", "reasoning_effort", "high"),
    ({"reasoning_effort": "none"}, "valid levels: low, high", "reasoning_effort", "low"),
    ({"reasoning_effort": "max"}, "allowed: low, medium", "reasoning_effort", "medium"),
    ({"reasoning": {"effort": "minimal", "summary": "auto"}}, "Supported values are: 'low' and 'high'", "reasoning.effort", "low"),
    ({"output_config": {"effort": "xhigh"}}, "output_config.effort: Input should be 'low', 'high' or 'max'", "output_config.effort", "max"),
    ({"generationConfig": {"thinkingConfig": {"thinkingLevel": "minimal"}}}, "thinkingLevel must be one of low, high", "generationConfig.thinkingConfig.thinkingLevel", "low"),
    ({"thinking": {"type": "disabled"}}, "please use low, high, or max", "thinking.type", None),
    ({"max_tokens": 200000}, "Range of max_tokens should be [1, 131072]", "max_tokens", 131072),
    ({"max_tokens": 0}, "max_tokens should be in [1, 131072]", "max_tokens", 1),
]  # fmt: skip


def at(body, path):
    for key in path.split("."):
        body = body.get(key) if isinstance(body, dict) else None
    return body


@pytest.mark.parametrize(("body", "text", "path", "value"), PLACES)
def test_the_member_is_found_and_gets_the_nearest_value(body, text, path, value):
    raw = json.dumps({"model": "m", "messages": [{"effort": "max"}], **body}).encode()
    found = refused_value(raw, "messages", text)
    assert found is not None
    assert found[0] == path
    fields, changed = legal_fields(raw, {}, [found], ())
    sent = json.loads(splice.with_members(raw, fields))
    assert at(sent, path) == value
    assert changed == (f"{path}:{at(body, path)}>{'' if value is None else value}",)
    assert sent["messages"] == [{"effort": "max"}]
    again, nothing = legal_fields(json.dumps(sent).encode(), {}, [found], ())
    assert (again, nothing) == ({}, ())


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"reasoning_effort": "low"}, "reasoning_effort must be one of low, high"),  # it is legal
        ({}, "valid levels: low, high"),
        ({"max_tokens": 5}, "messages must have [1, 100] elements"),
        ({"messages": [{"effort": "max"}]}, "effort must be one of low, high"),  # it is said
    ],
)
def test_what_it_is_not_about_is_left_alone(body, text):
    assert refused_value(json.dumps(body).encode(), "messages", text) is None


def test_an_effort_is_said_in_the_other_member():
    move = ("reasoning_effort", "reasoning.effort")
    fields, changed = legal_fields(b'{"reasoning_effort":"low"}', {}, (), [move])
    assert fields == {"reasoning_effort": None, "reasoning": b'{"effort":"low"}'}
    assert changed == ("reasoning_effort>reasoning.effort",)
    fields, _ = legal_fields(b'{"reasoning":{"effort":"low"}}', {}, (), [move[::-1]])
    assert fields == {"reasoning": None, "reasoning_effort": b'"low"'}


@given(
    legal=st.lists(st.sampled_from(EFFORTS), min_size=1, unique=True),
    value=st.sampled_from([*EFFORTS, "disabled", "other", 3, None]),
)
def test_what_goes_out_is_legal_or_none_of_its_business(legal, value):
    raw = json.dumps({"effort": value}).encode()
    fields, changed = legal_fields(raw, {}, [("effort", tuple(legal))], ())
    sent = json.loads(splice.with_members(raw, fields))
    if value in (*EFFORTS, "disabled"):
        assert sent.get("effort", legal[0]) in legal
        assert bool(changed) is (value not in legal)
    else:
        assert sent == {"effort": value}
