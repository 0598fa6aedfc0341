"""Work that takes long leaves the event loop to the others."""

import asyncio
import sys
import threading

import pytest

from thoughtline.engine.offload import HeavyThread, run_aside


async def test_it_runs_in_a_thread_and_the_loop_goes_on():
    turns, here = 0, threading.get_ident()
    go = threading.Event()

    def work():
        assert go.wait(60)
        return threading.get_ident()

    running = asyncio.ensure_future(run_aside(work))
    while turns < 100:
        await asyncio.sleep(0)
        turns += 1
    assert not running.done()
    go.set()
    assert await running != here


async def test_what_it_raises_is_raised_here():
    with pytest.raises(ZeroDivisionError):
        await run_aside(lambda: 1 // 0)


async def test_an_iterator_that_ends_too_early_is_an_error_and_no_hang():
    """A future takes no `StopIteration`: whoever waited for it would wait for ever."""
    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(run_aside(lambda: next(iter(()))), 60)


async def test_threads_are_switched_more_often_only_meanwhile():
    thread, usual = HeavyThread(), sys.getswitchinterval()
    seen = await asyncio.gather(*(thread.run(sys.getswitchinterval) for _ in range(3)))
    assert max(seen) < usual
    assert sys.getswitchinterval() == usual
    with pytest.raises(ZeroDivisionError):
        await thread.run(lambda: 1 // 0)
    assert sys.getswitchinterval() == usual


async def test_one_thing_after_the_other():
    thread, active, most = HeavyThread(), 0, 0

    def work():
        nonlocal active, most
        active += 1
        most = max(most, active)
        active -= 1

    await asyncio.gather(*(thread.run(work) for _ in range(20)))
    assert most == 1
