"""A request's log line for people: what fits on one line of a terminal.

    14:02:11  200  deepseek-v4-pro at deepseek  2 restored  thought 1.2 s  1,204 → 87 tokens  3.4 s

The session's short id at the end can be given to `thoughtline show`. Everything else about the
request is in the line as JSON (`log.format`).
"""

from collections.abc import Mapping, MutableMapping
from typing import Any

from structlog.typing import Processor

from thoughtline.log.decisions import ReplayWord

SHOWN = tuple(
    word.value for word in ReplayWord if word not in (ReplayWord.EXACT, ReplayWord.ABSENT)
)
"""Counts that people want to see: what was changed, and what could not be."""
_GREEN, _YELLOW, _RED, _DIM, _PLAIN = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[2m", "\x1b[0m"
_SHORT_ID = 12  # characters


class ShortLines:
    """Renders `request` events as short lines; others as `otherwise` does."""

    def __init__(self, otherwise: Processor, *, colours: bool) -> None:
        self._otherwise = otherwise
        self._colours = colours

    def __call__(self, log: Any, name: str, event: MutableMapping[str, Any]) -> Any:
        """The line."""
        if event.get("event") != "request" or "exc_info" in event:
            return self._otherwise(log, name, event)
        status = event["status"]
        colour = _GREEN if status < 400 else _YELLOW if status < 500 else _RED
        line = f"{self._in(_DIM, event['timestamp'])}  {self._in(colour, str(status))}"
        words = "  ".join(_words(event))
        session = str(event.get("session", ""))[-_SHORT_ID:]
        return f"{line}  {words}" + (f"  {self._in(_DIM, session)}" if session else "")

    def _in(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_PLAIN}" if self._colours else text


def _words(event: Mapping[str, Any]) -> list[str]:
    model, upstream = event.get("model", ""), event.get("upstream", "")
    words = [f"{model} at {upstream}" if model and upstream else model or upstream or "-"]
    if (outcome := event["outcome"]) != "completed":
        words.append(f"{outcome}: {event['reason']}" if event.get("reason") else outcome)
    words += [f"{event[word]} {word}" for word in SHOWN if event.get(word)]
    if event.get("thinking"):
        words.append(f"thinking {event['thinking']}")
    if event.get("thought_seconds") is not None:
        words.append(f"thought {_seconds(event['thought_seconds'])}")
    tokens = [event.get(f"{kind}_tokens") for kind in ("input", "output")]
    if any(tokens):
        words.append(f"{tokens[0] or 0:,} → {tokens[1] or 0:,} tokens")
    if "seconds" in event:
        words.append(_seconds(event["seconds"]))
    return [_printable(word) for word in words]


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _printable(text: str) -> str:
    """A client's words (its model's name) without what would move the cursor."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
