"""Shows how far it is when a store's file of an earlier version is brought up to date."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from thoughtline.stores.base import Progress

STEPS = 10
"""Lines about how far it is, where there is no terminal to show a bar on."""


def upgrade_file(url: str) -> list[str]:
    """Bring the file of a store up to date, if it was written by an earlier version.

    It is done in this thread, so that Ctrl-C interrupts it: then the file is as it was. Returns the
    migrations that were run.
    """
    from thoughtline.engine.folders import store_file
    from thoughtline.stores.sqlite.upgrade import missing_steps, upgrade

    file = store_file(url)
    steps = missing_steps(file) if file is not None else []
    if file is None or not steps:
        return []
    click.echo(
        f"{file} was written by an earlier version, and is brought up to date. It can be "
        "interrupted: then it is as it was, and the next start begins again.",
        err=True,
    )
    try:
        with _shown(file) as progress:
            upgrade(file, progress)
    except KeyboardInterrupt:
        click.echo(f"Interrupted: {file} is as it was.", err=True)
        raise SystemExit(130) from None
    return steps


@contextmanager
def _shown(file: Path) -> Iterator[Progress]:
    from thoughtline.cli.cache import shown_progress

    if sys.stderr.isatty():
        with shown_progress("Events") as progress:
            yield progress
        return
    told = 0

    def tell(done: int, total: int) -> None:
        nonlocal told
        if (step := STEPS * done // max(total, 1)) > told:
            told = step
            click.echo(f"{file.name}: {100 * step // STEPS} % of {total} events", err=True)

    yield tell
