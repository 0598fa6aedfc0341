"""Options that commands share, `--store`, `--config`, `--json`, and the log that they name.

The store is the gateway's own unless `--store` says otherwise, so that the commands see the
conversations that went through the gateway. A command that only reads creates no file.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from thoughtline.agents.log import Log
    from thoughtline.wires.base import Wire

T = TypeVar("T")
Command = Callable[..., Any]
AsyncCommand = Callable[..., Coroutine[Any, Any, None]]


json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON instead of text.")
config_option = click.option(
    "--config", type=click.Path(), help="Settings file instead of ./thoughtline.toml."
)


def store_options(command: Command) -> Command:
    """`--store` and `--config`, the same for every command about sessions."""
    store = click.option(
        "--store",
        "store_url",
        metavar="URL",
        help="Where sessions live.  [default: as the gateway has it]",
    )
    return config_option(store(command))


def with_log(command: AsyncCommand) -> Command:
    """Give a command `--store` and `--config`, and run it with the log that these name."""
    return _with_log(command, creates=False)


def with_new_log(command: AsyncCommand) -> Command:
    """The same for a command that may write the first session of a store."""
    return _with_log(command, creates=True)


def _with_log(action: AsyncCommand, *, creates: bool) -> Command:
    @functools.wraps(action)
    def callback(*, store_url: str | None, config: str | None, **options: Any) -> None:
        opened = open_session_log(store_url, config, creates=creates)

        async def work() -> None:
            async with opened as log:
                await action(log, **options)

        run(work())

    return store_options(callback)


def open_session_log(
    store_url: str | None, config: str | None, *, creates: bool, wire: Wire | None = None
) -> Log:
    """Open the log of these options.

    A file that is not there is created, in a folder that is made for it, if `creates`. Otherwise
    it is a mistake where `--store` names it, and an empty log where the settings do.
    """
    from thoughtline.agents.log import open_log
    from thoughtline.engine.folders import make_store_folder, store_file
    from thoughtline.gateway.settings import load

    options = load({"store_url": store_url, "config": config}, os.environ, Path.cwd()).store
    url = options.url
    file = store_file(url)
    if creates:
        make_store_folder(url)
    elif file is not None and not file.exists():
        if store_url is not None:
            raise click.ClickException(
                f"there is no store at {file}; check `--store`, or leave it out for the gateway's"
            )
        url = "memory://"
    return open_log(
        url,
        wire=wire,
        keys=options.keys,
        seal=options.seal,
        require_sealed=options.require_sealed,
    )


def overrides_file(config: str | None) -> str:
    """The file of policy rows as `thoughtline verify` observed them; empty if there is none."""
    from thoughtline.gateway.settings import load

    return load({"config": config}, os.environ, Path.cwd()).replay.policies


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; Ctrl-C ends with 130."""
    import asyncio

    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
