"""A process of its own that appends, and prints each acknowledged batch as soon as it is.

    python appender.py FILE SESSION NAME BATCHES AT_ONCE

Each line is the seq of a batch's first event and the name of the batch; the batch has three events.
"""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from stores.samples import plain
from thoughtline.stores.base import Batch
from thoughtline.stores.sqlite import SqliteStore


async def main(path, session, name, batches, at_once):
    store = SqliteStore(path, timeout=30)
    numbers = iter(range(int(batches)))

    async def work():
        for number in numbers:
            id = f"{name}-{number}"
            drafts = tuple(plain(id=id, data=f'"{"x" * 500}"') for _ in range(3))
            first = await store.append(Batch(session=session, tenant="T", drafts=drafts))
            sys.stdout.write(f"{first} {id}\n")
            sys.stdout.flush()

    await asyncio.gather(*(work() for _ in range(int(at_once))))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
