"""What every test shares: the loop, the collector, how hard hypothesis looks, what a hang leaves."""

import asyncio
import gc
import inspect
import os
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
import uvicorn.server
from hypothesis import HealthCheck, settings

from support.loop_clock import stopped

# Before anything imports them: assertions in the shared suites explain themselves like those in tests.
pytest.register_assert_rewrite("stores.contract", "stores.samples")

# Everything that tests talk to is on this machine: a proxy would only stand in between.
for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
    os.environ.pop(name, None)
    os.environ.pop(name.upper(), None)

# Simulated models follow the script for tests, in every process: six awkward turns, at once.
os.environ["THOUGHTLINE_INTERNAL_STRICT_SIMULATORS"] = "1"

REALISTIC = ("agents", "engine", "gateway", "translation", "transports", "verify", "wires")
"""Folders of tests whose simulators answer with the odd shapes of real providers, by default.

The others judge the simulators themselves, or clients that stumble over such answers.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    os.environ["THOUGHTLINE_INTERNAL_REALISTIC_SIMULATORS"] = "1" if folder in REALISTIC else ""


class Impatient:
    """`asyncio` for servers in this process: whether they shall end is looked at ten times as often.

    Hundreds of tests start one, and each waited for a fifth of a second until it had ended.
    """

    def __getattr__(self, name):
        return getattr(asyncio, name)

    @staticmethod
    async def sleep(seconds):
        await asyncio.sleep(seconds / 10)


uvicorn.server.asyncio = Impatient()

# No deadline: a slow machine is not a bug. By default the examples are the same in every run, so
# that a change is judged by what it changes; `HYPOTHESIS_PROFILE=thorough` looks somewhere new, and
# longer, and a failure is printed with the example that reproduces it.
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=100,
    print_blob=True,
    # What they measure depends on the machine, and on the texts that hypothesis finds in whatever
    # modules were imported before: neither is a bug.
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=15)
settings.register_profile(
    "thorough", settings.get_profile("ci"), derandomize=False, max_examples=2000
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def loop_clock():
    """The clock of the test's loop, which stands still until it is moved."""
    with stopped(asyncio.get_running_loop()) as clock:
        yield clock


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Let the garbage collector skip twelve thousand tests and all that they import.

    Every full collection went through them: half a second each, and tests of memory ask for many.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


# -- what was not tried ---------------------------------------------------------------------------


def pytest_terminal_summary(terminalreporter, config):
    """Say in one line what was not tried here, and how to try it."""
    left = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()))
    if not left:
        return
    names = sorted(
        {why.removeprefix("Skipped: ").partition(" is not installed")[0] for why in left},
        key=str.lower,
    )
    terminalreporter.write_line(
        f"Not tried here: {left.total()} tests ({', '.join(names)}). `make clients` installs what "
        "they need, and runs them."
    )


# -- a test that hangs ---------------------------------------------------------------------------
# Its threads stand in their event loops, which says nothing: what it waits for is in the tasks.

BEFORE = 5.0
"""Seconds before the time limit at which they are told."""
_watching: dict[str, threading.Timer] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item, settings):
    limit = settings.timeout - BEFORE
    if limit > 0 and inspect.iscoroutinefunction(getattr(item, "function", None)):
        timer = _watching[item.nodeid] = threading.Timer(limit, tell_tasks, (item.nodeid,))
        timer.daemon = True
        timer.start()


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_cancel_timer(item):
    if (timer := _watching.pop(item.nodeid, None)) is not None:
        timer.cancel()


def tell_tasks(name):
    """Where every task of every loop in this process stands, on the standard error output."""
    tasks = [one for one in gc.get_objects() if isinstance(one, asyncio.Task) and not one.done()]
    told = ["\n  ".join([task.get_name(), *standing(task.get_coro())]) for task in tasks]
    sys.stderr.write("\n".join([f"\n{name} is about to run out of time; its tasks:", *told, ""]))


def standing(inner):
    """The lines that a coroutine stands in, the outermost first, and what it waits for there."""
    lines = []
    while inner is not None:
        if (kind := kind_of(inner)) is None:  # a step of a generator, or what is waited for
            lines.append(repr(inner))
            inner = next((one for one in gc.get_referents(inner) if kind_of(one)), None)
            continue
        frame = getattr(inner, f"{kind}_frame")
        lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}")
        inner = getattr(inner, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
    return lines


def kind_of(one):
    """How the members of a coroutine or a generator that has not ended begin."""
    return next((kind for kind in ("cr", "ag", "gi") if getattr(one, f"{kind}_frame", None)), None)
