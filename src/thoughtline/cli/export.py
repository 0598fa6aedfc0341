"""`thoughtline export`: a session as lines of JSON."""

from pathlib import Path

import click

from thoughtline.cli.opening import find_session, opened, run, store_options
from thoughtline.library.logs import Log

_HELP = """Write a session as lines of JSON, one event each, without losing anything.

A forked session comes with those it goes on from. The lines hold everything, thoughts included:
treat them as you treat the conversation itself.

\b
    thoughtline export last > session.jsonl
    thoughtline export last | ssh elsewhere thoughtline import -
"""


@click.command("export", help=_HELP, short_help="Write a session as lines of JSON.")
@click.argument("session")
@click.option("--alone", is_flag=True, help="Without the sessions it goes on from.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file instead of stdout.")
@store_options
def export(
    *,
    session: str,
    alone: bool,
    output: Path | None,
    store_url: str | None,
    config: str | None,
) -> None:
    """Export a session."""
    lines = run(_export(opened(store_url, config), session, alone=alone))
    if output is None:
        for line in lines:
            click.echo(line)
    else:
        output.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        click.echo(f"{len(lines) - 1} events in {output}", err=True)


async def _export(log: Log, name: str, *, alone: bool) -> list[str]:
    async with log:
        id = await find_session(log, name)
        return [line async for line in log.export_lines(id, alone=alone)]
