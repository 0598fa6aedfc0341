"""Saves batches to a spill file, in a thread of its own: a disk that hangs stops no event loop."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from thoughtline.errors import SealError
from thoughtline.stores.base import Batch
from thoughtline.stores.spill import Line, SpillFile, adopt

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain

T = TypeVar("T")


class SavedBatch(NamedTuple):
    """A batch in a file."""

    file: SpillFile
    line: Line


class Saver:
    """The spill files of this process: its own, and those it has adopted.

    A file is deleted when all of its batches are released.
    """

    def __init__(self, store: Path | None, keychain: "Keychain | None" = None) -> None:
        self.store = store.absolute() if store else None  # None: nothing can be saved
        self._keychain = keychain
        self.unopened = ""  # why a file that was left is not adopted
        self._own: SpillFile | None = None
        self._held: dict[SpillFile, int] = {}  # file → batches in it that are not released
        self._thread: ThreadPoolExecutor | None = None

    async def _run(self, work: Callable[[], T]) -> T:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="thoughtline-spill")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def save(self, batch: Batch) -> SavedBatch:
        """Write a batch to the file of this process."""
        saved = await self._run(lambda: self._save(batch))
        self._held[saved.file] = self._held.get(saved.file, 0) + 1
        return saved

    def _save(self, batch: Batch) -> SavedBatch:
        if self.store is None:
            raise OSError("there is no file to keep them in")
        if self._own is None:
            self._own = SpillFile.create(self.store, self._keychain)
        return SavedBatch(self._own, self._own.append(batch))

    async def load(self, saved: SavedBatch) -> Batch:
        """Read a batch; raises `OSError` or `ValueError` when it cannot be read."""
        return await self._run(lambda: saved.file.read(saved.line))

    async def release(self, batches: Sequence[SavedBatch]) -> None:
        """Drop batches that are written, or not wanted any more.

        Who adopts their file, should this process die, does not find them there.
        """
        empty: set[SpillFile] = set()
        for file, _ in batches:
            self._held[file] -= 1
            if not self._held[file]:
                del self._held[file]
                empty.add(file)
        if self._own in empty:
            self._own = None
        if batches:
            await self._run(lambda: _let_go(batches, empty))

    async def adopt(self, describe: Callable[[Batch], T]) -> tuple[list[tuple[SavedBatch, T]], int]:
        """Take over the files of dead processes.

        Returns their batches with what `describe` says of them, and how many cannot be read.
        """
        return await self._run(lambda: self._adopt(describe))

    def _adopt(self, describe: Callable[[Batch], T]) -> tuple[list[tuple[SavedBatch, T]], int]:
        adopted, damaged = [], 0
        for file in adopt(self.store, self._keychain) if self.store else ():
            try:
                found = [(SavedBatch(file, line), describe(batch)) for line, batch in file.scan()]
            except SealError as error:  # it stays, for a process that has the key
                self.unopened = str(error)
                file.close()
                continue
            damaged += file.damaged
            if found:
                self._held[file] = len(found)
                adopted += found
            else:
                file.remove()
        return adopted, damaged

    async def replace(self, saved: SavedBatch, batch: Batch | None) -> SavedBatch:
        """Overwrite a batch in its file."""
        line = await self._run(lambda: saved.file.replace(saved.line, batch))
        return SavedBatch(saved.file, line)

    def close(self) -> None:
        """Leave what is not released to the process that opens the store next."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
        for file in self._held:
            file.close()
        self._held.clear()
        self._thread = self._own = None


def _let_go(batches: Sequence[SavedBatch], empty: set[SpillFile]) -> None:
    """Overwrite batches in their files, and delete the files in which there is no other."""
    for file, line in batches:
        if file not in empty:
            with suppress(OSError):  # then it is written once more, and known by its id
                file.replace(line, None)
    for file in empty:
        file.remove()
