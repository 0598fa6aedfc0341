"""`thoughtline tail`: events as they are written, by whatever process."""

import contextlib
from datetime import datetime

import click

from thoughtline.cli.opening import find_session, opened, run, short, store_options
from thoughtline.cli.telling import brief, told
from thoughtline.events import (
    AssistantMessage,
    Event,
    PermissionDecision,
    Quarantined,
    Reasoning,
    ToolCall,
    ToolResult,
    TurnEnded,
    UserMessage,
)
from thoughtline.library.logs import Log
from thoughtline.library.transfers import line
from thoughtline.turns import Turn

_HELP = """Show events as they are written, until Ctrl-C.

Of one session, after its last few; or of all sessions when none is named. Works while a gateway or
another program writes to the same store. With --json each line is an event as `thoughtline export`
writes it, thoughts included.

\b
    thoughtline tail
    thoughtline tail last --lines 20
    thoughtline tail --json | jq .type
"""


@click.command("tail", help=_HELP, short_help="Show events as they are written.")
@click.argument("session", required=False)
@click.option("--lines", default=10, show_default=True, help="How many earlier events to show.")
@click.option("--until", metavar="TYPE", help="Stop after an event of this type.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON instead of text.")
@store_options
def tail(
    *,
    session: str | None,
    lines: int,
    until: str | None,
    as_json: bool,
    store_url: str | None,
    config: str | None,
) -> None:
    """Show events live."""
    with contextlib.suppress(KeyboardInterrupt):
        run(_tail(opened(store_url, config), session, lines, until, as_json=as_json))


async def _tail(
    log: Log, name: str | None, lines: int, until: str | None, *, as_json: bool
) -> None:
    async with log:
        id, after = None, -1
        if name is not None:
            id = await find_session(log, name)
            after = len(await log.store.read(id)) - 1 - max(lines, 0)
        async for event in log.store.watch(id, after=after):
            click.echo(line(event) if as_json else _told(event))
            if event.type == until:
                break


def _told(event: Event) -> str:
    when = datetime.fromtimestamp(event.at).astimezone().strftime("%H:%M:%S")
    where = click.style(f"{when}  {short(event.session)}  ", dim=True)
    return f"{where}{event.type:<20} {_brief(event)}".rstrip()


def _brief(event: Event) -> str:
    """What an event says, on one line; thoughts only by how long they took."""
    match event.body():
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
    words = [text for style, text in told(turn, thoughts=False) if style != "note"]
    return brief("  ".join(words), 120)
