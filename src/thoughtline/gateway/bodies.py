"""Bodies: read within a limit, and decompressed where they have a content encoding."""

import json
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module

from msgspec import MsgspecError, Struct, ValidationError
from msgspec.json import Decoder

from thoughtline.dialects.limits import CHECKED_SIZE, HEAVY_SIZE
from thoughtline.engine.offload import run_aside
from thoughtline.errors import ThoughtlineError
from thoughtline.gateway.asgi import Receive

_ZLIB = ("gzip", "x-gzip", "deflate")
_IDENTITY = ("", "identity")
MAX_RATIO = 128
"""How many times its size a body may unpack to: text reaches 20, and a bomb 1,000."""
MAX_INLINE = 16 << 10
"""Bytes of a compressed body up to which it is decompressed on the event loop."""
FREE_SIZE = 1 << 20
"""Bytes that it may unpack to in any case."""
Decompress = Callable[[bytes, int], bytes]
"""Takes a body and a limit; what it gives is longer than the limit where the body is."""


class BodyTooLarge(ThoughtlineError):
    """The request's body is larger than this gateway takes."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"the request body is larger than {limit} bytes; "
            "shorten the history, or raise `server.max_body_bytes`"
        )


class RatioTooHigh(BodyTooLarge):
    """The request's body unpacks to very many times its size."""

    def __init__(self) -> None:
        ThoughtlineError.__init__(
            self,
            f"the request body unpacks to more than {MAX_RATIO} times its size; send it plain, or "
            "do without replay (`x-thoughtline-replay: off`)",
        )


class ClientDisconnected(ThoughtlineError):
    """The client disconnected before its request was complete."""


async def read_body(receive: Receive, content_length: bytes, limit: int) -> bytes:
    """Read a request's body.

    Raises `BodyTooLarge` as soon as its length is known to exceed the limit, `ClientDisconnected`
    when it never ends.
    """
    if content_length.isdigit() and int(content_length) > limit:
        raise BodyTooLarge(limit)
    body: bytes | bytearray = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        piece: bytes = message.get("body", b"")
        if piece and not body:
            body = piece
        elif piece:  # however small the pieces are, they take no more than their size
            body = body if isinstance(body, bytearray) else bytearray(body)
            body += piece
        if len(body) > limit:
            raise BodyTooLarge(limit)
        if not message.get("more_body"):
            return bytes(body)  # the same object where it came in one piece


class _Named(Struct):
    model: str = ""


_named = Decoder(_Named).decode


def model_name(body: bytes) -> str:
    """The `model` of a JSON body; empty where it has none."""
    try:
        return _named(body).model
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def json_problem(body: bytes) -> str:
    """Why a body is no JSON object, in words; empty if it is one, or too large to tell."""
    if not body.strip():
        return "is empty"
    if len(body) > HEAVY_SIZE:  # it would hold the event loop
        return ""
    if len(body) > CHECKED_SIZE:  # its values may take far more memory than it
        return _large_problem(body)
    try:
        value = json.loads(body)
    except json.JSONDecodeError as error:
        return f"is not JSON ({error.msg}, line {error.lineno}, column {error.colno})"
    except (ValueError, RecursionError):
        return "is not JSON in UTF-8"
    return "" if isinstance(value, dict) else "is JSON, but not an object"


def _large_problem(body: bytes) -> str:
    """Why a large body is no JSON object; its values are skipped, and not made."""
    try:
        _named(body)
    except ValidationError as error:  # JSON, but not of that shape
        wrong = str(error).startswith("Expected `object`") and "$" not in str(error)
        return "is not a JSON object" if wrong else ""
    except (MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return f"is not JSON ({error})"
    return ""


# -- content encodings ---------------------------------------------------------------------------


def is_supported(encoding: str) -> bool:
    """Whether a body with this content encoding can be decompressed here."""
    name = encoding.strip().lower()
    return name in (*_IDENTITY, *_ZLIB) or (name == "zstd" and _zstd() is not None)


def supported_encodings() -> str:
    """The content encodings that can be decompressed here, as `Accept-Encoding` lists them."""
    return "gzip, deflate, zstd" if _zstd() else "gzip, deflate"


async def decompressed(body: bytes, encoding: str, limit: int) -> bytes | None:
    """Decompress a body (`decompress`), without a byte order mark; a large one beside the loop."""
    decompressing = partial(decompress, body, encoding, limit)
    plain = await run_aside(decompressing) if len(body) > MAX_INLINE else decompressing()
    return plain and plain.removeprefix(BOM_UTF8)


def decompress(body: bytes, encoding: str, limit: int) -> bytes | None:
    """The body without its content encoding; None where it cannot be decompressed here.

    Raises `BodyTooLarge`, also where it unpacks to very many times its size.
    """
    encoding = encoding.strip().lower()
    if encoding in _IDENTITY:
        return body
    zstd = _zstd() if encoding == "zstd" else None
    if encoding not in _ZLIB and zstd is None:
        return None
    usual = max(FREE_SIZE, MAX_RATIO * len(body))
    most = min(limit, usual)
    try:
        if zstd is not None:
            plain = zstd(body, most)
        else:  # gzip or zlib, by its own header
            plain = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, most + 1)
    except (zlib.error, ValueError):
        return None
    if len(plain) > most:
        raise RatioTooHigh if usual < limit else BodyTooLarge(limit)
    return plain


class Decompressor:
    """Decompresses a response chunk by chunk, for the copy that is captured."""

    def __init__(self, encoding: str, limit: int = 64 << 20) -> None:
        encoding = encoding.strip().lower()
        self.compressed = encoding in _ZLIB
        self.readable = self.compressed or encoding in _IDENTITY
        self.reason = "" if self.readable else f"{encoding!r} cannot be decompressed here"
        self._inner = zlib.decompressobj(zlib.MAX_WBITS | 32) if self.compressed else None
        self._left = limit
        self._usual = FREE_SIZE  # bytes that may come out, by the ratio

    def feed(self, chunk: bytes) -> bytes:
        """The chunk decompressed; empty once the response is damaged or exceeds the limit."""
        if self._inner is None:
            return chunk if self.readable else b""
        self._usual += MAX_RATIO * len(chunk)
        most = min(self._left, self._usual)
        try:
            plain = self._inner.decompress(chunk, most + 1)
        except zlib.error:
            return self._stop("is damaged")
        self._left -= len(plain)
        self._usual -= len(plain)
        return plain if len(plain) <= most else self._stop("is too large when decompressed")

    def _stop(self, reason: str) -> bytes:
        self.readable, self.reason, self._inner = False, reason, None
        return b""


UNCOMPRESSED = Decompressor("")
"""For every response without a content encoding: it keeps no state from chunk to chunk."""


@cache
def _zstd() -> Decompress | None:
    """Zstandard, where Python has it (3.14) or the extra `zstd` is installed: Codex uses it."""
    try:
        return _stdlib_zstd()
    except ImportError:
        pass
    try:
        return _zstandard()
    except ImportError:
        return None


def _stdlib_zstd() -> Decompress:
    zstd = import_module("compression.zstd")

    def decompress(body: bytes, limit: int) -> bytes:
        try:
            plain: bytes = zstd.ZstdDecompressor().decompress(body, limit + 1)
        except zstd.ZstdError as error:
            raise ValueError(str(error)) from error
        return plain

    return decompress


def _zstandard() -> Decompress:
    zstandard = import_module("zstandard")

    def decompress(body: bytes, limit: int) -> bytes:
        try:
            with zstandard.ZstdDecompressor().stream_reader(body) as reader:
                plain: bytes = reader.read(limit + 1)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from error
        return plain

    return decompress
