"""Ten thousand pairs of conversations that look alike, and what crossed between them.

python -m benchmarks.lookalikes                    10,000 pairs, all providers, one and two nodes
python -m benchmarks.lookalikes --pairs 600 --seed 7

Each pair says the same words and gets the same visible answers; one thing tells the two apart, and
it is drawn at random. Every other pair talks through two gateways, with caches of their own over one
SQLite file. Counted are thoughts that were sent upstream for the wrong conversation; there shall be
none. Two processes share the work.
"""

import argparse
import asyncio
import importlib
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

from thoughtline.stores.base import Store
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.sqlite import SqliteStore

SLICE = 25
"""Pairs that a process plays before it reports."""


class Played(NamedTuple):
    """What a slice of pairs came to."""

    pairs: int
    thoughts: int
    refused: int
    crossed: list[str]


def look_alikes() -> Any:
    """The module of the pairs that the tests have."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    return importlib.import_module("support.look_alikes")


def play(first: int, pairs: int) -> Played:
    """Play the pairs of these seeds, one after the other."""
    return asyncio.run(_play(range(first, first + pairs)))


async def _play(seeds: range) -> Played:
    module = look_alikes()
    thoughts = refused = 0
    crossed: list[str] = []
    for seed in seeds:
        provider = module.PROVIDERS[seed // 2 % len(module.PROVIDERS)]
        with tempfile.TemporaryDirectory() as folder:
            stores = [_open(Path(folder) / "t.db") for _ in range(1 + seed % 2)]
            pair = module.Pair(seed, provider, stores)
            try:
                found = await pair.run()
            finally:
                for store in stores:
                    await store.close()
        thoughts += len(pair.wire.owners)
        refused += len(pair.wire.refused)
        crossed += [f"seed {seed}, {provider}: {speaker} got {mark}" for speaker, mark, _ in found]
    return Played(len(seeds), thoughts, refused, crossed)


def _open(file: Path) -> Store:
    return CachedStore(SqliteStore(file))


def main() -> None:
    """Play all pairs, and end with 1 where anything crossed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    asked = parser.parse_args()
    totals = [0, 0, 0]
    crossed: list[str] = []
    with ProcessPoolExecutor(2) as pool:
        slices = range(asked.seed, asked.seed + asked.pairs, SLICE)
        end = asked.seed + asked.pairs
        futures = [pool.submit(play, first, min(SLICE, end - first)) for first in slices]
        for future in as_completed(futures):
            played = future.result()
            totals = [sum(both) for both in zip(totals, played[:3], strict=True)]
            crossed += played.crossed
            print(
                f"\r{totals[0]:,} of {asked.pairs:,} pairs, {len(crossed)} crossed",
                end="",
                file=sys.stderr,
            )
    print(file=sys.stderr)
    print(f"{totals[0]:,} pairs, {totals[1]:,} thoughts, {totals[2]:,} refusals by providers")
    print(f"crossed: {len(crossed)}")
    for line in crossed[:20]:
        print(f"  {line}")
    if crossed:
        sys.exit(1)


if __name__ == "__main__":
    main()
