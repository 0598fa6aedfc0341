"""A request's body, read within limits and unpacked where the client packed it."""

import zlib
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

from thoughtline.errors import ThoughtlineError
from thoughtline.gateway import zstd

_ZLIB = ("gzip", "x-gzip", "deflate")
_zstd = cache(zstd.unpacker)
Receive = Callable[[], Awaitable[dict[str, Any]]]


class TooLarge(ThoughtlineError):
    """The request's body is larger than this gateway takes."""


class Gone(ThoughtlineError):
    """The client left before its request was complete."""


async def read(receive: Receive, declared: bytes, limit: int) -> bytes:
    """The whole body. Raises `TooLarge` as soon as that is certain, `Gone` when it never ends.

    `declared` is how long it is to be, in the client's words.
    """
    if declared.isdigit() and int(declared) > limit:
        raise TooLarge(_too_large(limit))
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        piece = message.get("body", b"")
        if piece:
            size += len(piece)
            if size > limit:
                raise TooLarge(_too_large(limit))
            pieces.append(piece)
        if not message.get("more_body"):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _too_large(limit: int) -> str:
    return (
        f"the request body is larger than {limit} bytes; "
        "shorten the history, or raise `server.max_body_bytes`"
    )


def known(encoding: str) -> bool:
    """Whether a body in this content encoding can be unpacked here."""
    name = encoding.strip().lower()
    return name in ("", "identity", *_ZLIB) or (name == "zstd" and _zstd() is not None)


def encodings() -> str:
    """The content encodings that can be unpacked here, as a header says them."""
    return "gzip, deflate, zstd" if _zstd() else "gzip, deflate"


def unpack(body: bytes, encoding: str, limit: int) -> bytes | None:
    """The body without its content encoding; None where it cannot be unpacked here."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    unzstd = _zstd() if encoding == "zstd" else None
    if encoding not in _ZLIB and unzstd is None:
        return None
    try:
        if unzstd is not None:
            plain = unzstd(body, limit)
        else:  # gzip or zlib, by its own header
            plain = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, limit + 1)
    except (zlib.error, ValueError):
        return None
    if len(plain) > limit:
        raise TooLarge(_too_large(limit))
    return plain


class _Named(Struct):
    model: str = ""


_named = Decoder(_Named).decode


def model(body: bytes) -> str:
    """The model that a body names, whatever else it is about; empty where it names none."""
    try:
        return _named(body).model
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


class Unpacker:
    """A response's chunks without their content encoding, for the reader's copy."""

    def __init__(self, encoding: str, limit: int = 64 << 20) -> None:
        encoding = encoding.strip().lower()
        self.packed = encoding in _ZLIB
        self.readable = self.packed or encoding in ("", "identity")
        self.why = "" if self.readable else f"{encoding!r} cannot be unpacked here"
        self._inner = zlib.decompressobj(zlib.MAX_WBITS | 32) if self.packed else None
        self._left = limit

    def feed(self, chunk: bytes) -> bytes:
        """What this chunk says; nothing from the point on where it is damaged or too much."""
        if self._inner is None:
            return chunk if self.readable else b""
        try:
            plain = self._inner.decompress(chunk, self._left + 1)
        except zlib.error:
            return self._stop("is damaged")
        self._left -= len(plain)
        return plain if self._left >= 0 else self._stop("is too large unpacked")

    def _stop(self, why: str) -> bytes:
        self.readable, self.why, self._inner = False, why, None
        return b""


PLAIN = Unpacker("")
"""For all that came as it is: there is nothing to remember from one chunk to the next."""
