"""Log lines: events with fields, as JSON for machines or short for people.

Nothing global is configured: a `Log` knows its stream. A line below its level costs one call that
does nothing. Tracebacks are plain, because a frame's variables hold bodies and keys. A stream that
is closed or fails loses lines, never requests.
"""

import asyncio
import sys
from collections.abc import MutableMapping
from typing import Any, Literal, TextIO, TypeAlias

import msgspec
import structlog
from structlog.dev import ConsoleRenderer, plain_traceback
from structlog.typing import FilteringBoundLogger

from thoughtline.gateway.telemetry.short_lines import ShortLines

Log: TypeAlias = FilteringBoundLogger
Style = Literal["auto", "json", "text"]

_encode = msgspec.json.Encoder(enc_hook=str).encode


class _Stream:
    """Writes lines to a stream; those of one iteration of the event loop are written together."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: list[str] = []

    def msg(self, line: str) -> None:
        """Write at the loop's next iteration: a write hands the interpreter to other threads."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._write(line + "\n")
            return
        self._lines.append(line + "\n")
        if len(self._lines) == 1:
            loop.call_soon(self._flush)

    def _flush(self) -> None:
        lines = self._lines.copy()
        del self._lines[: len(lines)]
        self._write("".join(lines))

    def _write(self, text: str) -> None:
        """Write; a stream that fails must not stop the gateway."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            return

    debug = info = warning = warn = error = critical = exception = log = msg


def _json(_: Any, __: str, event: MutableMapping[str, Any]) -> str:
    ordered = {"time": event.pop("timestamp"), "level": event.pop("level")}
    return _encode(ordered | {"event": event.pop("event")} | dict(event)).decode()


def open_log(*, level: str = "info", style: Style = "auto", stream: TextIO | None = None) -> Log:
    """A log on this stream (standard error by default) with lines of at least this level."""
    out = sys.stderr if stream is None else stream
    terminal = out.isatty()
    pretty = style == "text" or (style == "auto" and terminal)
    processors: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S" if pretty else "iso", utc=not pretty),
    ]
    if pretty:
        columns = ConsoleRenderer(
            colors=terminal,
            pad_event_to=12,
            exception_formatter=plain_traceback,
            sort_keys=False,
        )
        processors.append(ShortLines(columns, colours=terminal))
    else:
        processors += [structlog.processors.format_exc_info, _json]
    log: Log = structlog.wrap_logger(
        _Stream(out),
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        context_class=dict,
        cache_logger_on_first_use=True,
    ).bind()
    return log
