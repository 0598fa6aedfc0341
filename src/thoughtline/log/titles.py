"""What a session is called: the first words that a person said, without what a client put around.

Agents wrap notes for the model in tags of their own (`<system-reminder>…</system-reminder>`),
before the question or beside it. A name is made of what is left without them.
"""

import re
from collections.abc import Iterable
from itertools import islice

from thoughtline.log.parts import Part, Text

MAX_TITLE = 120
"""Characters of a title."""
MAX_READ = 40_000
"""Characters of a text in which the words are looked for."""
MAX_NOTES = 50
"""Notes that are taken out of one text."""
_ASKED = re.compile(
    r"<(task|user_query|user_message|question|feedback|session)>(.+?)</\1>", re.DOTALL
)
"""Tags around what a person said."""
_OPENING = re.compile(
    r"<([a-z]+[-_][\w.-]*|[A-Z][A-Z_]+|context|instructions|memory|reminder)(?:\s[^<>]{0,200})?>"
)
"""A tag of a client's own around a note for the model; tags of HTML are a person's words."""
_HEADING = re.compile(r"# [^\n]* instructions(?: for [^\n]*)?")
"""What is left of a file of instructions without what it says."""


def title_of(parts: Iterable[Part]) -> str:
    """The first words of a message, on one line."""
    texts = [part.text for part in parts if isinstance(part, Text) and part.text]
    words = [spoken for text in texts if (spoken := one_line(spoken_words(text)))]
    return shortened(" ".join(words))


def raw_title(parts: Iterable[Part]) -> str:
    """The first words of a message as they are, for one in which only a client speaks."""
    texts = (part.text for part in parts if isinstance(part, Text) and part.text)
    return shortened(one_line(" ".join(text[:MAX_READ] for text in texts)))


def spoken_words(text: str) -> str:
    """A text without the notes that a client wrapped in tags."""
    text = text[:MAX_READ].strip()
    if not text.startswith(("<", "#")):
        return text
    if asked := _ASKED.search(text):
        return asked[2]
    kept, at = [], 0
    for opening in islice(_OPENING.finditer(text), MAX_NOTES):
        if opening.start() < at:
            continue  # inside of a note
        end = text.find(f"</{opening[1]}>", opening.end())
        kept.append(text[at : opening.start()])
        at = len(text) if end < 0 else end + len(opening[1]) + 3
    words = ("".join(kept) + text[at:]).strip()
    return "" if _HEADING.fullmatch(words) else words


def without_notes(text: str) -> str:
    """All of a text but the notes that a client put before a person's words."""
    return spoken_words(text) + text.strip()[MAX_READ:]


def one_line(text: str) -> str:
    """A text with its spaces and line ends made one space each."""
    return " ".join(text.split())


def shortened(words: str) -> str:
    """The beginning of a text that is too long for a title."""
    return words if len(words) <= MAX_TITLE else words[: MAX_TITLE - 1].rstrip() + "…"
