"""Renders turns for the terminal: one paragraph each, thoughts folded away unless asked for.

Texts come from people and models, so control characters are escaped before they are shown.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

import click
import msgspec

from thoughtline.errors import Unreadable
from thoughtline.log.durations import ThoughtSpan, thought_spans
from thoughtline.log.events import (
    AssistantMessage,
    Event,
    Outcome,
    PermissionDecision,
    Quarantined,
    Reasoning,
    ToolCall,
    ToolResult,
    TurnEnded,
    UserMessage,
)
from thoughtline.log.parts import Blob, Call, Decision, Part, Result, Text, Thought
from thoughtline.log.titles import without_notes
from thoughtline.log.turns import Turn

MAX_LENGTH = 300  # characters of a result or of arguments
SHORT_ID = 12  # characters
NO_TOOLS: Mapping[str, str] = MappingProxyType({})


def clean(text: str) -> str:
    """The text with control characters escaped, safe for a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def brief(text: str, max_length: int = MAX_LENGTH) -> str:
    """The text on one line, cut where it is too long."""
    line = clean(" ".join(text.split()))
    return line if len(line) <= max_length else line[: max_length - 1] + "…"


def short_id(id: str) -> str:
    """The end of an id, as `find_session` takes it."""
    return id if len(id) <= SHORT_ID else id[-SHORT_ID:]


def short_ids(ids: Sequence[str]) -> list[str]:
    """The short form of each id; the whole id where another one has the same end."""
    ends = [short_id(id) for id in ids]
    return [end if ends.count(end) == 1 else id for id, end in zip(ids, ends, strict=True)]


def rendered_turn(
    turn: Turn, *, thoughts: bool, tools: Mapping[str, str] = NO_TOOLS
) -> Iterator[tuple[str, str]]:
    """The lines of a turn, each with a style: you, tool, thought, call, said or note.

    `tools` are the names of the tools by the ids of earlier calls, which results name.
    """
    for part in turn.input:
        yield from _input_lines(part, tools)
    timed = {
        span.place: span for span in thought_spans(turn)
    }  # sibling carriers of one thought count once
    for place, part in enumerate(turn.output):
        if not isinstance(part, Thought):
            yield from _output_lines(part)
        elif place in timed:
            yield from _thought_lines(part, timed[place], thoughts=thoughts)
    if turn.outcome is None:
        yield "note", "(not ended: it is still running, or its process died)"
    elif turn.outcome is not Outcome.COMPLETED:
        yield "note", f"({turn.outcome.value}: {brief(turn.reason)})".replace(": )", ")")
    yield from (("note", line) for line in _not_replayed(turn))


def _input_lines(part: Part, tools: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    match part:
        case Text():
            yield from _spoken_lines(part.text)
        case Result():
            mark, name = "✗" if part.error else "←", part.name or tools.get(part.call, part.call)
            yield "tool", f"{mark} {brief(name)}  {brief(part.content)}"
        case Decision() if part.verdict != "allow":  # that it was allowed shows by its result
            why = f" ({brief(part.reason)})" if part.reason else ""
            yield "tool", f"{part.verdict}{why}"
        case Blob():
            yield "you", f"[{brief(part.kind)}]"


def _spoken_lines(text: str) -> Iterator[tuple[str, str]]:
    """What a person said; the notes that a client put before it are folded away."""
    words = without_notes(text)
    if words:
        yield "you", clean(words)
    if folded := len(text.strip()) - len(words):
        yield "note", f"(notes of the client, {folded:,} characters)"


def _thought_lines(
    part: Thought, span: ThoughtSpan, *, thoughts: bool
) -> Iterator[tuple[str, str]]:
    size = f", sealed, {len(part.raw):,} bytes" if part.sealed and not span.summary else ""
    yield "thought", f"{span.text}{size}"
    if thoughts and span.summary.strip():
        yield "thought", clean(span.summary.strip())


def _output_lines(part: Part) -> Iterator[tuple[str, str]]:
    match part:
        case Text():
            yield "said", clean(part.text.strip())
        case Call():
            yield "call", f"→ {brief(part.name)}({brief(part.arguments)})"
        case Blob():
            yield "said", f"[{brief(part.kind)}]"


def _not_replayed(turn: Turn) -> list[str]:
    """How many thoughts were not replayed in a turn, and why; empty if all were."""
    left: dict[str, int] = {}
    for decision in turn.replay:
        if decision.left:
            left[decision.reason] = left.get(decision.reason, 0) + decision.left
    return [f"({count} left out: {brief(reason)})" for reason, count in left.items()]


def ago(at: float, now: float | None = None) -> str:
    """How long ago, roughly."""
    seconds = max(0.0, (time.time() if now is None else now) - at)
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {name} ago"
    return "just now"


def as_json(turns: Iterable[Turn], *, thoughts: bool) -> list[dict[str, Any]]:
    """Turns for scripts; the text and the raw value of thoughts only when asked for."""
    rows: list[dict[str, Any]] = []
    for turn in turns:
        built: dict[str, Any] = msgspec.to_builtins(turn)
        timed = {span.place: span for span in thought_spans(turn)}
        for place, part in enumerate(built["output"]):
            if part["type"] == "thought":
                part["seconds"] = timed[place].seconds if place in timed else None
                if not thoughts:
                    part.pop("raw", None)
                    part.pop("text", None)
        rows.append(built)
    return rows


def event_line(event: Event) -> str:
    """An event on one line: when, in which session, what."""
    when = datetime.fromtimestamp(event.at).astimezone().strftime("%H:%M:%S")
    where = click.style(f"{when}  {short_id(event.session)}  ", dim=True)
    return f"{where}{event.type:<20} {_brief(event)}".rstrip()


def _brief(event: Event) -> str:
    """An event on one line; of a thought only how long it took."""
    try:
        body = event.body()
    except Unreadable:
        return click.style("(damaged)", fg="red")
    match body:
        case UserMessage(parts=parts):
            turn = Turn(input=parts)
        case ToolResult(result=result):
            turn = Turn(input=(result,))
        case PermissionDecision(decision=decision):
            turn = Turn(input=(decision,))
        case AssistantMessage(parts=parts):
            turn = Turn(output=parts)
        case ToolCall(call=call):
            turn = Turn(output=(call,))
        case Reasoning(thought=thought):
            turn = Turn(output=(thought,))
        case TurnEnded(outcome=outcome, reason=reason):
            return brief(f"{outcome.value}  {reason}", 120)
        case Quarantined(reason=reason):
            return brief(reason, 120)
        case None:
            return click.style("(of a newer version)", dim=True)
        case _:
            return ""
    said = [text for style, text in rendered_turn(turn, thoughts=False) if style != "note"]
    return brief("  ".join(said), 120)
