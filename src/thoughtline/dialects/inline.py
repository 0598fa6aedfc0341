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
    rest = text[end + len(CLOSE) :].lstrip()
    return text[: len(text) - len(rest)], rest


def join(thought: str, rest: str) -> str:
    """The text that `split` cuts into these two; whitespace between them is the thought's."""
    return thought + rest.lstrip() if thought else rest


def inner(inline: str) -> str:
    """The thought without its tags."""
    return inline.strip().removeprefix(OPEN).removesuffix(CLOSE).strip()


class Inline:
    """Tells thought from answer in text that arrives in pieces."""

    __slots__ = ("_held", "_state", "_white", "decided")

    def __init__(self) -> None:
        self.decided = False  # everything from here on is answer
        self._white: list[str] = []  # whitespace in front: told only if no thought follows
        self._held = ""  # what may be a tag that is not complete yet
        self._state = "start"  # start → (think → gap →) text

    def feed(self, piece: str) -> tuple[str, str]:
        """(more of the thought, more of the answer); a few characters may be held back."""
        if self._state == "start":
            return self._begin(piece)
        if self._state == "think":
            return self._think(piece)
        return "", self._answer(piece)

    def finish(self) -> tuple[str, str]:
        """What was held back at the end of the text."""
        held = "".join(self._white) + self._held
        thinking = self._state == "think"
        self._white, self._held, self._state = [], "", "text"
        self.decided = True
        return (held, "") if thinking else ("", held)

    def _begin(self, piece: str) -> tuple[str, str]:
        if not self._held:
            lead = piece.lstrip()
            self._white.append(piece[: len(piece) - len(lead)])
            piece = lead
        self._held += piece
        if self._held.startswith(OPEN):
            rest = self._held[len(OPEN) :]
            self._white, self._held, self._state = [], "", "think"
            return self._think(rest)
        return ("", "") if OPEN.startswith(self._held) else self.finish()

    def _think(self, piece: str) -> tuple[str, str]:
        text = self._held + piece
        end = text.find(CLOSE)
        if end < 0:
            cut = len(text) - _overlap(text)
            self._held = text[cut:]
            return text[:cut], ""
        self._held, self._state = "", "gap"
        return text[:end], self._answer(text[end + len(CLOSE) :])

    def _answer(self, piece: str) -> str:
        if self._state == "gap":
            piece = piece.lstrip()
            if piece:
                self._state, self.decided = "text", True
        return piece


def _overlap(text: str) -> int:
    """How many characters at the end could be the beginning of the closing tag."""
    for size in range(min(len(CLOSE) - 1, len(text)), 0, -1):
        if CLOSE.startswith(text[-size:]):
            return size
    return 0
