"""What a template says of a request before it is written is what its dialect reads in the body."""

import json

import pytest

from thoughtline.dialects import DIALECTS
from thoughtline.engine.request_template import RequestTemplate
from thoughtline.log.parts import Origin, Text
from thoughtline.log.turns import Turn
from thoughtline.providers.contracts import Policy
from thoughtline.replay.guard import Target

TURNS = [Turn(input=(Text(text="Hi."),))]
OPTIONS = {
    "chat": [
        {},
        {"temperature": 0.5},
        {"thinking": {"type": "disabled"}},
        {"enable_thinking": True},
        {"chat_template_kwargs": {"thinking": False}},
        {"reasoning": {"enabled": False}},
        {"reasoning": {"effort": "high"}},
        {"reasoning_effort": "none"},
        {"reasoning_effort": 3},
    ],
    "messages": [
        {},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        {"thinking": {"type": "disabled"}},
        {"thinking": None},
    ],
    "responses": [
        {},
        {"reasoning": {"effort": "none"}},
        {"reasoning": {"effort": "low"}},
        {"reasoning": {"summary": "auto"}},
    ],
    "gemini": [
        {},
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}},
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 512}}},
        {"generation_config": {"thinking_config": {"include_thoughts": True}}},
    ],
}
CASES = [(name, options) for name, several in OPTIONS.items() for options in several]


def template(name, **more):
    target = Target(
        origin=Origin(dialect=name, provider="any"), policy=Policy(name="any", dialect=name)
    )
    return RequestTemplate(dialect=DIALECTS[name], target=target, model="m", **more)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_before_it_is_written_it_says_what_the_body_says(name, options):
    made = template(name, options=options)
    before, after = made.unwritten(TURNS), made.read(made.write(TURNS))
    assert before.thinking is after.thinking
    assert (before.model, before.stream, before.tools) == (after.model, after.stream, after.tools)
    assert before.turns == after.turns
    assert before.body == b""


@pytest.mark.parametrize("name", DIALECTS)
def test_members_are_set_and_removed(name):
    made = template(name, options={"metadata": {"a": "b"}, "seed": 1})
    body = json.loads(made.write(TURNS, {"metadata": None, "seed": b"2", "user": b'"me"'}))
    assert "metadata" not in body
    assert (body["seed"], body["user"]) == (2, "me")


def test_options_that_make_no_request_are_not_read():
    made = template("chat", options={"messages": "none"})
    assert made.read(made.write(TURNS)).turns == ()
