"""`thoughtline index`: checks the look-up index against the log, and rebuilds it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from thoughtline.cli.store_options import json_option, with_log

if TYPE_CHECKING:
    from thoughtline.agents.log import Log
    from thoughtline.engine.check_index import IndexReport


@click.command("index")
@click.option("--check", "mode", flag_value="check", help="Compare the index with the log.")
@click.option("--rebuild", "mode", flag_value="rebuild", help="Rebuild the index from the log.")
@click.option("--restore", is_flag=True, help="With --rebuild: bring back what was cleared.")
@json_option
@with_log
async def index(log: Log, *, mode: str | None, restore: bool, as_json: bool) -> None:
    """Check the look-up index against the log, or rebuild it.

    Thoughts are put back by an index over the log: a turn that is missing there is not found,
    although its thoughts are in the store. `--check` compares the two and changes nothing; it ends
    with 1 when they differ. `--rebuild` makes entries that are missing, corrects those that differ,
    and removes those of turns that are not in the log. It may run while the store is in use, and
    again after an interruption. Entries that were cleared from the cache stay cleared, unless
    --restore brings them back.

    Two things are not in the log and come back only if the old entry is there: the session ids that
    clients sent along, and which outputs went out without a thought although they were not found.
    Turns of `store.record = "thoughts"` cannot be rebuilt, because what was said is not in the log.

    \b
        thoughtline index --check
        thoughtline index --rebuild --store sqlite:///thoughtline.db
    """
    import msgspec

    from thoughtline.engine.check_index import check_index

    if mode is None:
        raise click.UsageError("choose --check or --rebuild")
    rebuild = mode == "rebuild"
    if restore and not rebuild:
        raise click.UsageError("--restore goes with --rebuild")
    with click.progressbar(
        length=1, label="Sessions", file=sys.stderr, show_pos=True, hidden=not sys.stderr.isatty()
    ) as bar:

        def progress(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        report = await check_index(log.store, rebuild=rebuild, restore=restore, progress=progress)
    if as_json:
        click.echo(msgspec.json.encode(report).decode())
    else:
        for line in _lines(report, rebuild=rebuild):
            click.echo(line)
    if not rebuild and not report.clean:
        raise SystemExit(1)


def _lines(report: IndexReport, *, rebuild: bool) -> list[str]:
    """Describe a report in sentences."""
    counted = f"{_count(report.sessions, 'session')} with {_count(report.turns, 'turn')}"
    lines = [f"{counted}: {'the index matches the log' if report.clean else 'differences'}"]
    details = ", ".join(f"{name} {count}" for name, count in report.differences.items())
    found = (
        (report.missing, "without an entry"),
        (report.different, f"with an entry that differs ({details})"),
    )
    lines += [f"  {_count(count, 'turn')} {what}" for count, what in found if count]
    if report.stale:
        lines.append(f"  {_count(report.stale, 'entry', 'entries')} of turns not in the log")
    if report.orphans:
        lines.append(f"  {_count(report.orphans, 'key')} without an entry")
    if report.unrecorded:
        what = "without an entry cannot have one: what was said in them is not in the log"
        lines.append(f"  {_count(report.unrecorded, 'turn')} {what}")
    if report.cleared:
        lines.append(f"  {_count(report.cleared, 'entry', 'entries')} cleared, and not put back")
    if report.unreadable:
        lines.append(f"  {_count(report.unreadable, 'session')} cannot be read")
    if rebuild:
        lines.append(f"{_count(report.rebuilt, 'entry', 'entries')} written")
    elif not report.clean:
        lines.append("Correct this with: thoughtline index --rebuild")
    return lines


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
