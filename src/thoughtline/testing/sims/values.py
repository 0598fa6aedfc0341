"""What goes in and out of a simulated provider: requests, replies, and what the model does.

A simulator does no I/O. It is given a `Request` and gives back a `Reply` whose chunks are single
stream events (or one whole JSON body); `app` puts them on a socket, in whatever pieces and at
whatever pace a test asks for. What the scripted model does in one exchange is an ordered tuple of
pieces: it thinks, it says, it uses a tool.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

Ending: TypeAlias = Literal["whole", "cut", "stall"]
"""How a reply's stream ends: properly, with a dropped connection, or never."""

JSON_TYPE = "application/json"
SSE_TYPE = "text/event-stream; charset=utf-8"


class Request(NamedTuple):
    """One HTTP request as a provider sees it."""

    method: str
    path: str
    """Relative to the provider's root, without a query: `/v1/chat/completions`."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    query: str = ""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One answer: one chunk is one stream event, or the whole JSON body."""

    status: int
    headers: dict[str, str]
    chunks: tuple[bytes, ...]
    ending: Ending = "whole"

    @property
    def body(self) -> bytes:
        """Everything the client receives, in one piece."""
        return b"".join(self.chunks)


class Think(NamedTuple):
    """The model thinks: never visible to a user, to be returned by the client."""

    text: str


class Say(NamedTuple):
    """The model says something to the user."""

    text: str


class Use(NamedTuple):
    """The model calls a tool."""

    name: str
    arguments: str
    """JSON text, sent exactly as written here: odd spacing, key order and `5.0` included."""


Piece: TypeAlias = Think | Say | Use


class Tool(NamedTuple):
    """A tool that the request declares."""

    name: str
    schema: Any = None
    """Its JSON schema, if it gave one."""


def decode(body: bytes) -> Any:
    """Parse JSON, raising `ValueError` (and nothing else) when it is not JSON."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ValueError(str(error)) from error


def encode(value: object, *, escaped: bool = False) -> bytes:
    r"""Write compact JSON; with `escaped` everything else is escaped (`\ud83d\ude00`)."""
    # Not msgspec: it cannot escape, and refuses the half of a surrogate pair that some providers
    # put at the end of a stream event.
    text = json.dumps(value, ensure_ascii=escaped, separators=(",", ":"))
    return text.encode("utf-8")


def sse(data: object, *, event: str | None = None, escaped: bool = False) -> bytes:
    """Write one server-sent event; a `str` is sent as it is (`[DONE]`)."""
    payload = data.encode() if isinstance(data, str) else encode(data, escaped=escaped)
    name = b"" if event is None else b"event: " + event.encode() + b"\n"
    return name + b"data: " + payload + b"\n\n"


def deltas(text: str, size: int = 12, *, surrogates: bool = False) -> list[str]:
    r"""Cut a text into stream deltas.

    With `surrogates` each character beyond U+FFFF is cut in two halves that go to two deltas, as
    servers do that count UTF-16 units. Such deltas can only be encoded with `escaped=True`.
    """
    if not text:
        return []
    if not surrogates:
        return [text[at : at + size] for at in range(0, len(text), size)]
    out, piece = [], ""
    for char in text:
        if ord(char) > 0xFFFF:
            units = char.encode("utf-16-be")
            out.append(piece + units[:2].decode("utf-16-be", "surrogatepass"))
            piece = units[2:].decode("utf-16-be", "surrogatepass")
        else:
            piece += char
        if len(piece) >= size:
            out.append(piece)
            piece = ""
    return [*out, piece] if piece else out


def json_reply(
    status: int,
    value: object,
    *,
    headers: Mapping[str, str] | None = None,
    escaped: bool = False,
) -> Reply:
    """Answer with one JSON body."""
    chunks = (encode(value, escaped=escaped),)
    return Reply(
        status=status, headers={"content-type": JSON_TYPE, **(headers or {})}, chunks=chunks
    )


def stream_reply(chunks: list[bytes], *, headers: Mapping[str, str] | None = None) -> Reply:
    """Answer 200 with a stream of server-sent events, one per chunk."""
    base = {"content-type": SSE_TYPE, "cache-control": "no-cache", **(headers or {})}
    return Reply(status=200, headers=base, chunks=tuple(chunks))
