"""`thoughtline doctor`: what is configured, what is reachable, what is wrong and what to do.

Says where each value comes from, then what the checks found (`doctor_checks`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from thoughtline.cli.store_options import json_option

if TYPE_CHECKING:
    from thoughtline.cli.doctor_checks import Diagnostic
    from thoughtline.gateway.settings import Loaded

_MARKS = {"ok": ("ok  ", "green"), "note": ("note", "yellow"), "problem": ("bad ", "red")}


@click.command("doctor")
@click.option("--config", type=click.Path(path_type=Path), help="A settings file to look at.")
@click.option("--offline", is_flag=True, help="Do not try to reach the upstreams.")
@json_option
def doctor(*, config: Path | None, offline: bool, as_json: bool) -> None:
    """Say what is configured, what is reachable and what is wrong.

    Looks at the settings and where each comes from, whether the port is free, whether the store
    opens and can be written, and whether the upstreams answer. Changes nothing and sends no key
    anywhere. Ends with 1 when there is a problem.
    """
    import asyncio

    from thoughtline.cli.doctor_checks import Diagnostic, examine
    from thoughtline.errors import SettingsError
    from thoughtline.gateway.settings import read

    loaded: Loaded | None = None
    try:
        loaded = read({"config": config}, os.environ, Path.cwd())
    except SettingsError as error:
        advice = "correct it; `thoughtline init --path FILE` writes a file that shows every setting"
        found = [
            Diagnostic(about="settings", level="problem", text=line, advice=advice)
            for line in str(error).splitlines()
        ]
    else:
        found = asyncio.run(examine(loaded.settings, offline=offline))
    ok = all(diagnostic.level != "problem" for diagnostic in found)
    if as_json:
        click.echo(_as_json(loaded, found, ok=ok))
    else:
        _print(loaded, found, ok=ok)
    if not ok:
        raise SystemExit(1)


def _as_json(loaded: Loaded | None, found: Sequence[Diagnostic], *, ok: bool) -> str:
    import msgspec

    from thoughtline.gateway.settings import describe

    rows = describe(loaded) if loaded else []
    return json.dumps(
        {
            "ok": ok,
            "files": [str(file) for file in loaded.files] if loaded else [],
            "settings": {name: {"value": value, "source": where} for name, value, where in rows},
            "findings": [msgspec.to_builtins(diagnostic) for diagnostic in found],
        },
        indent=2,
    )


def _print(loaded: Loaded | None, found: Sequence[Diagnostic], *, ok: bool) -> None:
    if loaded is not None:
        _print_settings(loaded)
    for diagnostic in found:
        mark, colour = _MARKS[diagnostic.level]
        click.echo(f"{click.style(mark, fg=colour)}  {diagnostic.about}: {diagnostic.text}")
        if diagnostic.advice and diagnostic.level != "ok":
            click.echo(f"      → {diagnostic.advice}")
    bad = sum(diagnostic.level == "problem" for diagnostic in found)
    click.echo("\nAll is well." if ok else f"\n{bad} problem(s).")


def _print_settings(loaded: Loaded) -> None:
    """What differs from the defaults, and where it is written."""
    from thoughtline.gateway.settings import describe

    files = ", ".join(map(str, loaded.files)) or "none; everything has a default"
    click.echo(f"Settings files: {files}")
    rows = [row for row in describe(loaded) if row[2] != "default"]
    width = max((len(name) + len(value) for name, value, _ in rows), default=0)
    for name, value, where in rows:
        gap = " " * (width - len(name) - len(value))
        click.echo(f"  {name} = {value}{gap}  {click.style(where, dim=True)}")
    click.echo(f"  everything{' else' if rows else ''} has its default\n")
