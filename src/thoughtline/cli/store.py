"""`thoughtline store`: brings a store up to date, copies it, backs it up, and looks through it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from thoughtline.cli.store_options import config_option, json_option, run, store_options

if TYPE_CHECKING:
    from thoughtline.gateway.settings.sections import StoreSettings
    from thoughtline.stores.base import Progress, Store
    from thoughtline.stores.sealing.keychain import Keychain


@click.group("store")
def store() -> None:
    """Bring a store up to date, copy it, back it up, or look through it.

    \b
        thoughtline store migrate
        thoughtline store copy sqlite:///thoughtline.db postgresql://me@db/thoughtline
        thoughtline store backup thoughtline-backup.db
        thoughtline store check --json
    """


@store.command("migrate")
@json_option
@store_options
def migrate(store_url: str | None, config: str | None, *, as_json: bool) -> None:
    """Bring the tables of a store up to date.

    Of a shared store, nodes of the version before go on meanwhile, and so may this one's. A SQLite
    file must not be in use; interrupted, it is as it was. Run again, it does nothing.
    """
    from thoughtline.engine.folders import store_file
    from thoughtline.stores import is_shared

    url = _settings(store_url, config).url
    _check_exists(store_file(url), url)
    done = run(_migrate_shared(url)) if is_shared(url) else _migrate_file(url)
    if as_json:
        _print({"migrations": done})
        return
    for name in done:
        click.echo(f"did {name}")
    click.echo("the store is up to date")


def _migrate_file(url: str) -> list[str]:
    from thoughtline.engine.folders import store_file
    from thoughtline.stores.sqlite.file import DatabaseFile

    place = store_file(url)
    if place is None:
        return []
    file = DatabaseFile(place, timeout=5.0, synchronous="normal")
    try:
        return file.migrate()
    except Exception as error:
        raise file.explain(error) from error


async def _migrate_shared(url: str) -> list[str]:
    from thoughtline.stores.postgres.address import Address
    from thoughtline.stores.postgres.failures import explain
    from thoughtline.stores.postgres.migrations import migrate as run_migrations

    address = Address(url)
    try:
        connection = await address.connect()
        try:
            return await run_migrations(connection)
        finally:
            await connection.close()
    except Exception as error:
        raise explain(error, address) or error from error


@store.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@config_option
@click.option("--from-keys", metavar="KEYS", help="Where the keys of FROM are, if they are others.")
@json_option
def copy(
    source: str, target: str, *, config: str | None, from_keys: str | None, as_json: bool
) -> None:
    """Copy all sessions of one store into another.

    FROM and TO are URLs. What TO has already is left as it is, so a copy that was interrupted goes
    on, and a second one brings over what is new since; thoughts that were erased or forgotten in
    FROM meanwhile are so in TO, and sessions that were deleted stay. Copied sessions count as just
    used.

    Tenants keep their names, which stand on the secret: give the nodes of TO the secret of FROM
    (`store.secret = "file:…"`; of a SQLite store it is the .secret file beside it). TO is sealed if
    the settings name keys, and FROM is opened with the same, or with those of --from-keys.
    """
    from thoughtline.engine.folders import make_store_folder, store_file
    from thoughtline.stores.copying import copy_store
    from thoughtline.stores.sealing import open_keychain

    _refuse_memory(source)
    _refuse_memory(target)
    if source == target:
        raise click.ClickException("FROM and TO are the same store; name two")
    _check_exists(store_file(source), source)
    make_store_folder(target)
    settings = _settings(None, config)
    own = settings.keys if from_keys is None else from_keys

    async def work() -> Any:
        keychain = settings.keychain(os.environ)
        opener = open_keychain(own, os.environ, seals=False)  # of FROM, which may be plain
        async with _opened(source, opener) as one, _opened(target, keychain) as other:
            with _bar("Sessions") as progress:
                return await copy_store(one, other, progress)

    report = run(work())
    if as_json:
        _print(report)
    else:
        click.echo(
            f"{report.sessions} session(s) looked at; {report.copied} had something new: "
            f"{report.events} event(s), {report.entries} index entries"
        )
        if report.forgotten:
            click.echo(f"{report.forgotten} thought(s) were forgotten or erased since")
        for session in report.conflicts:
            click.echo(f"  {session}: the other store has other events; it was left alone")
    _note_waiting(source)
    if report.conflicts:
        raise SystemExit(1)


@store.command("backup")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
@store_options
def backup(file: Path, store_url: str | None, config: str | None, *, as_json: bool) -> None:
    """Write a copy of the store into a SQLite file, while it is in use.

    Of a SQLite store it is the whole file as of one moment; of a shared one a copy of all sessions,
    which goes on where it stopped when it is run again. Back up the secret and the keys as well,
    and elsewhere.
    """
    from thoughtline.engine.folders import store_file
    from thoughtline.stores.sqlite.backup import back_up

    url = _settings(store_url, config).url
    _refuse_memory(url)
    place = store_file(url)
    if place is None:
        ctx = click.get_current_context()
        target = f"sqlite:///{file.absolute()}"
        ctx.invoke(copy, source=url, target=target, config=config, from_keys=None, as_json=as_json)
        return
    _check_exists(place, url)
    with _bar("Bytes") as progress:
        size = back_up(place, file, progress)
    if as_json:
        _print({"file": str(file), "bytes": size})
    else:
        click.echo(f"{file}: {size} bytes; the secret is beside {place}")
    _note_waiting(url)


@store.command("check")
@json_option
@store_options
def check(store_url: str | None, config: str | None, *, as_json: bool) -> None:
    """Read every session: without a gap, and can it be read? Ends with 1 if not.

    `thoughtline index --check` compares the look-up index with the log.
    """
    from thoughtline.engine.folders import store_file
    from thoughtline.stores.checking import check_store

    url = _settings(store_url, config).url
    settings = _settings(None, config)  # whose keys open a backup as well
    _check_exists(store_file(url), url)

    async def work() -> Any:
        keychain = settings.keychain(os.environ)
        async with _opened(url, keychain) as opened:
            await _refuse_lost(opened, keychain)
            with _bar("Sessions") as progress:
                return await check_store(opened, progress)

    report = run(work())
    if as_json:
        _print(report)
    else:
        state = "sound" if report.sound else "not sound"
        click.echo(f"{report.sessions} session(s) with {report.events} event(s): {state}")
        for session in report.gaps:
            click.echo(f"  {session}: events are missing")
        for session in report.unreadable:
            click.echo(f"  {session}: something in it does not open")
        for reason in report.reasons:
            click.echo(f"  {reason}")
        if report.newer:
            click.echo(f"  {report.newer} event(s) only a newer version understands")
        if report.orphans:
            click.echo(f"  {report.orphans} look-up key(s) lead nowhere: `thoughtline index`")
    if not report.sound:
        raise SystemExit(1)


# -- what they share -----------------------------------------------------------------------------


class _opened:  # noqa: N801 - used like a function
    """A store for the length of a block."""

    def __init__(self, url: str, keychain: Keychain | None) -> None:
        self._url = url
        self._keychain = keychain

    async def __aenter__(self) -> Store:
        from thoughtline.stores import open_store

        self._store = open_store(self._url, keychain=self._keychain)
        return self._store

    async def __aexit__(self, *_: object) -> None:
        await self._store.close()


def _settings(store_url: str | None, config: str | None) -> StoreSettings:
    from thoughtline.gateway.settings import load

    return load({"store_url": store_url, "config": config}, os.environ, Path.cwd()).store


async def _refuse_lost(opened: Store, keychain: Keychain | None) -> None:
    """Say which key is missing, instead of naming every session that needs it."""
    from thoughtline.stores.sealing import refuse_lost, vault_of

    if keychain is not None:
        await refuse_lost(vault_of(opened), keychain.ring)


def _note_waiting(url: str) -> None:
    """Say that turns wait beside a store on this machine: a copy does not have them."""
    from thoughtline.engine.folders import spill_file
    from thoughtline.stores.spill import count_waiting

    place = spill_file(url, os.environ)
    if place is not None and (count := count_waiting(place)):
        click.echo(
            f"{count} turn(s) wait in {place}-spill-… and are not in the copy; start a gateway "
            "with that store, which writes them, and run this again",
            err=True,
        )


def _refuse_memory(url: str) -> None:
    if url.startswith("memory:"):
        raise click.ClickException(
            "a store in memory belongs to its process, and cannot be copied; name a sqlite:/// or "
            "postgresql:// one"
        )


def _check_exists(file: Path | None, url: str) -> None:
    if file is not None and not file.exists():
        raise click.ClickException(f"there is no store at {file}; check {url!r}")


@contextmanager
def _bar(label: str) -> Iterator[Progress]:
    with click.progressbar(
        length=1, label=label, file=sys.stderr, show_pos=True, hidden=not sys.stderr.isatty()
    ) as bar:

        def progress(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield progress


def _print(value: Any) -> None:
    import msgspec

    click.echo(msgspec.json.encode(value).decode())
