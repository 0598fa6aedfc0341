"""The commands about sessions: list, show and tail them, fork, export and import them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from thoughtline.cli.store_options import json_option, with_log, with_new_log

if TYPE_CHECKING:
    from thoughtline.agents.chat import Chat
    from thoughtline.agents.log import Log
    from thoughtline.log.turns import Turn


@click.command("sessions")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    default=20,
    show_default=True,
    help="How many at most.",
)
@json_option
@with_log
async def sessions(log: Log, *, limit: int, as_json: bool) -> None:
    """List sessions, the last used first.

    Those of the gateway's clients and those made with `thoughtline chat` or the library, with how
    many turns they have, the tokens that went in and came out, and the models that answered. Show
    one with `thoughtline show`: the id in the first column can be pasted, and so can any beginning
    or end of an id that no other session has; `last` is the last one used.

    \b
        thoughtline sessions --limit 5
        thoughtline sessions --json | jq -r '.[].session'
    """
    import msgspec

    from thoughtline.cli.session_list import session_lines, session_row
    from thoughtline.cli.session_names import list_sessions

    rows = [await session_row(log.store, one) for one in await list_sessions(log, limit)]
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(rows), ensure_ascii=False))
        return
    for text in session_lines(rows, head=sys.stdout.isatty()):
        click.echo(text)
    if not rows:
        click.echo("No sessions yet. Try: thoughtline chat --provider sim:deepseek")


_STYLES: dict[str, dict[str, Any]] = {
    "you": {"bold": True},
    "tool": {"fg": "cyan"},
    "thought": {"dim": True, "italic": True},
    "call": {"fg": "cyan"},
    "said": {},
    "note": {"fg": "yellow"},
}


@click.command("show")
@click.argument("session", default="last")
@click.option("--thoughts", is_flag=True, help="Show what was thought.")
@click.option("--at", metavar="TURN", help="The branch that leads to this turn.")
@json_option
@with_log
async def show(log: Log, *, session: str, thoughts: bool, at: str | None, as_json: bool) -> None:
    """Show a session as a conversation.

    Thoughts are folded away to how long they took; --thoughts shows them. Turns have numbers, which
    `thoughtline fork` and --at take. Where the session has branches, the newest is shown and the
    others are named at the end.

    \b
        thoughtline show last
        thoughtline show last --thoughts
        thoughtline show 7f3a21 --at 4
    """
    from thoughtline.cli.session_names import find_session, find_turn

    id = await find_session(log, session)
    chat = await log.resume(id)
    folded = await log.read(id)
    if at is not None:
        chat.switch(find_turn(folded, at))
    if as_json:
        _write_json(chat, thoughts=thoughts)
        _refuse_damage(log, id)
        return
    click.echo(f"session {id}")
    if folded.origin:
        click.echo(click.style(f"goes on from {folded.origin.session}", dim=True))
    numbers = {turn.id: number for number, turn in enumerate(folded.turns, 1)}
    tools: dict[str, str] = {}  # the name of the tool by the id of its last call
    for turn in chat.turns:
        _write_turn(turn, numbers.get(turn.id), tools, thoughts=thoughts)
        tools.update({call.id: call.name for call in turn.calls})
    _write_branches(chat, numbers)
    _refuse_damage(log, id)


def _refuse_damage(log: Log, session: str) -> None:
    """End with an error where something of a session could not be read: not all of it was shown."""
    if reason := log.store.damage.reason(session):
        raise click.ClickException(f"not all of it can be read: {reason}")


def _write_json(chat: Chat, *, thoughts: bool) -> None:
    from thoughtline.cli.rendering import as_json as turns_as_json

    answer = {
        "session": chat.id,
        "head": chat.head,
        "heads": chat.heads,
        "branches": chat.branches,
        "turns": turns_as_json(chat.turns, thoughts=thoughts),
    }
    click.echo(json.dumps(answer, ensure_ascii=False))


def _write_turn(turn: Turn, number: int | None, tools: dict[str, str], *, thoughts: bool) -> None:
    from thoughtline.cli.rendering import rendered_turn

    mark = f"{number:>4}" if number is not None else "   ·"
    for style, text in rendered_turn(turn, thoughts=thoughts, tools=tools):
        for shown in text.split("\n"):
            click.echo(f"{click.style(mark, dim=True)}  {click.style(shown, **_STYLES[style])}")
            mark = " " * 4


def _write_branches(chat: Chat, numbers: dict[str, int]) -> None:
    from thoughtline.cli.rendering import short_id

    others = [head for head in chat.heads if head != chat.head]
    if others:
        named = ", ".join(f"{numbers[head]} ({short_id(head)})" for head in others)
        click.echo(click.style(f"\nother branches end at: {named}; show one with --at", dim=True))


@click.command("tail")
@click.argument("session", required=False)
@click.option("--lines", default=10, show_default=True, help="How many earlier events to show.")
@click.option("--until", metavar="TYPE", help="Stop after an event of this type.")
@json_option
@with_log
async def tail(
    log: Log, *, session: str | None, lines: int, until: str | None, as_json: bool
) -> None:
    """Show events as they are written, until Ctrl-C.

    Of one session, after its last few; or of all sessions when none is named. Works while a gateway
    or another program writes to the same store. With --json each line is an event as `thoughtline
    export` writes it, thoughts included.

    \b
        thoughtline tail
        thoughtline tail last --lines 20
        thoughtline tail --json | jq .type
    """
    from thoughtline.agents.export import line
    from thoughtline.cli.rendering import event_line
    from thoughtline.cli.session_names import find_session

    id, after = None, -1
    if session is not None:
        id = await find_session(log, session)
        after = len(await log.store.read(id)) - 1 - max(lines, 0)
    async for event in log.store.watch(id, after=after):
        click.echo(line(event) if as_json else event_line(event))
        if event.type == until:
            break


@click.command("fork")
@click.argument("session")
@click.argument("turn", required=False)
@json_option
@with_log
async def fork(log: Log, *, session: str, turn: str | None, as_json: bool) -> None:
    """Make a new session that goes on from a turn of another one.

    Nothing is copied and the first session stays as it is. Without a TURN it goes on from the
    newest. Prints the new session's id.

    \b
        thoughtline fork last 4
        thoughtline chat --session "$(thoughtline fork last 4)"
    """
    from thoughtline.cli.session_names import find_session, find_turn

    chat = await log.resume(await find_session(log, session))
    at = chat.head if turn is None else find_turn(await log.read(chat.id), turn)
    forked = await log.fork(chat.id, at)
    answer = {"session": forked.id, "from": chat.id, "turn": at}
    click.echo(json.dumps(answer) if as_json else forked.id)


@click.command("export")
@click.argument("session")
@click.option("--alone", is_flag=True, help="Without the sessions it goes on from.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file instead of stdout.")
@with_log
async def export(log: Log, *, session: str, alone: bool, output: Path | None) -> None:
    """Write a session as lines of JSON, one event each, without losing anything.

    A forked session comes with those it goes on from. The lines hold everything, thoughts included:
    treat them as you treat the conversation itself.

    \b
        thoughtline export last > session.jsonl
        thoughtline export last | ssh elsewhere thoughtline import -
    """
    from thoughtline.cli.session_names import find_session

    id = await find_session(log, session)
    _write_lines([line async for line in log.export_lines(id, alone=alone)], output)
    _refuse_damage(log, id)


def _write_lines(lines: list[str], output: Path | None) -> None:
    if output is None:
        for line in lines:
            click.echo(line)
    else:
        output.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        click.echo(f"{len(lines) - 1} events in {output}", err=True)


@click.command("import")
@click.argument("file", type=click.File("rb"))
@click.option("--rename", is_flag=True, help="Under a new id, where an id is taken.")
@json_option
@with_new_log
async def import_(log: Log, *, file: BinaryIO, rename: bool, as_json: bool) -> None:
    """Read sessions from lines of JSON that `thoughtline export` wrote; `-` reads stdin.

    A session that is there already is extended if the lines go on from it, and left alone if they
    say nothing new. If they say something else, nothing is imported, unless --rename gives it a new
    id. Prints the ids.

    \b
        thoughtline import session.jsonl
        thoughtline import session.jsonl --rename
    """
    ids = await log.import_lines(file, rename=rename)
    if not ids:
        raise click.ClickException(
            "there is no session in this file; expected lines that `thoughtline export` wrote"
        )
    click.echo(json.dumps(ids) if as_json else "\n".join(ids))
