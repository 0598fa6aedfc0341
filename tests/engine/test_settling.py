"""What of a request is settled: all but the last output, and nothing that clients change."""

import asyncio

import pytest

from support.both_ways import BothWays, Talk
from thoughtline.gateway import proxy


@pytest.fixture
def talk(monkeypatch):
    monkeypatch.setattr(proxy, "Engine", BothWays)
    with asyncio.Runner() as runner:
        yield lambda name, **options: Talk(runner, name, **options)


def kept(talk):
    """The settled beginning that is kept."""
    (prefix,) = talk.engine.prefixes._used
    return prefix


@pytest.mark.parametrize("name", ["deepseek", "claude-bound", "openai", "gemini"])
def test_all_outputs_but_the_last_are_settled(talk, name):
    here = talk(name)
    for _ in range(6):
        here.turn()
    prefix = kept(here)
    assert prefix.turns.turns == 4  # the last request had five
    assert [made.turn for made in prefix.turns.decisions] == [0, 1, 2, 3]
    assert prefix.turns.mark.count == 4
    behind = prefix.body[prefix.end :]
    assert behind.startswith(b"{")
    assert prefix.sent[prefix.sent_end :].startswith(b"{")
    assert here.engine.prefixes.size == prefix.size


def test_markers_that_move_on_do_not_end_the_reuse(talk):
    """The client marks its last two messages, in each request anew."""
    here = talk("claude-bound", echo="keep")
    here.marked()
    for _ in range(8):
        here.turn()
    assert b'"cache_control"' not in kept(here).body[: kept(here).end]
    assert here.engine.reused >= 4


def test_an_output_that_is_unknown_settles_nothing(talk):
    here = talk("deepseek")
    here.client.to = here.sim
    here.turn()
    here.client.to = here._post
    for _ in range(3):
        here.turn()
    assert len(here.engine.prefixes) == 0


def test_what_is_switched_off_keeps_nothing(talk):
    here = talk("deepseek", settled=0)
    for _ in range(4):
        here.turn()
    assert len(here.engine.prefixes) == 0
    assert set(here.engine.whole) == {"off"}


@pytest.mark.parametrize(
    ("name", "step", "why"),
    [
        ("deepseek", "quarantine", "index"),
        ("deepseek", "erase", "index"),
        ("deepseek", "purge", "index"),
        ("deepseek", "edit", "new"),
        ("gemini-vertex", "other_model", "target"),  # there, it stands in the path
        ("claude-bound", "respaced", "new"),
    ],
)
def test_why_the_whole_is_walked(talk, name, step, why):
    here = talk(name)
    for _ in range(8):
        here.turn()
    here.engine.whole.clear()
    getattr(here, step)()
    here.turn()
    assert why in here.engine.whole


@pytest.mark.parametrize("name", ["glm", "claude", "gemini"])
def test_a_new_question_of_the_user_does_not_end_the_reuse(talk, name):
    """They want thoughts within a tool loop, and all of them are there."""
    here = talk(name)
    for _ in range(9):
        here.turn()
    assert here.engine.whole == ["new"] * 3
    assert here.engine.reused == 6
