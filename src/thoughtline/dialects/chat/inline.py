"""Inline thoughts: `<think>…</think>` before the answer in its text, one or several.

Some servers have no other place for them, and some clients put them there. `split` cuts a complete
text; `InlineSplitter` does the same for text that arrives in pieces. Where a text begins with a
thought, there may be others further on: `pieces` finds those too. In any other text the tags are
plain text: somebody may be explaining them.
"""

import re

OPEN, CLOSE = "<think>", "</think>"
_OPENING = re.compile(r"\s*" + OPEN)
_TAG, _LINE = re.compile(OPEN), re.compile(rf"\n[ \t]*{OPEN}")
_WHITE = re.compile(r"\s*")
_BETWEEN = re.compile(rf"\s*{CLOSE}\s*{OPEN}\s*")
_BEGINNINGS = frozenset(["<", *[chr(code) for code in range(0x3001) if chr(code).isspace()]])
"""How a text begins that has a thought in front."""


def split(text: str) -> tuple[str, str]:
    """Return (the thought with its tags and the whitespace around it, the rest of the text).

    Without a thought the first is empty. Where the tag is not closed, all of it is thought: the
    answer has not begun.
    """
    end = _end_of_thoughts(text, 0)
    return text[:end], text[end:]


def _end_of_thoughts(text: str, start: int) -> int:
    """Return where the thoughts that begin at `start` end, with the whitespace after them."""
    end = start
    while match := _OPENING.match(text, end):
        close = text.find(CLOSE, match.end())
        if close < 0:
            return len(text)
        end = close + len(CLOSE)
    return _WHITE.match(text, end).end() if end > start else start  # type: ignore[union-attr]


def plain(text: str) -> bool:
    """Whether a text certainly has no thought: most begin with a word."""
    return text[:1] not in _BEGINNINGS


def pieces(text: str, *, anywhere: bool = False) -> list[tuple[str, str]]:
    """Return the text in pairs: a thought as `split` gives it (the first may be empty), the rest.

    After other text a thought must be closed and begin its line, so that a tag that is only
    mentioned stays text. `anywhere`: each tag begins a thought.
    """
    start = _end_of_thoughts(text, 0)
    thought = text[:start]
    if not (thought or anywhere):
        return [("", text)]
    found: list[tuple[str, str]] = []
    tag = _TAG if anywhere else _LINE
    while (match := tag.search(text, start)) and text.find(CLOSE, match.end()) >= 0:
        rest = text[start : match.start()].rstrip()
        found.append((thought, rest))
        begin = start + len(rest)
        start = _end_of_thoughts(text, begin)
        thought = text[begin:start]
    return [*found, (thought, text[start:])]


def join(thought: str, rest: str) -> str:
    """Return the text that `split` cuts into these two; whitespace between is the thought's."""
    return thought + rest.lstrip() if thought else rest


def inner(inline: str) -> str:
    """Return the thought without its tags."""
    return _BETWEEN.sub("\n\n", inline.strip().removeprefix(OPEN).removesuffix(CLOSE)).strip()


class InlineSplitter:
    """Splits text that arrives in pieces into thought and answer."""

    __slots__ = ("_held", "_thinking", "_thought", "_white", "decided")

    def __init__(self) -> None:
        self.decided = False  # everything from here on is answer
        self._thinking = False  # inside of a thought
        self._thought = False  # a thought has begun: whitespace around it is its own
        self._white: list[str] = []  # leading whitespace: part of the answer if no thought follows
        self._held = ""  # what may be a tag that is not complete yet

    def feed(self, piece: str) -> tuple[str, str]:
        """Return (more of the thought, more of the answer); a few characters may be held back."""
        if self.decided:
            return "", piece
        text, at = self._held + piece, 0
        thinking: list[str] = []
        while True:
            if self._thinking:
                end = text.find(CLOSE, at)
                if end < 0:
                    end = max(at, len(text) - _overlap(text))
                    self._held = text[end:]
                    return "".join([*thinking, text[at:end]]), ""
                thinking.append(text[at:end])
                at, self._thinking = end + len(CLOSE), False
            if match := _OPENING.match(text, at):
                self._white, self._thinking, self._thought = [], True, True
                at = match.end()
                continue
            self._held = text[at:].lstrip()
            if not self._thought:
                self._white.append(text[at : len(text) - len(self._held)])
            answer = "" if OPEN.startswith(self._held) else self.finish()[1]
            return "".join(thinking), answer

    def finish(self) -> tuple[str, str]:
        """Return what was held back, at the end of the text."""
        held = "".join(self._white) + self._held
        self._white, self._held, self.decided = [], "", True
        return (held, "") if self._thinking else ("", held)


def _overlap(text: str) -> int:
    """Return how many characters at the end may be the beginning of the closing tag."""
    for size in range(min(len(CLOSE) - 1, len(text)), 0, -1):
        if CLOSE.startswith(text[-size:]):
            return size
    return 0
