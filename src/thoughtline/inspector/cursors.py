"""Cursors: a time and an id as one word, which a client sends back to go on from there."""

import math
import struct

PATTERN = r"^[0-9a-f]{16}\.([0-9a-f]{2})*$"
EXPECTED = "the `nextCursor` of the page before"

Position = tuple[float, str]
"""When something happened, and its id: where it stands in a list."""


def decoded_cursor(text: str | None) -> Position | None:
    """The position that a cursor stands for."""
    if text is None:
        return None
    time, _, id = text.partition(".")
    (at,) = struct.unpack(">d", bytes.fromhex(time))
    return (0.0 if math.isnan(at) else at), bytes.fromhex(id).decode("utf-8", "replace")


def encoded_cursor(position: Position) -> str:
    """The cursor for a position."""
    return f"{struct.pack('>d', position[0]).hex()}.{position[1].encode('utf-8', 'replace').hex()}"
