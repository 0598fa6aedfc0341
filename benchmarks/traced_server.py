"""`thoughtline serve` that counts its own bytecode instructions, for `benchmarks.opcodes`.

It counts between the signals SIGUSR1 and SIGUSR2, in all threads, and then writes what it counted to
the file that `OPCODES_FILE` names: one row per function and thread. It imports nothing of this
checkout, so that it can serve the source of another one.
"""

import json
import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_Place = tuple[str, CodeType]
"""Name of the thread and code of the function."""
_opcodes: Counter[_Place] = Counter()
_calls: Counter[_Place] = Counter()
_counting = threading.Event()


def _trace(frame: FrameType, event: str, _: Any) -> Any:
    if not _counting.is_set():
        return None
    place = threading.current_thread().name, frame.f_code
    if event == "call":
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        _calls[place] += 1
    elif event == "opcode":
        _opcodes[place] += 1
    return _trace


def _start(*_: object) -> None:
    _counting.set()
    sys.settrace(_trace)


def _stop(*_: object) -> None:
    _counting.clear()
    sys.settrace(None)
    rows = [
        (thread, code.co_filename, code.co_qualname, count, _calls[thread, code])
        for (thread, code), count in _opcodes.most_common()
    ]
    written = Path(os.environ["OPCODES_FILE"])
    written.with_suffix(".part").write_text(json.dumps(rows))
    written.with_suffix(".part").rename(written)


if __name__ == "__main__":
    from thoughtline.cli import main

    threading.settrace(_trace)
    signal.signal(signal.SIGUSR1, _start)
    signal.signal(signal.SIGUSR2, _stop)
    sys.argv[0] = "thoughtline"
    main()
