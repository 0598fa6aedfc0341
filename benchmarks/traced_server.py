"""`thoughtline serve` that counts its own bytecode instructions, for `benchmarks.opcodes`.

It counts between the signals SIGUSR1 and SIGUSR2, in all threads, and says that it has begun by a
file beside the one that `OPCODES_FILE` names. To that one it writes what it counted: one row
per function and thread, with the visits of its lines. It imports nothing of this checkout, so
that it can serve the source of another one.
"""

import json
import os
import signal
import sys
import threading
from collections import Counter, defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_Place = tuple[str, CodeType]
"""Name of the thread and code of the function."""
_opcodes: Counter[_Place] = Counter()
_calls: Counter[_Place] = Counter()
_lines: dict[_Place, Counter[int]] = defaultdict(Counter)
_counting = threading.Event()
_written = Path(os.environ.get("OPCODES_FILE", "opcodes.json"))


def _trace(frame: FrameType, event: str, _: Any) -> Any:
    if not _counting.is_set():
        return None
    place = threading.current_thread().name, frame.f_code
    if event == "call":
        frame.f_trace_opcodes = True
        _calls[place] += 1
    elif event == "opcode":
        _opcodes[place] += 1
    elif event == "line":
        _lines[place][frame.f_lineno] += 1
    return _trace


def _start(*_: object) -> None:
    for counted in (_opcodes, _calls, _lines):
        counted.clear()
    _counting.set()
    sys.settrace(_trace)
    _written.with_suffix(".begun").touch()


def _stop(*_: object) -> None:
    _counting.clear()
    sys.settrace(None)
    rows = [
        (*_where(place), count, _calls[place], _lines[place])
        for place, count in _opcodes.most_common()
    ]
    _written.with_suffix(".part").write_text(json.dumps(rows))
    _written.with_suffix(".part").rename(_written)


def _where(place: _Place) -> tuple[str, str, str]:
    thread, code = place
    return thread, code.co_filename, code.co_qualname


if __name__ == "__main__":
    from thoughtline.cli import main

    threading.settrace(_trace)
    signal.signal(signal.SIGUSR1, _start)
    signal.signal(signal.SIGUSR2, _stop)
    sys.argv[0] = "thoughtline"
    main()
