"""`thoughtline keys`: the master keys that seal a store. Each step may be run again.

The order for a store that is in use: `generate`, the new key into every ring, `rotate`,
`re-encrypt`, `retire`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from thoughtline.cli.cache import confirm, shown_progress
from thoughtline.cli.store_options import json_option, run, store_options

if TYPE_CHECKING:
    from thoughtline.gateway.settings import Settings
    from thoughtline.stores.sealing.administration import KeyReport
    from thoughtline.stores.sealing.ring import KeyRing
    from thoughtline.stores.sealing.vault import KeyVault

T = TypeVar("T")


@click.group("keys")
def keys() -> None:
    """Make, list and change the master keys that seal a store.

    What is stored is encrypted with keys of each tenant, and those are wrapped by the master keys
    in the ring that `store.keys` names. Without the ring nobody can read the store.

    \b
        thoughtline keys generate --file thoughtline.keys
        thoughtline keys list
        thoughtline keys check
    """


@keys.command("generate")
@click.option(
    "--file", type=click.Path(path_type=Path, dir_okay=False), help="Add it to this file."
)
@json_option
def generate(*, file: Path | None, as_json: bool) -> None:
    """Make a master key.

    With --file it is added to that file, which only its user may read; a file that is not there is
    made. Without, it is printed, for a variable or a key service.

    A new key does not seal anything yet: `thoughtline keys rotate` lets it.

    \b
        thoughtline keys generate --file thoughtline.keys
        thoughtline keys generate | vault kv put secret/thoughtline ring=-
    """
    from thoughtline.stores.sealing.ring import new_key
    from thoughtline.stores.sealing.sources import add_key, read_ring

    taken = read_ring(f"file:{file}", {}).ids if file is not None and file.exists() else ()
    key = new_key(taken)
    if file is None:
        click.echo(json.dumps({"id": key.id, "key": key.line()}) if as_json else key.line())
        return
    add_key(file, key)
    if as_json:
        click.echo(json.dumps({"id": key.id, "file": str(file)}))
        return
    click.echo(f"Added {key.id} to {file}. Keep a copy elsewhere: without it nothing can be read.")
    if not taken:
        click.echo(f'Use it with `keys = "file:{file}"` under [store] in the settings.')


@keys.command("list")
@json_option
@store_options
def list_(*, store_url: str | None, config: str | None, as_json: bool) -> None:
    """List the keys of the ring and of the store, and what each seals.

    A row is what was written about a turn at once. A key that is in the store and not in the ring
    is lost: what it seals cannot be read until it is put back.
    """
    from msgspec.json import encode

    from thoughtline.stores.sealing.administration import list_keys

    report = _with_vault(store_url, config, list_keys)
    click.echo(encode(report).decode() if as_json else "\n".join(_lines(report)))


def _lines(report: KeyReport) -> list[str]:
    lines = []
    for key in report.keys:
        what = f"{key.fingerprint or '-':10}{key.tenants:>7} tenants{key.rows:>10} rows"
        notes = ["wraps what is new"] * key.primary + ["lost: not in the ring"] * (not key.in_ring)
        lines.append(f"{key.id:<24}{what}  {', '.join(notes)}".rstrip())
    if not report.keys:
        lines.append("No keys: `thoughtline keys generate --file FILE` makes one.")
    if report.plain:
        lines.append(f"{report.plain} rows are plain; `thoughtline keys re-encrypt` seals them")
    if report.lost:
        lines.append(
            f"{report.lost} rows are sealed with keys of tenants that were deleted: nobody can "
            "read them"
        )
    return lines


@keys.command("rotate")
@click.option("--to", "id", metavar="ID", help="The key to use.  [default: the last in the ring]")
@json_option
@store_options
def rotate(*, id: str | None, store_url: str | None, config: str | None, as_json: bool) -> None:
    """Let another key of the ring wrap what is new, and the keys of all tenants.

    One small row per tenant is written; the store may be in use. Every process that uses the store
    needs the key in its ring before: one that has not cannot read any more, and says so.
    """
    from thoughtline.stores.sealing import administration

    async def work(vault: KeyVault, ring: KeyRing) -> tuple[str, int]:
        to = id or ring.newest.id
        _check_known(ring, to)
        with shown_progress("Wrapping") as progress:
            return to, await administration.rotate(vault, ring, to, progress)

    to, count = _with_vault(store_url, config, work)
    if as_json:
        click.echo(json.dumps({"primary": to, "wrapped": count}))
    else:
        click.echo(f"{to} wraps what is new; {count} keys of tenants were wrapped again")


@keys.command("re-encrypt")
@click.option("--tenant", help="Only what this tenant has.")
@click.option("--names", is_flag=True, help="New keys for the look-up keys as well.")
@click.option("--rate", type=click.FloatRange(min=0), default=0.0, help="Most rows per second.")
@click.option("--plain", is_flag=True, help="Open everything instead: the store is plain then.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@store_options
def re_encrypt(
    *,
    tenant: str | None,
    names: bool,
    rate: float,
    plain: bool,
    yes: bool,
    store_url: str | None,
    config: str | None,
    as_json: bool,
) -> None:
    """Seal every row with a new key of its tenant; what is plain is sealed on the way.

    A few rows at a time, while the store is in use; interrupted, it goes on when it is run again.
    At the end the old keys of the tenants are deleted, so that nobody who had one can use it.

    With --names the look-up keys are blinded again as well: a holder of an old key cannot test any
    more whether a text that he guesses is there. Meanwhile look-ups ask for both names.

    With --plain everything is opened. Set `store.seal = false` for all processes first, or they go
    on sealing.
    """
    from thoughtline.stores.sealing import administration

    async def work(vault: KeyVault, ring: KeyRing) -> int:
        with shown_progress("Rows") as progress:
            if plain:
                return await vault.reseal(tenant=tenant, plain=True, rate=rate, progress=progress)
            return await administration.re_encrypt(
                vault, ring, tenant=tenant, names=names, rate=rate, progress=progress
            )

    if plain and names:
        raise click.UsageError(
            "--plain has no names to blind; leave out one of --plain and --names"
        )
    if plain:
        confirm("Write everything in this store as plain text?", yes=yes)
    count = _with_vault(store_url, config, work, plain=plain)
    word = "opened" if plain else "sealed"
    click.echo(json.dumps({word: count}) if as_json else f"{count} rows {word}")


@keys.command("retire")
@click.argument("id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@store_options
def retire(*, id: str, yes: bool, store_url: str | None, config: str | None, as_json: bool) -> None:
    """Take a key out of the ring, if nothing in the store needs it.

    It is removed from the file that `store.keys` names; in a variable or a key service you remove
    it yourself. Backups from before the rotation can only be read with it.
    """
    from thoughtline.stores.sealing.administration import refuse_use
    from thoughtline.stores.sealing.sources import key_file, remove_key

    settings = _settings(store_url, config)

    async def work(vault: KeyVault, ring: KeyRing) -> None:
        _check_known(ring, id)
        await refuse_use(vault, id)
        _refuse_waiting(settings, id)

    _with_vault(store_url, config, work)
    file = key_file(settings.store.keys)
    if file is not None:
        confirm(f"Remove {id} from {file}? Backups from before it was rotated need it.", yes=yes)
        _with_vault(store_url, config, work)  # somebody may have rotated meanwhile
        remove_key(file, id)
    if as_json:
        click.echo(json.dumps({"retired": id, "file": str(file) if file else None}))
    elif file is not None:
        click.echo(f"{id} is removed from {file}; remove it from the other rings as well")
    else:
        click.echo(f"Nothing in the store needs {id}: remove it from {settings.store.keys}")


def _check_known(ring: KeyRing, id: str) -> None:
    if id not in ring:
        raise click.ClickException(
            f"there is no key {id} in the ring; it has {', '.join(ring.ids)}"
        )


def _refuse_waiting(settings: Settings, id: str) -> None:
    from thoughtline.engine.folders import spill_file
    from thoughtline.errors import SealError
    from thoughtline.stores.spill import sealed_with

    file = spill_file(settings.store.url, os.environ)
    if file is not None and id in sealed_with(file):
        raise SealError(
            f"turns that wait in {file.name}-spill-… are sealed with {id}; they are written by the "
            "gateway, or when it starts next"
        )


@keys.command("check")
@json_option
@store_options
def check(*, store_url: str | None, config: str | None, as_json: bool) -> None:
    """Unwrap the keys of all tenants and open a few values of each; ends with 1 if one fails.

    The fingerprints tell whether the rings of two machines have the same keys.
    """
    from thoughtline.stores.sealing.administration import check_keys

    async def work(vault: KeyVault, ring: KeyRing) -> tuple[dict[str, str], list[str]]:
        prints = {id: ring.get(id).fingerprint for id in ring.ids}
        return prints, await check_keys(vault, ring)

    prints, problems = _with_vault(store_url, config, work)
    if as_json:
        click.echo(json.dumps({"fingerprints": prints, "problems": problems}))
    else:
        for id, fingerprint in prints.items():
            click.echo(f"{id:<24}{fingerprint}")
        for problem in problems or ["everything that was tried opens"]:
            click.echo(problem)
    if problems:
        raise SystemExit(1)


# -- the store ---------------------------------------------------------------------------------


def _settings(store_url: str | None, config: str | None) -> Settings:
    from thoughtline.gateway.settings import load

    return load({"store_url": store_url, "config": config}, os.environ, Path.cwd())


def _with_vault(
    store_url: str | None,
    config: str | None,
    work: Callable[[KeyVault, KeyRing], Awaitable[T]],
    *,
    plain: bool = False,
) -> T:
    """Run a task on the keys of the store that these options name, with the ring of its settings.

    `plain`: what the task writes is not sealed.
    """
    from thoughtline.engine.folders import store_file
    from thoughtline.errors import SealError
    from thoughtline.stores import open_store
    from thoughtline.stores.sealing import open_keychain, vault_of

    options = _settings(store_url, config).store
    file = store_file(options.url)
    if options.url.startswith("memory:") or (file is not None and not file.exists()):
        raise click.ClickException(
            "there is no store yet; it is made, and sealed if `store.keys` is set, when it is used"
        )
    keychain = open_keychain(options.keys, os.environ, seals=not plain)
    if keychain is None:
        raise SealError(
            "`store.keys` is not set; `thoughtline keys generate --file FILE` makes a key, and "
            '`keys = "file:FILE"` under [store] in the settings uses it'
        )

    async def task() -> T:
        store = open_store(options.url, keychain=keychain)
        try:
            return await work(vault_of(store), keychain.ring)
        finally:
            await store.close()

    return run(task())
