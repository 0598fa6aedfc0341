"""`thoughtline init`: write a commented settings file, and say what to do next."""

import os
from pathlib import Path

import click


@click.command("init")
@click.option(
    "--path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("thoughtline.toml"),
    show_default=True,
    help="Where to write it.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
def init(*, path: Path, force: bool) -> None:
    """Write a commented settings file.

    Every setting is in it with its default and one line about it, switched off: the file changes
    nothing until you take a `#` away. None is needed; without a file the defaults hold.
    """
    from thoughtline.cli.init_template import template

    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(template())
    except FileExistsError:
        raise click.ClickException(
            f"{path} exists already; nothing was written. Use --force to overwrite it, "
            "or --path to write another one."
        ) from None
    except OSError as error:
        raise click.ClickException(
            f"cannot write {path}: {error.strerror or error}; choose another place with --path"
        ) from error
    click.echo(f"Wrote {path}. Every setting in it is switched off and shows its default.")
    click.echo(_next_steps(path))


def _next_steps(path: Path) -> str:
    from thoughtline.providers.catalogue import PROVIDERS

    found = [
        f"{provider.name} (${name})"
        for provider in PROVIDERS
        for name in provider.keys
        if os.environ.get(name, "").strip()
    ]
    keys = (
        f"Provider keys found: {', '.join(found)}."
        if found
        else (
            "No provider keys found in the environment: clients use their own, or you set one such "
            "as DEEPSEEK_API_KEY."
        )
    )
    usual = path.name == "thoughtline.toml" and path.parent in (Path(), Path.cwd())
    config = "" if usual else f" --config {path}"
    return f"""
{keys}

Next:
    thoughtline doctor{config}    what is in effect, reachable and wrong
    thoughtline serve{config}     start, then point a client's base URL at it"""
