import json

import pytest

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.params import (
    EFFORTS,
    budget_of_effort,
    effort_of_budget,
    nearest_effort,
    unread,
)


@pytest.mark.parametrize(
    ("effort", "steps", "found"),
    [
        ("low", (), "low"),
        ("low", ("high", "max"), "high"),
        ("xhigh", ("low", "high"), "high"),
        ("max", ("low", "medium"), "medium"),
        ("none", ("high", "max"), ""),
        ("none", ("none", "high"), "none"),
        ("", ("high",), ""),
    ],
)
def test_an_effort_is_raised_to_the_next_step_that_is_known(effort, steps, found):
    assert nearest_effort(effort, steps) == found


def test_efforts_and_budgets_rise_together():
    budgets = [budget_of_effort(effort) for effort in EFFORTS[1:]]
    assert budgets == sorted(budgets)
    assert effort_of_budget(0) == "none"
    assert effort_of_budget(-1) == ""
    assert effort_of_budget(8192) == "medium"
    assert effort_of_budget(10**6) == "max"


def test_a_budget_stays_below_the_limit_of_the_answer():
    assert budget_of_effort("high", max_tokens=4096) == 4095
    assert budget_of_effort("high", max_tokens=100) == 1024


HISTORIES = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "Hi."}]},
    "responses": {"model": "m", "input": "Hi."},
    "messages": {"model": "m", "messages": [{"role": "user", "content": "Hi."}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]},
}


def left_of(name, **members):
    dialect = DIALECTS[name]
    body = json.dumps({**HISTORIES[name], **members}).encode()
    return dialect.params(dialect.read(body)).left


@pytest.mark.parametrize("dialect", HISTORIES)
def test_a_member_that_nobody_knows_is_named(dialect):
    assert left_of(dialect) == ()
    assert left_of(dialect, new=1, other=None, another=[]) == ("new",)


@pytest.mark.parametrize(
    ("dialect", "members", "left"),
    [
        ("chat", {"min_p": 0.1, "web_search_options": {}}, ("min_p", "web_search_options")),
        ("chat", {"reasoning_effort": "utmost"}, ("effort=utmost",)),
        ("chat", {"response_format": {"type": "grammar"}}, ("response_format",)),
        ("chat", {"user": "u", "store": True, "metadata": {"a": "b"}}, ()),
        ("responses", {"text": {"format": {"type": "grammar"}}}, ("text.format",)),
        ("responses", {"store": False, "include": ["reasoning.encrypted_content"]}, ()),
        (
            "messages",
            {"output_config": {"task_budget": {"total": 1}}},
            ("output_config.task_budget",),
        ),
        ("messages", {"metadata": {"user_id": "u"}, "context_management": {"edits": []}}, ()),
        ("gemini", {"generation_config": {"speech_config": {"a": 1}}}, ("speechConfig",)),
        (
            "gemini",
            {"generationConfig": {"responseMimeType": "text/x.enum"}},
            ("responseMimeType",),
        ),
        ("gemini", {"toolConfig": {"retrievalConfig": {"a": 1}}}, ("retrievalConfig",)),
    ],
)
def test_what_cannot_be_said_elsewhere_is_named(dialect, members, left):
    assert left_of(dialect, **members) == left


def test_usual_values_ask_for_nothing():
    assert unread({"a": 1, "b": 2, "c": 3}, ("a",), {"b": (2,)}) == ["c"]
