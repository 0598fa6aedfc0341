"""`thoughtline fork`: a new session that goes on from a turn of another one."""

import json

import click

from thoughtline.cli.opening import find_session, find_turn, opened, run, store_options
from thoughtline.library.logs import Log

_HELP = """Make a new session that goes on from a turn of another one.

Nothing is copied and the first session stays as it is. Without a TURN it goes on from the newest.
Prints the new session's id.

\b
    thoughtline fork last 4
    thoughtline chat --session "$(thoughtline fork last 4)"
"""


@click.command("fork", help=_HELP, short_help="Go on from any turn, in a new session.")
@click.argument("session")
@click.argument("turn", required=False)
@click.option("--json", "as_json", is_flag=True, help="Write JSON instead of text.")
@store_options
def fork(
    *, session: str, turn: str | None, as_json: bool, store_url: str | None, config: str | None
) -> None:
    """Fork a session."""
    made = run(_fork(opened(store_url, config), session, turn))
    click.echo(json.dumps(made) if as_json else made["session"])


async def _fork(log: Log, name: str, turn: str | None) -> dict[str, str]:
    async with log:
        chat = await log.resume(await find_session(log, name))
        at = chat.head if turn is None else find_turn(await log.read(chat.id), turn)
        made = await log.fork(chat.id, at)
        return {"session": made.id, "from": chat.id, "turn": at}
