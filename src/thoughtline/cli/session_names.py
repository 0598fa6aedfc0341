"""Which session and which turn a name on the command line means.

A session is named by its id, by a beginning or an end of it that no other has, or by `last`; a turn
by its number in `thoughtline show`, or by its id in the same way. The short ids that commands print
are ends of ids, because ids begin with the time.
"""

from collections.abc import Sequence

import click

from thoughtline.agents.log import Log
from thoughtline.cli.rendering import ago
from thoughtline.log.sessions import Session
from thoughtline.stores.base import INTERNAL_PREFIX, SessionCursor, SessionSummary

MAX_LISTED = 5
_PAGE = 500
_ELLIPSIS = "…"


async def list_sessions(log: Log, limit: int | None = None) -> list[SessionSummary]:
    """The sessions, the last used first."""
    found: list[SessionSummary] = []
    after: SessionCursor | None = None
    while limit is None or len(found) < limit:
        listing = await log.store.search(limit=_PAGE, after=after)
        found += [one for one in listing.sessions if not one.session.startswith(INTERNAL_PREFIX)]
        if (after := listing.after) is None:
            break
    return found[:limit]


async def find_session(log: Log, name: str) -> str:
    """The id of the session that a name, a part of an id or `last` means."""
    if name == "last":
        newest = await list_sessions(log, 1)
        if not newest:
            raise click.ClickException("there are no sessions yet; try `thoughtline chat`")
        return newest[0].session
    if await log.store.read(name, limit=1):
        return name
    sessions = await list_sessions(log)
    found = _matching(name, [one.session for one in sessions])
    if len(found) == 1:
        return found[0]
    if not found:
        raise click.ClickException(
            f"no session is called {name!r}; `thoughtline sessions` lists them"
        )
    used = {one.session: ago(one.touched) for one in sessions}
    raise click.ClickException(_ambiguous(name, "sessions", [f"{id}  {used[id]}" for id in found]))


def find_turn(session: Session, name: str) -> str:
    """The id of the turn that a number (from 1) or a part of an id means."""
    ids = [turn.id for turn in session.turns]
    if name.isdecimal() and 1 <= int(name) <= len(ids):
        return ids[int(name) - 1]
    found = _matching(name, ids)
    if len(found) == 1:
        return found[0]
    if not found:
        raise click.ClickException(f"no turn is called {name!r}; `thoughtline show` numbers them")
    lines = [f"{id}  number {ids.index(id) + 1}" for id in found]
    raise click.ClickException(_ambiguous(name, "turns", lines))


def _matching(name: str, ids: Sequence[str]) -> list[str]:
    """The ids that a name stands for: the id itself, else those that begin or end with it."""
    part = name.strip(_ELLIPSIS)
    if part in ids:
        return [part]
    return [id for id in ids if part and (id.startswith(part) or id.endswith(part))]


def _ambiguous(name: str, what: str, lines: Sequence[str]) -> str:
    more = len(lines) - MAX_LISTED
    listed = [*lines[:MAX_LISTED], *([f"and {more} more"] if more > 0 else [])]
    said = "".join(f"\n  {line}" for line in listed)
    return f"{name!r} could be {len(lines)} {what}; type more of the one you mean:{said}"
