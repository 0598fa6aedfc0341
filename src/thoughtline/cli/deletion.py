"""`thoughtline delete`: deletes sessions, everything in them included."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from thoughtline.cli.cache import confirm, shown_progress
from thoughtline.cli.store_options import json_option, with_log

if TYPE_CHECKING:
    from thoughtline.agents.log import Log


@click.command("delete")
@click.argument("sessions", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@with_log
async def delete(log: Log, *, sessions: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Delete sessions, with everything in them.

    A session that another one was forked from stays until that one is deleted. Sessions that you
    made by library or command line are kept until you delete them; those that a gateway captured
    are deleted when nobody has used them for `store.retention`.

    \b
        thoughtline delete 7f3a21c9
        thoughtline delete last --yes
    """
    from thoughtline.cli.session_names import find_session
    from thoughtline.stores.base import EntryFilter
    from thoughtline.stores.deletions import PURGE, tell_deletion

    ids = list(dict.fromkeys([await find_session(log, name) for name in sessions]))
    confirm(f"Delete {', '.join(ids)}? This cannot be undone.", yes=yes)
    deleted: list[str] = []
    for id in reversed(ids):
        which = EntryFilter(session=id)
        await log.deletions.note(PURGE, which)
        with shown_progress("Deleting") as progress:
            if await log.store.purge(session=id, progress=progress):
                await tell_deletion(log.store, log.clock, PURGE, which)
                deleted.append(id)
    kept = [id for id in ids if id not in deleted]
    if as_json:
        click.echo(json.dumps({"deleted": deleted[::-1], "kept": kept}))
    else:
        click.echo(f"{len(deleted)} {'session' if len(deleted) == 1 else 'sessions'} deleted")
    if kept:
        names = ", ".join(kept)
        raise click.ClickException(f"{names} was not deleted: a fork goes on from it")
