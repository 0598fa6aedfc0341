"""The rows of `thoughtline sessions`: what each session was about, with whom, and what it took."""

from collections.abc import Iterator, Sequence

import click
from msgspec import Struct

from thoughtline.cli.rendering import ago, brief, short_id, short_ids
from thoughtline.errors import Unreadable
from thoughtline.log.events import (
    DAMAGED_VERSION,
    Event,
    SessionForked,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from thoughtline.log.parts import Text
from thoughtline.log.usage import usage_of
from thoughtline.stores.base import SessionSummary, Store

_PAGE = 500
_READ = frozenset({"session_forked", "turn_ended", "turn_started", "user_message"})


class ListedSession(Struct, kw_only=True):
    """One session of the list."""

    session: str
    tenant: str
    created: float
    touched: float
    events: int
    words: str = ""  # the first message, or which session it was forked from
    models: list[str] = []  # as served, else as asked for; in the order they were used
    turns: int = 0
    input: int = 0  # tokens, as far as the providers counted them
    output: int = 0
    damaged: bool = False  # some of what is stored of it cannot be read


async def session_row(store: Store, summary: SessionSummary) -> ListedSession:
    """Read a session's events, and sum them up."""
    row = ListedSession(
        session=summary.session,
        tenant=summary.tenant,
        created=summary.created,
        touched=summary.touched,
        events=summary.events,
    )
    models: dict[str, str] = {}  # by turn
    dialects: dict[str, str] = {}
    after = -1
    while events := await store.read(summary.session, after=after, limit=_PAGE):
        after = events[-1].seq
        _add(row, events, models, dialects)
    row.damaged = row.damaged or summary.session in store.damage
    row.turns, row.models = (
        len(models),
        [model for model in dict.fromkeys(models.values()) if model],
    )
    return row


def _add(
    row: ListedSession, events: Sequence[Event], models: dict[str, str], dialects: dict[str, str]
) -> None:
    for event in events:
        row.damaged = row.damaged or event.version == DAMAGED_VERSION
        if event.type not in _READ or (event.type == "user_message" and row.words):
            continue  # thoughts, calls and results are not decoded
        try:
            body = event.body()
        except Unreadable:
            row.damaged = True
            continue
        match body:
            case TurnStarted(target=target):
                models[event.id] = target.model if target else ""
                dialects[event.id] = target.dialect if target else ""
            case TurnEnded(usage=usage, model=model):
                models[event.parent] = model or models.get(event.parent, "")
                dialect = dialects.pop(event.parent, "")
                if (usage := usage_of(usage, version=event.version, dialect=dialect)) is not None:
                    row.input += usage.input or 0
                    row.output += usage.output or 0
            case UserMessage(parts=parts):
                said = " ".join(part.text for part in parts if isinstance(part, Text))
                row.words = " ".join(said.split())
            case SessionForked(session=session):
                row.words = f"(fork of {short_id(session)})"


def session_lines(rows: Sequence[ListedSession], *, head: bool) -> Iterator[str]:
    """Sessions in columns, with a head; an id as `thoughtline show` takes it comes first."""
    ids = short_ids([row.session for row in rows])
    width = max(map(len, ids), default=0)
    models = [brief(", ".join(row.models) or "-", 24) for row in rows]
    model_width = max(map(len, models), default=0)
    if head and rows:
        about = f"{'turns':>9}  {'tokens':>20}  {'model':<{model_width}}"
        line = f"{'session':<{width}} {'last used':>12}  {about}  first message"
        yield click.style(line, dim=True)
    for id, row, model in zip(ids, rows, models, strict=True):
        when = click.style(f"{ago(row.touched):>12}", dim=True)
        turns = f"{row.turns} turn{'' if row.turns == 1 else 's'}"
        tokens = f"{row.input:,} in, {row.output:,} out" if row.input or row.output else "-"
        about = f"{turns:>9}  {tokens:>20}  {model:<{model_width}}"
        words = click.style("(damaged) ", fg="red") * row.damaged + brief(row.words, 60)
        yield f"{id:<{width}} {when}  {about}  {words}".rstrip()
