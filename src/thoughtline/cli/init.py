"""`thoughtline init`: write a commented settings file, and say what to do next."""

import os
from contextlib import suppress
from pathlib import Path

import click


@click.command("init")
@click.option(
    "--path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write it.  [default: thoughtline.toml]",
)
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
def init(*, path: Path | None, force: bool) -> None:
    """Write a commented settings file.

    Every setting is in it with its default and one line about it, switched off: nothing changes
    until you take a `#` away. None is needed; without a file the defaults hold.

    One is switched on where there is no store yet: what will be stored is sealed, with a key in a
    file for its user alone: in the user's settings folder, where commands in other folders find it,
    or with --path beside the settings. Keep a copy of that file.
    """
    from thoughtline.cli.init_template import template

    keys = _new_keys(path)
    named = keys if path is None or keys is None else Path(keys.name)  # beside the settings
    path = path or Path("thoughtline.toml")
    if path.exists() and not force:
        raise click.ClickException(
            f"{path} exists already; nothing was written. Use --force to overwrite it, "
            "or --path to write another one."
        )
    if not path.parent.is_dir():
        raise click.ClickException(
            f"cannot write {path}: there is no such folder; choose another place with --path"
        )
    if keys is not None:
        _make_key(keys)  # first: settings that name keys that are nowhere break every command
    try:
        path.write_text(template(store_keys=f"file:{named}" if named else ""), "utf-8")
    except OSError as error:
        raise click.ClickException(
            f"cannot write {path}: {error.strerror or error}; choose another place with --path"
        ) from error
    if keys is None:
        click.echo(f"Wrote {path}. Every setting in it is switched off and shows its default.")
    else:
        click.echo(f"Wrote {path}. All in it but the keys is switched off and shows its default.")
        click.echo(
            f"What is stored is sealed with the key in {keys}. Keep a copy of that file, apart "
            "from the store: whoever has both can read everything, and without it nobody can."
        )
    click.echo(_next_steps(path))


def _new_keys(path: Path | None) -> Path | None:
    """Where the keys of a store that is still to be made belong; None where there is one."""
    from thoughtline.engine.folders import store_file
    from thoughtline.errors import SettingsError
    from thoughtline.gateway.settings import load
    from thoughtline.gateway.settings.loading import usual_keys

    try:
        file = store_file(load({}, os.environ, Path.cwd()).store.url)
    except SettingsError:  # of a file that is to be replaced
        file = None
    if file is not None and file.exists():
        return None
    return usual_keys(os.environ) if path is None else path.with_suffix(".keys")


def _make_key(path: Path) -> None:
    """Make the first key; keys that are there already stay."""
    from thoughtline.stores.sealing.ring import new_key
    from thoughtline.stores.sealing.sources import add_key, read_ring

    if path.exists():
        read_ring(f"file:{path}", {})
    else:
        with suppress(OSError):  # then it cannot be written, and that is said
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        add_key(path, new_key())


def _next_steps(path: Path) -> str:
    from thoughtline.providers.known_providers import PROVIDERS

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
