"""Links that an answer rests on, as the dialects share them.

Each API says them in a place of its own, and where the passage is that a link stands behind: in
characters, in bytes, or with a block. A `Citation` counts characters of all that the answer says.
"""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from thoughtline.dialects.surrogates import replace_surrogates
from thoughtline.dialects.values import string
from thoughtline.log.events import Citation

MARK = b"dGhvdWdodGxpbmUtY2l0YXRpb24="
"""Stands in a link of a translated answer where the client's API has an opaque value."""


def read_citation(
    url: Any, title: Any = "", quote: Any = "", start: Any = None, end: Any = None, *, base: int = 0
) -> list[Citation]:
    """Return a link whose members may be of any type; none where there is no address.

    `base`: what its passage is counted from. One that is empty is not known.
    """
    if not string(url):
        return []
    words = [replace_surrogates(string(value)) for value in (url, title, quote)]
    citation = Citation(words[0], words[1], words[2])
    if type(start) is int and type(end) is int and 0 <= start < end:
        citation = replace(citation, start=base + start, end=base + end)
    return [citation]


def measured(text: Any, offsets: Iterable[int], size: Callable[[Any], int]) -> dict[int, int]:
    """Return how much stands before each offset of a text, in another unit."""
    found: dict[int, int] = {}
    total = last = 0
    for offset in sorted(set(offsets)):
        total += size(text[last:offset])
        found[offset], last = total, offset
    return found
