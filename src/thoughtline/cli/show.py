"""`thoughtline show`: one session as a conversation, with its branches."""

import json
from typing import Any

import click

from thoughtline.cli.opening import find_session, find_turn, opened, run, short, store_options
from thoughtline.cli.telling import as_json as turns_as_json
from thoughtline.cli.telling import told
from thoughtline.library.chats import Chat
from thoughtline.library.logs import Log
from thoughtline.turns import Turn

_HELP = """Show a session as a conversation.

Thoughts are folded away to how long they took; --thoughts shows them. Turns have numbers, which
`thoughtline fork` and --at take. Where the session has branches, the newest is shown and the
others are named at the end.

\b
    thoughtline show last
    thoughtline show last --thoughts
    thoughtline show 7f3a21 --at 4
"""
_STYLES: dict[str, dict[str, Any]] = {
    "you": {"bold": True},
    "tool": {"fg": "cyan"},
    "thought": {"dim": True, "italic": True},
    "call": {"fg": "cyan"},
    "said": {},
    "note": {"fg": "yellow"},
}


@click.command("show", help=_HELP, short_help="Show a session as a conversation.")
@click.argument("session", default="last")
@click.option("--thoughts", is_flag=True, help="Show what was thought.")
@click.option("--at", metavar="TURN", help="The branch that leads to this turn.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON instead of text.")
@store_options
def show(
    *,
    session: str,
    thoughts: bool,
    at: str | None,
    as_json: bool,
    store_url: str | None,
    config: str | None,
) -> None:
    """Show a session."""
    run(_show(opened(store_url, config), session, at, thoughts=thoughts, as_json=as_json))


async def _show(log: Log, name: str, at: str | None, *, thoughts: bool, as_json: bool) -> None:
    async with log:
        id = await find_session(log, name)
        chat = await log.resume(id)
        folded = await log.read(id)
        if at is not None:
            chat.switch(find_turn(folded, at))
        numbers = {turn.id: number for number, turn in enumerate(folded.turns, 1)}
        if as_json:
            _write_json(chat, thoughts=thoughts)
            return
        click.echo(f"session {id}")
        if folded.origin:
            click.echo(click.style(f"goes on from {folded.origin.session}", dim=True))
        for turn in chat.turns:
            _write(turn, numbers.get(turn.id), thoughts=thoughts)
        _write_branches(chat, numbers)


def _write_json(chat: Chat, *, thoughts: bool) -> None:
    said = {
        "session": chat.id,
        "head": chat.head,
        "heads": chat.heads,
        "branches": chat.branches,
        "turns": turns_as_json(chat.turns, thoughts=thoughts),
    }
    click.echo(json.dumps(said, ensure_ascii=False))


def _write(turn: Turn, number: int | None, *, thoughts: bool) -> None:
    mark = f"{number:>4}" if number is not None else "   ·"
    for style, text in told(turn, thoughts=thoughts):
        for line in text.split("\n"):
            click.echo(f"{click.style(mark, dim=True)}  {click.style(line, **_STYLES[style])}")
            mark = " " * 4


def _write_branches(chat: Chat, numbers: dict[str, int]) -> None:
    others = [head for head in chat.heads if head != chat.head]
    if others:
        named = ", ".join(f"{numbers[head]} ({short(head)})" for head in others)
        click.echo(click.style(f"\nother branches end at: {named}; show one with --at", dim=True))
