"""`thoughtline sessions`: what is in the store, the last used first."""

import json

import click
import msgspec

from thoughtline.cli.opening import first_words, listed, opened, run, short, store_options
from thoughtline.cli.telling import ago, brief
from thoughtline.library.logs import Log

_HELP = """List sessions, the last used first.

Those of the gateway's clients and those made with `thoughtline chat` or the library. Show one with
`thoughtline show`; it may be named by the end of its id, or by `last`.

\b
    thoughtline sessions --limit 5
    thoughtline sessions --json | jq -r '.[].session'
"""


@click.command("sessions", help=_HELP, short_help="List sessions.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    default=20,
    show_default=True,
    help="How many at most.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON instead of text.")
@store_options
def sessions(*, limit: int, as_json: bool, store_url: str | None, config: str | None) -> None:
    """List sessions."""
    run(_sessions(opened(store_url, config), limit, as_json=as_json))


async def _sessions(log: Log, limit: int, *, as_json: bool) -> None:
    async with log:
        found = await listed(log, limit)
        words = [first_words(await log.store.read(one.session, limit=8)) for one in found]
    if as_json:
        rows = [
            msgspec.to_builtins(one) | {"words": said}
            for one, said in zip(found, words, strict=True)
        ]
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    for one, said in zip(found, words, strict=True):
        when = click.style(f"{ago(one.touched):>12}", dim=True)
        click.echo(f"{short(one.session):<12} {when}  {one.events:>5} events  {brief(said, 60)}")
    if not found:
        click.echo("No sessions yet. Try: thoughtline chat --provider sim:deepseek")
