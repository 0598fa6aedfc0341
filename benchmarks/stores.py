"""How fast the SQLite store writes and finds.

- appended events per second: 64 writers at once, batches of eight events with one memory;
- the same while the event loop is busy with other work, as in a loaded gateway;
- how long one append takes when nobody else writes;
- a look-up of 150 names among a million stored thoughts (`THOUGHTLINE_BENCH_THOUGHTS` for fewer):
  all of one conversation, and each of another one, which is as scattered as it gets.

The file with a million thoughts is built with the store's own statements, a minute or two.
"""

import asyncio
import hashlib
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from thoughtline.clock import SystemClock
from thoughtline.log.events import (
    AssistantMessage,
    Body,
    Draft,
    Outcome,
    Reasoning,
    ToolCall,
    ToolResult,
    TurnEnded,
    TurnStarted,
    UserMessage,
    draft,
)
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Call, Carrier, Origin, Result, Text, Thought
from thoughtline.log.usage import Usage
from thoughtline.stores.base import Batch
from thoughtline.stores.sqlite import SqliteStore, rows
from thoughtline.stores.sqlite.file import DatabaseFile
from thoughtline.stores.sqlite.inserts import insert_batch

Figure = tuple[str, float, str]

THOUGHTS = int(os.environ.get("THOUGHTLINE_BENCH_THOUGHTS", "1000000"))
WRITERS = 64
BATCHES = 40  # per writer and run
TURNS = 50  # per session in the big file
NAMES = 5  # per turn
ORIGIN = Origin(
    dialect="chat", provider="deepseek", endpoint="https://api.test", model="deepseek-v4"
)
WORDS = "the model looks at the file, sees that the loop never ends, and thinks about a way out; "

clock = SystemClock()


# -- appending -------------------------------------------------------------------------------


def _turn(session: str, parent: str) -> Batch:
    """Eight events of a turn with a thought, two calls and an answer; about 4 kB of text."""
    turn = clock.new_id()
    thought = Thought(
        carrier=Carrier.REASONING_CONTENT,
        raw=msgspec.json.encode(WORDS * 20).decode(),
        text=WORDS * 5,
        origin=ORIGIN,
    )
    call = Call(name="read_file", arguments='{"path": "src/main.py"}', id=clock.new_id())
    said = (
        UserMessage(parts=(Text(text=WORDS),)),
        ToolResult(result=Result(content=WORDS * 8, call=call.id)),
        Reasoning(thought=thought),
        ToolCall(call=call),
        ToolCall(call=call),
        AssistantMessage(parts=(Text(text=WORDS * 2),)),
        TurnEnded(outcome=Outcome.COMPLETED, usage=Usage(input=1000, output=100), model="v4"),
    )
    now = clock.wall()
    drafts: list[Draft] = [draft(TurnStarted(target=ORIGIN), id=turn, parent=parent, at=now)]
    drafts += [draft(body, id=clock.new_id(), parent=turn, at=now) for body in said]
    indexed = IndexEntry(
        session=session,
        turn=turn,
        parent=parent,
        origin=ORIGIN,
        at=now,
        shape="tccx",
        thoughts=(thought,),
        calls=(call.id, call.id),
        keys=tuple(os.urandom(16) for _ in range(NAMES)),
    )
    return Batch(session=session, tenant="bench", drafts=tuple(drafts), index=(indexed,))


async def _converse(store: SqliteStore, batches: list[Batch]) -> int:
    for batch in batches:
        await store.append(batch)
    return sum([len(batch.drafts) for batch in batches])


async def _busy(stop: asyncio.Event) -> None:
    """Other work in the loop: slices of a third of a millisecond, as requests are."""
    while not stop.is_set():
        end = time.perf_counter() + 0.0003
        while time.perf_counter() < end:
            pass
        await asyncio.sleep(0)


async def _append(directory: Path, run: int, busy: bool) -> float:
    """Events per second of one run on a new file."""
    work = [[_turn(f"{run}-{n}", "") for _ in range(BATCHES)] for n in range(WRITERS)]
    store = SqliteStore(directory / f"append-{run}-{busy}.db")
    await store.stats()  # opens the file
    stop = asyncio.Event()
    other = asyncio.create_task(_busy(stop)) if busy else None
    start = time.perf_counter()
    written = sum(await asyncio.gather(*(_converse(store, batches) for batches in work)))
    took = time.perf_counter() - start
    stop.set()
    if other:
        await other
    assert written == (await store.stats()).events == WRITERS * BATCHES * 8
    await store.close()
    return written / took


async def _latency(directory: Path) -> float:
    """Milliseconds of one append, the only one at its time; the median of many."""
    store = SqliteStore(directory / "latency.db")
    runs: list[float] = []
    for batch in [_turn("s", "") for _ in range(400)]:
        start = time.perf_counter()
        await store.append(batch)
        runs.append(time.perf_counter() - start)
    await store.close()
    return statistics.median(runs) * 1000


# -- finding ---------------------------------------------------------------------------------


def _name(turn: int, which: int) -> bytes:
    return hashlib.blake2b(b"%d:%d" % (turn, which), digest_size=16).digest()


def _thinking(session: int, lengths: random.Random, count: int) -> Iterator[Batch]:
    """The turns of one session of the big file: a thought of 200 to 2,000 characters each."""
    for n in range(session * TURNS, min(session * TURNS + TURNS, count)):
        turn, name = f"{n:032x}", f"session-{session}"
        raw = msgspec.json.encode((WORDS * 24)[: lengths.randrange(200, 2000)]).decode()
        thought = Thought(carrier=Carrier.REASONING_CONTENT, raw=raw, origin=ORIGIN)
        indexed = IndexEntry(
            session=name,
            turn=turn,
            origin=ORIGIN,
            at=1.5,
            shape="tc",
            calls=(f"call_{n}",),
            keys=tuple(_name(n, which) for which in range(NAMES)),
        )
        said: list[Body] = [Reasoning(thought=thought), TurnEnded(outcome=Outcome.COMPLETED)]
        drafts = tuple(
            draft(body, id=f"{turn}.{i}", parent=turn, at=1.5) for i, body in enumerate(said)
        )
        yield Batch(session=name, tenant="bench", drafts=drafts, index=(indexed,))


def build(path: Path, count: int) -> None:
    """A file with so many thoughts, one per turn, written with the store's own statements."""
    db = DatabaseFile(path, timeout=5.0, synchronous="normal").for_writing()
    for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -1000000"):
        db.execute(f"PRAGMA {setting}").fetchall()  # if it fails, it is built again
    lengths = random.Random(7)
    for session in range(-(-count // TURNS)):
        if session % 20 == 0:
            db.execute("BEGIN IMMEDIATE")
        rows.write(db, [insert_batch(batch) for batch in _thinking(session, lengths, count)], 1.5)
        if session % 20 == 19:
            db.execute("COMMIT")
    if db.in_transaction:
        db.execute("COMMIT")
    db.close()


async def _find(store: SqliteStore, names: list[bytes]) -> tuple[float, float]:
    """Milliseconds of one look-up: by the clock, and of CPU."""
    start, cpu = time.perf_counter(), time.process_time()
    found = await store.find("bench", names)
    took = time.perf_counter() - start, time.process_time() - cpu
    assert len(found) == len(set(names))
    assert all(len(indexed.thoughts) == 1 for (indexed,) in found.values())
    return took[0] * 1000, took[1] * 1000


def _asked(count: int, scattered: bool, chance: random.Random) -> list[bytes]:
    """150 names: three for each turn of one conversation, or one for each of many."""
    if scattered:
        return [_name(chance.randrange(count), 0) for _ in range(150)]
    first = chance.randrange(count // TURNS) * TURNS
    return [_name(first + n // 3, n % 3) for n in range(150)]


async def _finding(path: Path, count: int) -> list[Figure]:
    with path.open("rb") as file:  # what is measured is the store, not the disk
        while file.read(1 << 24):
            pass
    store = SqliteStore(path)
    chance = random.Random(11)
    figures: list[Figure] = []
    for label, scattered in (("one conversation", False), ("scattered", True)):
        for _ in range(10):
            await _find(store, _asked(count, scattered, chance))
        runs = [await _find(store, _asked(count, scattered, chance)) for _ in range(101)]
        name = f"find 150 names of {count:,} thoughts, {label}"
        figures.append((name, statistics.median(wall for wall, _ in runs), "ms"))
        figures.append((name, statistics.median(cpu for _, cpu in runs), "ms of CPU"))
    await store.close()
    return figures


def run() -> list[Figure]:
    """Measure everything; (name, figure, unit), medians of repeated runs."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for label, busy in (("append", False), ("append, busy event loop", True)):
            rates = [asyncio.run(_append(directory, run, busy)) for run in range(5)]
            figures.append((label, statistics.median(rates), "events/s"))
        figures.append(("append, one at a time", asyncio.run(_latency(directory)), "ms"))
        path = directory / "find.db"
        build(path, THOUGHTS)
        figures += asyncio.run(_finding(path, THOUGHTS))
    return figures


if __name__ == "__main__":
    for name, figure, unit in run():
        print(f"{name:<60} {figure:>12,.2f} {unit}")
