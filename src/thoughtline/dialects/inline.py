"""Thoughts inside the text: `<think>…</think>` in front of the answer.

Some servers have no other place for them, and some clients fold them in there. `split` cuts a
whole text; `Inline` does the same for text that arrives in pieces.
"""

OPEN, CLOSE = "<think>", "</think>"


def split(text: str) -> tuple[str, str]:
    """(the thought with its tags and the whitespace around it, the rest); no thought: ("", text).

    A thought that is not closed is all thought: the answer has not begun.
    """
    start = len(text) - len(text.lstrip())
    if not text.startswith(OPEN, start):
        return "", text
    end = text.find(CLOSE, start)
    if end < 0:
        return text, ""
    end += len(CLOSE)
    rest = text[end:]
    end += len(rest) - len(rest.lstrip())
    return text[:end], text[end:]


def inner(inline: str) -> str:
    """The thought without its tags."""
    return inline.strip().removeprefix(OPEN).removesuffix(CLOSE).strip()


class Inline:
    """Tells thought from answer in text that arrives in pieces."""

    __slots__ = ("_held", "_state")

    def __init__(self) -> None:
        self._held = ""
        self._state = "start"  # start → (think → gap →) text

    def feed(self, piece: str) -> tuple[str, str]:
        """(more of the thought, more of the answer); a few characters may be held back."""
        if self._state == "text":
            return "", piece
        self._held += piece
        thinking = ""
        if self._state == "start":
            lead = self._held.lstrip()
            if not lead or (len(lead) < len(OPEN) and OPEN.startswith(lead)):
                return "", ""
            if not lead.startswith(OPEN):
                return "", self._release()
            self._state, self._held = "think", lead[len(OPEN) :]
        if self._state == "think":
            end = self._held.find(CLOSE)
            if end < 0:
                keep = _overlap(self._held)
                thinking = self._held[: len(self._held) - keep]
                self._held = self._held[len(self._held) - keep :]
                return thinking, ""
            thinking, self._held = self._held[:end], self._held[end + len(CLOSE) :]
            self._state = "gap"
        rest = self._held.lstrip()
        if not rest:
            return thinking, ""
        self._held = rest
        return thinking, self._release()

    def _release(self) -> str:
        held, self._held, self._state = self._held, "", "text"
        return held


def _overlap(text: str) -> int:
    """How many characters at the end could be the beginning of the closing tag."""
    for size in range(min(len(CLOSE) - 1, len(text)), 0, -1):
        if CLOSE.startswith(text[-size:]):
            return size
    return 0
