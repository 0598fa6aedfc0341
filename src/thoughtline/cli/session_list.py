"""The rows of `thoughtline sessions`: what each session was about, with whom, and what it took."""

from collections.abc import Iterator, Sequence

import click
from msgspec import Struct

from thoughtline.cli.rendering import ago, brief, short_id, short_ids
from thoughtline.inspector.outline import SessionOutline
from thoughtline.stores.base import SessionSummary, Store

_PAGE = 500


class ListedSession(Struct, kw_only=True):
    """One session of the list."""

    session: str
    tenant: str
    created: float
    touched: float
    events: int
    words: str = ""  # what it is called, or which session it was forked from
    models: list[str] = []  # as served, else as asked for; in the order they were used
    turns: int = 0
    input: int = 0  # tokens, as far as the providers counted them
    output: int = 0
    damaged: bool = False  # some of what is stored of it cannot be read


async def session_row(store: Store, summary: SessionSummary) -> ListedSession:
    """Read a session's events, and sum them up."""
    outline = SessionOutline(summary.session)
    while events := await store.read(summary.session, after=outline.seq, limit=_PAGE):
        for event in events:
            outline.apply(event)
    turns = outline.turns.values()
    usages = [turn.usage for turn in turns if turn.usage is not None]
    words = outline.title
    if not words and outline.origin is not None:
        words = f"(fork of {short_id(outline.origin.session)})"
    return ListedSession(
        session=summary.session,
        tenant=summary.tenant,
        created=summary.created,
        touched=summary.touched,
        events=summary.events,
        words=words,
        models=[model for model in dict.fromkeys(turn.model for turn in turns) if model],
        turns=len(turns),
        input=sum(usage.input or 0 for usage in usages),
        output=sum(usage.output or 0 for usage in usages),
        damaged=outline.damaged or summary.session in store.damage,
    )


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
