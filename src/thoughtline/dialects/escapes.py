"""JSON strings, and deltas, that hold half an emoji (see `halves`)."""

import json

import msgspec
from msgspec.structs import astuple

from thoughtline.dialects.halves import mend
from thoughtline.events import Delta


def quoted(text: str) -> bytes:
    """A JSON string of the text, to the last half: what is alone stays an escape."""
    try:
        return msgspec.json.encode(text)
    except UnicodeEncodeError:
        return json.dumps(text).encode()


def showable(delta: Delta) -> Delta:
    """A delta that UTF-8 can carry."""
    return type(delta)(*map(mend, astuple(delta)))
