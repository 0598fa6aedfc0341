"""Runs `thoughtline` in a process whose time of day is wrong: by `CLOCK_SHIFT` seconds."""

import os
import runpy
import sys
import time
from pathlib import Path

_shift = float(os.environ["CLOCK_SHIFT"])
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + _shift
time.time_ns = lambda: _time_ns() + int(_shift * 1e9)

if __name__ == "__main__":
    sys.path[:] = [place for place in sys.path if Path(place) != Path(__file__).parent]
    runpy.run_module("thoughtline", run_name="__main__", alter_sys=True)
