"""`thoughtline cache` shows and clears what can be put back; `thoughtline erase` erases thoughts.

Clearing leaves the log alone: what was cleared is only not put back any more. Erasing takes the
thoughts out of the log, for good.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from thoughtline.cli.store_options import json_option, with_log

if TYPE_CHECKING:
    from thoughtline.agents.log import Log
    from thoughtline.gateway.upstream_entries import UpstreamEntries
    from thoughtline.stores.base import EntryFilter, Progress, Store

_FILTERS = (
    ("--provider", "provider", "Only of this provider: a policy's or an upstream's name."),
    ("--model", "model", "Only of this model, as it was asked for."),
    ("--call", "call", "Only of tool calls with this id."),
    ("--session", "session", "Only of this session."),
    ("--tenant", "tenant", "Only of this tenant."),
)
_yes = click.option("--yes", is_flag=True, help="Do not ask.")


def _filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for flag, name, text in reversed(_FILTERS):
        command = click.option(flag, name, help=text)(command)
    return command


@click.command("cache")
@click.option("--clear", is_flag=True, help="Clear what matches, or everything.")
@_filter_options
@_yes
@json_option
@with_log
async def cache(log: Log, *, clear: bool, yes: bool, as_json: bool, **which: Any) -> None:
    """Show what can be put back, or clear it.

    With --clear, the thoughts that match are not put back any more. They stay in the log:
    `thoughtline show` still shows them, sessions of your own go on with them, and
    `thoughtline index --rebuild --restore` makes them ready to be put back again. To erase them
    from the log, use `thoughtline erase`.

    \b
        thoughtline cache
        thoughtline cache --clear --model deepseek-reasoner
    """
    from thoughtline.stores.deletions import FORGET, tell_deletion

    if not clear:
        if any(which.values()):
            raise click.UsageError("filters go with --clear")
        await _show(log.store, as_json=as_json)
        return
    selected, alike = _selected(which)
    wanted = await _unambiguous(log.store, selected)
    confirm(f"Clear {_words(wanted, alike)} from the cache? The log stays.", yes=yes)
    await log.deletions.note(FORGET, wanted)
    with shown_progress("Clearing") as progress:
        cleared = await log.store.forget(wanted, progress=progress)
    if cleared:
        await tell_deletion(log.store, log.clock, FORGET, wanted)
    said = {"cleared": cleared, **({"upstreams": alike} if alike else {})}
    click.echo(json.dumps(said) if as_json else f"{cleared} entries cleared{_of(alike)}")


async def _show(store: Store, *, as_json: bool) -> None:
    stats = await store.stats(sessions=False)
    if as_json:
        shares = {name: one.entries for name, one in stats.by_model.items()}
        click.echo(json.dumps({"entries": stats.entries, "chars": stats.chars, "byModel": shares}))
        return
    click.echo(f"{stats.entries} thoughts with {stats.chars} characters can be put back")
    for model, share in sorted(stats.by_model.items()):
        click.echo(f"  {model}: {share.entries}")


@click.command("erase")
@_filter_options
@_yes
@json_option
@with_log
async def erase(log: Log, *, yes: bool, as_json: bool, **which: Any) -> None:
    """Erase thoughts from the log, for good.

    Their text and their sealed values are overwritten in the file. What was said and called stays,
    and that there was a thought. Without a filter, all thoughts of all sessions are erased, those
    that you made by library or command line included.

    \b
        thoughtline erase --session 7f3a21c9
        thoughtline erase --tenant alice --yes
    """
    from thoughtline.stores.deletions import ERASE, tell_deletion

    selected, alike = _selected(which)
    wanted = await _unambiguous(log.store, selected)
    question = f"Erase {_words(wanted, alike)} from the log? This cannot be undone."
    confirm(question, yes=yes)
    await log.deletions.note(ERASE, wanted)
    with shown_progress("Erasing") as progress:
        erased = await log.store.erase(wanted, progress=progress)
    if erased:
        await tell_deletion(log.store, log.clock, ERASE, wanted)
    said = {"erased": erased, **({"upstreams": alike} if alike else {})}
    click.echo(json.dumps(said) if as_json else f"{erased} thoughts erased{_of(alike)}")


def _selected(which: dict[str, Any]) -> tuple[EntryFilter, tuple[str, ...]]:
    """The filter, and the upstreams of which it is, where they cannot be told apart."""
    from msgspec.structs import replace

    from thoughtline.stores.base import EntryFilter

    others = {name: value for name, value in which.items() if name != "provider"}
    if which["provider"] is None:
        return EntryFilter(**others), ()
    entries = _upstream_entries(which["provider"])
    selected = replace(entries.selected(which["provider"]), **others)
    return selected, entries.alike(which["provider"])


def _upstream_entries(name: str) -> UpstreamEntries:
    """The entries of the upstream that is called so, and of those at the same address."""
    import os
    from pathlib import Path

    from thoughtline.engine.secrets import store_secret
    from thoughtline.gateway.auth import Auth
    from thoughtline.gateway.build import make_directory
    from thoughtline.gateway.settings import load
    from thoughtline.gateway.upstream_entries import UpstreamEntries
    from thoughtline.providers.catalogue import known_name

    given = click.get_current_context().params
    flags = {flag: given.get(flag) for flag in ("config", "store_url")}
    settings = load(flags, os.environ, Path.cwd())
    upstreams = list(make_directory(settings))
    lowered = name.lower()
    named = [one for one in upstreams if one.name.lower() in (lowered, known_name(lowered))]
    places = {endpoint for one in named for endpoint in one.all_endpoints}
    there = [one for one in upstreams if not places.isdisjoint(one.all_endpoints)]
    options, secret = settings.store, b""
    if len(there) > 1:  # they are told apart by their accounts
        secret = store_secret(options.url, os.environ, options.secret)
    return UpstreamEntries(there, Auth(secret))


async def _unambiguous(store: Store, wanted: EntryFilter) -> EntryFilter:
    """The filter, unless it names a call that several tenants have."""
    if wanted.call is None or wanted.tenant is not None or wanted.session is not None:
        return wanted
    tenants = sorted(await store.count_calls(wanted.call))
    if len(tenants) > 1:
        names = ", ".join(repr(name) for name in tenants[:5])
        raise click.ClickException(
            f"{len(tenants)} tenants have a call {wanted.call!r} ({names}); say --tenant"
        )
    return wanted


def _words(wanted: EntryFilter, alike: tuple[str, ...]) -> str:
    """What a filter means, in words."""
    given = [f"{name} {value}" for _, name, _ in _FILTERS if (value := getattr(wanted, name))]
    words = f"all thoughts of {', '.join(given)}" if given else "all thoughts"
    others = [name for name in alike if name.lower() != (wanted.provider or "").lower()]
    return f"{words}, and of {', '.join(others)}, which cannot be told apart," if others else words


def _of(alike: tuple[str, ...]) -> str:
    return f", of {' and '.join(alike)}" if alike else ""


def confirm(question: str, *, yes: bool) -> None:
    """Ask, unless it was said already; without a terminal to ask on, say what to do."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{question} Nobody can be asked here: say --yes")
    click.confirm(question, abort=True)


@contextmanager
def shown_progress(label: str) -> Iterator[Progress]:
    """A bar on standard error, where that is a terminal."""
    hidden = not sys.stderr.isatty()
    with click.progressbar(length=1, label=label, file=sys.stderr, hidden=hidden) as bar:

        def progress(done: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(done - bar.pos)

        yield progress
