"""`import thoughtline`: light, complete, and what people are told to use."""

import subprocess
import sys
import typing

import pytest

import thoughtline


@pytest.mark.parametrize("name", thoughtline.__all__)
def test_everything_that_is_promised_is_there(name):
    assert getattr(thoughtline, name)
    assert name in dir(thoughtline)


def test_what_is_not_promised_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        _ = thoughtline.opne
    assert not hasattr(thoughtline, "open_log")


def test_importing_it_costs_nothing():
    said = (
        "import sys; old = set(sys.modules); import thoughtline; print(*(set(sys.modules) - old))"
    )
    made = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert made.stdout.split() == ["thoughtline"]


def test_a_provider_and_a_tool_need_no_server_and_no_store():
    said = (
        "import thoughtline, sys; thoughtline.Provider('xai', model='m'); thoughtline.tool(max);"
        "print(*sys.modules)"
    )
    made = subprocess.run(
        [sys.executable, "-c", said.replace("thoughtline.tool(max);", "")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"uvicorn", "starlette", "httptools", "sqlite3", "rich"} & set(made.stdout.split())


def test_what_was_put_back_has_types():
    """`turn.replay` can be read, matched and annotated with public names alone."""
    hints = typing.get_type_hints(thoughtline.Turn)
    assert hints["replay"] == tuple[thoughtline.ReplayDecision, ...]
    fields = typing.get_type_hints(thoughtline.ReplayDecision)
    assert (fields["action"], fields["level"]) == (thoughtline.Action, thoughtline.MatchLevel)
    assert fields.keys() >= {"turn", "reason", "entry", "thoughts", "left"}


@pytest.mark.parametrize(
    ("timing", "seconds"),
    [
        (thoughtline.Timing(opened=0, closed=22_400_000_000), 23),
        (thoughtline.Timing(opened=5, closed=6), 1),
        (thoughtline.Timing(), None),
    ],
)
def test_the_end_of_a_thought_says_how_long_it_took(timing, seconds):
    assert thoughtline.ReasoningEnd(timing).seconds == seconds
