"""Zstandard, where Python has it (3.14) or the extra `zstd` is installed.

Codex packs its requests so. Nothing else here depends on it.
"""

from collections.abc import Callable
from importlib import import_module

Unpack = Callable[[bytes, int], bytes]
"""A body and the most that may come out of it, to at least one byte more where it is more."""


def unpacker() -> Unpack | None:
    """How to unpack; None where nothing is installed that can."""
    try:
        stdlib = import_module("compression.zstd")
    except ImportError:
        pass
    else:

        def newer(body: bytes, limit: int) -> bytes:
            try:
                made: bytes = stdlib.ZstdDecompressor().decompress(body, limit + 1)
            except stdlib.ZstdError as error:
                raise ValueError(str(error)) from error
            return made

        return newer
    try:
        package = import_module("zstandard")
    except ImportError:
        return None

    def older(body: bytes, limit: int) -> bytes:
        try:
            with package.ZstdDecompressor().stream_reader(body) as reader:
                made: bytes = reader.read(limit + 1)
        except package.ZstdError as error:
            raise ValueError(str(error)) from error
        return made

    return older
