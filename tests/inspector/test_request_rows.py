"""The rows of requests, and what people look for among them."""

import pytest

from thoughtline.inspector.request_rows import FILTERS, RequestFilter, failed_row
from thoughtline.log.events import RequestFailed
from thoughtline.log.parts import Origin

TARGET = Origin(provider="deepseek", dialect="chat", model="v4-2026", asked="v4")


def row(status, **about):
    return failed_row("r1", 1.0, RequestFailed(status=status, target=TARGET, **about))


@pytest.mark.parametrize(("status", "outcome"), [(402, "refused"), (200, "passed")])
def test_a_request_without_a_turn_was_refused_or_passed_through(status, outcome):
    one = row(status, replay={"missed": 2, "absent": 1})
    assert (one.outcome, one.model, one.replay) == (outcome, "v4", {"missed": 2})


def test_each_filter_finds_its_own():
    found = {
        has: RequestFilter(has=has).matches(row(402, replay={"missed": 1}, thinking_off=True))
        for has in FILTERS
    }
    assert {has for has, matches in found.items() if matches} == {
        "failed",
        "missed",
        "thinking_off",
    }
    assert RequestFilter(has="passed").matches(row(200))
    assert not RequestFilter(provider="openai").matches(row(200))
    assert RequestFilter(provider="deepseek", model="v4").matches(row(200))
