"""Other versions of the source, beside which this one is measured."""

import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[1]


@contextmanager
def checkout_of(version: str) -> Iterator[Path]:
    """The folder of a version: one that is there, or a git revision of this repository."""
    if Path(version).is_dir():
        yield Path(version).resolve()
        return
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", version, "src"],  # noqa: S607 (whichever git there is)
        check=True,
        capture_output=True,
    ).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(packed)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder)
