"""Sessions as people read them: one paragraph a turn, thoughts folded away unless asked for.

Everything shown was said by people and models, so control characters are made harmless first.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from thoughtline.durations import Span, spans
from thoughtline.events import Outcome
from thoughtline.parts import Blob, Call, Decision, Part, Result, Text, Thought
from thoughtline.turns import Turn

MOST = 300  # characters of a result or of arguments


def clean(text: str) -> str:
    """A text that does nothing to a terminal but appear on it."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def brief(text: str, most: int = MOST) -> str:
    """One line of it."""
    line = clean(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def told(turn: Turn, *, thoughts: bool) -> Iterator[tuple[str, str]]:
    """A turn as lines, each with a style: you, tool, thought, call, said, note."""
    for part in turn.input:
        yield from _heard(part)
    timed = {span.place: span for span in spans(turn)}  # halves of one thought are told once
    for place, part in enumerate(turn.output):
        if not isinstance(part, Thought):
            yield from _said(part)
        elif place in timed:
            yield from _thought(part, timed[place], thoughts=thoughts)
    if turn.outcome is None:
        yield "note", "(not ended: it is still running, or its process died)"
    elif turn.outcome is not Outcome.COMPLETED:
        yield "note", f"({turn.outcome.value}: {brief(turn.reason)})".replace(": )", ")")
    yield from (("note", line) for line in replayed(turn))


def _heard(part: Part) -> Iterator[tuple[str, str]]:
    match part:
        case Text():
            yield "you", clean(part.text)
        case Result():
            mark = "✗" if part.error else "←"
            yield "tool", f"{mark} {brief(part.name or part.call)}  {brief(part.content)}"
        case Decision() if part.verdict != "allow":  # that it was allowed shows by its result
            why = f" ({brief(part.reason)})" if part.reason else ""
            yield "tool", f"{part.verdict}{why}"
        case Blob():
            yield "you", f"[{brief(part.kind)}]"


def _thought(part: Thought, span: Span, *, thoughts: bool) -> Iterator[tuple[str, str]]:
    size = f", sealed, {len(part.raw):,} bytes" if part.sealed and not span.summary else ""
    yield "thought", f"{span.text}{size}"
    if thoughts and span.summary.strip():
        yield "thought", clean(span.summary.strip())


def _said(part: Part) -> Iterator[tuple[str, str]]:
    match part:
        case Text():
            yield "said", clean(part.text.strip())
        case Call():
            yield "call", f"→ {brief(part.name)}({brief(part.arguments)})"
        case Blob():
            yield "said", f"[{brief(part.kind)}]"


def replayed(turn: Turn) -> list[str]:
    """What of a turn's thoughts stayed behind, and why; nothing where all went along."""
    left: dict[str, int] = {}
    for ruling in turn.replay:
        if isinstance(ruling, dict) and ruling.get("left"):
            reason = str(ruling.get("reason", ""))
            left[reason] = left.get(reason, 0) + int(ruling["left"])
    return [f"({count} left behind: {brief(reason)})" for reason, count in left.items()]


def ago(at: float, now: float | None = None) -> str:
    """How long ago, roughly."""
    seconds = max(0.0, (time.time() if now is None else now) - at)
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {name} ago"
    return "just now"


def as_json(turns: Iterable[Turn], *, thoughts: bool) -> list[dict[str, Any]]:
    """Turns for scripts; the text and the raw value of thoughts only when asked for."""
    made: list[dict[str, Any]] = []
    for turn in turns:
        built: dict[str, Any] = msgspec.to_builtins(turn)
        timed = {span.place: span for span in spans(turn)}
        for place, part in enumerate(built["output"]):
            if part["type"] == "thought":
                part["seconds"] = timed[place].seconds if place in timed else None
                if not thoughts:
                    part.pop("raw", None)
                    part.pop("text", None)
        made.append(built)
    return made
