"""Tests wait for what happens, never for time to pass: a busy machine makes them slower, not red."""

import ast
import re
from functools import lru_cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
HANG = 60
"""Seconds: a limit only ends a hang, and is no shorter."""

EXCEPTIONS = {
    "conftest.py": "uvicorn looks ten times as often whether it shall end",
    "inspector/pictures.py": "pictures for the documents, and no test",
    "inspector/sample_sessions.py": "a page with life in it to look at, and no test",
    "support/cluster.py": "nginx asks a node again after a second; for measurements, and no test",
    "support/loop_clock.py": "time that a test moves",
    "support/tcp_proxy.py": "a line that is slow",
    "support/waiting.py": "the one place that waits",
}

CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"}
BY_PLACE = {"join", "result", "settimeout", "timeout", "wait", "wait_for"}
LIMITED = BY_PLACE | {"acquire", "communicate", "get", "recv"}
WORDS = re.compile("|".join([*CLOCKS, *LIMITED, "sleep", "wait_for_timeout", "Timer"]))


@lru_cache
def calls():
    """Calls in the tests: where each stands, its node, and whether a loop does nothing else."""
    found = []
    for path in sorted(TESTS.rglob("*.py")):
        place = path.relative_to(TESTS).as_posix()
        if "node_modules" in path.parts or place in EXCEPTIONS:
            continue
        if not WORDS.search(text := path.read_text("utf-8")):
            continue
        tree = ast.parse(text)
        polls = {
            id(call)
            for loop in ast.walk(tree)
            if isinstance(loop, ast.While) and len(loop.body) == 1
            for call in ast.walk(loop.body[0])
        }
        found += [
            (f"tests/{place}:{node.lineno}", node, id(node) in polls)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
        ]
    return found


def name_of(call):
    """The last part of what is called."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def number(node):
    return (
        node.value if isinstance(node, ast.Constant) and type(node.value) in (int, float) else None
    )


def limit(call):
    """The seconds after which a call gives up, if they are written there."""
    given = [word.value for word in call.keywords if word.arg == "timeout"]
    given += call.args if name_of(call) in BY_PLACE else []
    return next(filter(None, map(number, given)), None)


def test_nobody_sleeps():
    """`sleep(0)` lets others run; in a loop it waits for something: `support.waiting` does."""
    assert [
        place
        for place, call, polls in calls()
        if name_of(call) == "sleep" and call.args and (number(call.args[0]) != 0 or polls)
    ] == []


def test_nobody_waits_for_a_page_to_have_had_time():
    assert [place for place, call, _ in calls() if name_of(call) == "wait_for_timeout"] == []


def test_nothing_is_started_after_a_while():
    assert [place for place, call, _ in calls() if name_of(call) == "Timer"] == []


def test_nobody_looks_at_the_clock_on_the_wall():
    assert [place for place, call, _ in calls() if name_of(call) in CLOCKS] == []


def test_a_limit_only_ends_a_hang():
    assert [
        f"{place} {name_of(call)} {seconds}"
        for place, call, _ in calls()
        if name_of(call) in LIMITED and (seconds := limit(call)) is not None and seconds < HANG
    ] == []


def test_the_exceptions_are_needed():
    assert [place for place in EXCEPTIONS if not (TESTS / place).exists()] == []
