"""Events of a stream that are alike but for one text: many are told as two.

Most of a stream is deltas that say nothing but a few more words, all the rest byte for byte as in
the one before. Reading them one by one says no more than reading the first one, and one with the
words of all the others: the same text, and when it began and last grew. What is not certainly so,
is left as it came.
"""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from thoughtline.dialects.sse import SseParser

OnlyText = Callable[[bytes], str | None]
"""The text that is all that an event's data says; None where it says more, or something else."""

_SPECIAL = bytes(range(0x20)) + b'"\\<'
"""Bytes that end a text, or mean more than themselves; a `<` may begin a tag."""
_PROBE = "a text like no other"


class EventShape(Struct, frozen=True):
    """What stands before and after the text in events that are alike."""

    before: bytes
    after: bytes

    def texts(self, data: bytes) -> list[bytes] | None:
        """Return the texts of events that all have this shape; None where one has not."""
        before, after = self.before, self.after
        if not (data.startswith(before) and data.endswith(after)):
            return None
        texts = data[len(before) : -len(after)].split(after + before)
        joined = b"".join(texts)
        if b"" in texts or len(joined.translate(None, _SPECIAL)) != len(joined):
            return None
        return texts if joined.isascii() or all(map(_is_utf8, texts)) else None


def _is_utf8(text: bytes) -> bool:
    """Whether a text is whole: half a letter is none, even if the next event has the rest."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def shape_of(event: bytes, only_text: OnlyText) -> EventShape | None:
    """Return the shape of an event that says nothing but a text; None of any other."""
    text = _said(event, only_text)
    if not text:
        return None
    before, quoted, after = event.partition(b'"%b"' % text.encode())
    shape = EventShape(before + b'"', b'"' + after)
    # The same words may stand elsewhere in it: those are not the text that grows.
    other = _said(shape.before + _PROBE.encode() + shape.after, only_text)
    return shape if quoted and other == _PROBE else None


def _said(event: bytes, only_text: OnlyText) -> str | None:
    """Return the text of `event` if it is exactly one text delta, else None."""
    if b"\r" in event or event.find(b"\n\n") != len(event) - 2:
        return None
    found = SseParser().feed(event)
    return only_text(found[0].data) if len(found) == 1 else None


def shortened(pieces: Sequence[Any], shape: EventShape | None) -> list[Any] | None:
    """Return arrival and bytes of pieces, in turn, as those of the first event and of the others.

    None where they are not of this shape, or too few, or the first event is not in the first piece.
    """
    texts = shape.texts(b"".join(pieces[1::2])) if shape is not None else None
    if shape is None or texts is None or len(texts) < 3:  # two are told as two
        return None
    first = shape.before + texts[0] + shape.after
    if len(pieces[1]) < len(first):
        return None
    return [pieces[0], first, pieces[-2], shape.before + b"".join(texts[1:]) + shape.after]
