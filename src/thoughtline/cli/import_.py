"""`thoughtline import`: sessions from lines of JSON."""

import json
from typing import BinaryIO

import click

from thoughtline.cli.opening import opened, run, store_options
from thoughtline.library.logs import Log

_HELP = """Read sessions from lines of JSON that `thoughtline export` wrote; `-` reads stdin.

A session that is there already is extended if the lines go on from it, and left alone if they say
nothing new. If they say something else, nothing is imported, unless --rename gives it a new id.
Prints the ids.

\b
    thoughtline import session.jsonl
    thoughtline import session.jsonl --rename
"""


@click.command("import", help=_HELP, short_help="Read sessions from lines of JSON.")
@click.argument("file", type=click.File("rb"))
@click.option("--rename", is_flag=True, help="Under a new id, where an id is taken.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON instead of text.")
@store_options
def import_(
    *, file: BinaryIO, rename: bool, as_json: bool, store_url: str | None, config: str | None
) -> None:
    """Import sessions."""
    ids = run(_import(opened(store_url, config), file, rename=rename))
    if not ids:
        raise click.ClickException("there is no session in it; expected what `export` writes")
    click.echo(json.dumps(ids) if as_json else "\n".join(ids))


async def _import(log: Log, file: BinaryIO, *, rename: bool) -> list[str]:
    async with log:
        return await log.import_lines(file, rename=rename)
