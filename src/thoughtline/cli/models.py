"""`thoughtline models`: what can be asked for here, by provider, and what it costs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from thoughtline.cli.store_options import config_option, json_option


@click.command("models")
@click.argument("name", metavar="PROVIDER", required=False)
@click.option("--all", "every", is_flag=True, help="Also those without a key.")
@config_option
@json_option
def models(*, name: str | None, every: bool, config: str | None, as_json: bool) -> None:
    """List what can be asked for here, by provider.

    With the APIs that a provider speaks, and for each model the tokens that it reads, its price in
    US dollars for a million tokens in and out, and the efforts that it can be told. A name is
    written as it is listed here: `--model deepseek/deepseek-v4-pro`. Only what is known beforehand
    is listed, and nobody is asked for it; a provider may have more models, and serves them all.

    \b
        thoughtline models
        thoughtline models anthropic
        thoughtline models --all --json
    """
    from thoughtline.cli.askable_models import askable, model_lines, models_as_json
    from thoughtline.errors import SettingsError, did_you_mean
    from thoughtline.gateway.settings import load
    from thoughtline.providers.catalogue import known_name

    settings = load({"config": config}, os.environ, Path.cwd())
    found = askable(settings)
    if name is not None:
        chosen = [one for one in found if one.name == known_name(name)]
        if not chosen:
            hint = did_you_mean(name, [one.name for one in found], "`--all` lists them")
            raise SettingsError(f"no provider is called {name!r}; {hint}")
        found = chosen
    if as_json:
        click.echo(
            json.dumps(models_as_json(settings, [p for p in found if p.ready or every or name]))
        )
        return
    for line in model_lines(settings, found, every=every or name is not None):
        click.echo(line)
