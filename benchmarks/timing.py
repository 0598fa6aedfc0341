"""How long a piece of work takes: the fastest of several runs, in CPU time."""

import time
from collections.abc import Callable


def best(work: Callable[[], object], times: int = 20) -> float:
    """CPU seconds of the fastest of so many runs."""
    fastest = float("inf")
    for _ in range(times):
        begun = time.process_time_ns()
        work()
        fastest = min(fastest, time.process_time_ns() - begun)
    return fastest / 1e9
