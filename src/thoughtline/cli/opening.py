"""What the commands about sessions share: which store, which session, which turn.

The store is the gateway's own unless `--store` says otherwise, so that what a client said through
the gateway is seen here, too. A session is named by its id, by a beginning or an end of it that no
other has, or by `last`; a turn by its number in `thoughtline show`, or by its id in the same way.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click

from thoughtline.errors import ThoughtlineError
from thoughtline.events import Event, SessionForked, UserMessage
from thoughtline.library.logs import Log, open_log
from thoughtline.parts import Text
from thoughtline.sessions import Session
from thoughtline.settings import load
from thoughtline.stores.base import INTERNAL, Summary
from thoughtline.wires.base import Wire

T = TypeVar("T")
Command = Callable[..., Any]
_PAGE = 500


def store_options(command: Command) -> Command:
    """`--store` and `--config`, the same for every command about sessions."""
    config = click.option(
        "--config", type=click.Path(), help="Settings file instead of ./thoughtline.toml."
    )
    store = click.option(
        "--store",
        "store_url",
        metavar="URL",
        help="Where sessions live.  [default: as the gateway has it]",
    )
    return config(store(command))


def opened(store_url: str | None, config: str | None, *, wire: Wire | None = None) -> Log:
    """The log of these options; the folder of its file is made, as the gateway makes it."""
    flags = {"store_url": store_url, "config": config}
    try:
        url = load(flags, os.environ, Path.cwd()).store.url
        path = url.partition("?")[0].removeprefix("sqlite:///")
        if url.startswith("sqlite:///") and path:
            Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return open_log(url, wire=wire)
    except ThoughtlineError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"the store's folder cannot be made: {error}") from error


def observed(config: str | None) -> str:
    """The file with policy rows as they were observed, if there is one."""
    try:
        return load({"config": config}, os.environ, Path.cwd()).replay.policies
    except ThoughtlineError as error:
        raise click.ClickException(str(error)) from error


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do it; a problem of ours is a sentence and not a stack trace, and Ctrl-C is no problem."""
    try:
        return asyncio.run(work)
    except ThoughtlineError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        raise SystemExit(130) from None


async def listed(log: Log, limit: int) -> list[Summary]:
    """The sessions that people talked in, the last used first."""
    found: list[Summary] = []
    before: float | None = None
    while len(found) < limit:
        page = await log.sessions(limit=_PAGE, before=before)
        found += [one for one in page if not one.session.startswith(INTERNAL)]
        if len(page) < _PAGE:
            break
        before = page[-1].touched
    return found[:limit]


async def find_session(log: Log, name: str) -> str:
    """The id of the session that is meant."""
    if name == "last":
        newest = await listed(log, 1)
        if not newest:
            raise click.ClickException("there are no sessions yet; try `thoughtline chat`")
        return newest[0].session
    if await log.store.read(name, limit=1):
        return name
    ids = [one.session for one in await listed(log, 10_000)]
    return _chosen(name, ids, "session", "`thoughtline sessions` lists them")


def find_turn(session: Session, name: str) -> str:
    """The id of the turn that is meant; numbers count from 1."""
    ids = [turn.id for turn in session.turns]
    if name.isdecimal() and 1 <= int(name) <= len(ids):
        return ids[int(name) - 1]
    return _chosen(name, ids, "turn", "`thoughtline show` numbers them")


def _chosen(name: str, ids: list[str], what: str, hint: str) -> str:
    found = [id for id in ids if id == name] or [
        id for id in ids if name and (id.startswith(name) or id.endswith(name))
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise click.ClickException(f"{len(found)} {what}s are called {name!r}; say more of it")
    raise click.ClickException(f"no {what} is called {name!r}; {hint}")


def short(id: str) -> str:
    """An id as people read it: its end, since the beginning is the time."""
    return id if len(id) <= 12 else f"…{id[-10:]}"


def first_words(events: list[Event]) -> str:
    """How a conversation began, or what it goes on from."""
    for event in events:
        body = event.body()
        if isinstance(body, SessionForked):
            return f"(fork of {short(body.session)})"
        if isinstance(body, UserMessage):
            said = " ".join(part.text for part in body.parts if isinstance(part, Text))
            return " ".join(said.split())
    return ""
