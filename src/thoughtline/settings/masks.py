"""What must not be seen: secrets, passwords inside URLs, and what would upset a terminal.

A `Secret` shows itself as `***` wherever it is printed, formatted, logged or put into an error; the
one way to its text is `reveal()`, at the place where it is used. It does not serialise, so that it
cannot slip into a JSON answer either.
"""

import hmac
import re

MASK = "***"
_PASSWORD = re.compile(r"(?<=://)[^/?#\s]*@")
_PARAMETER = re.compile(r"(?i)([?&][^=&#\s]*(?:key|token|secret|passw)[^=&#\s]*=)[^&#\s]*")


class Secret:
    """A text that is used and never shown."""

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself; for the one who needs it, never for a log line."""
        return self._text

    def matches(self, other: str) -> bool:
        """Whether this is the text; takes as long for a near miss as for a far one."""
        ours = self._text.encode("utf-8", "surrogatepass")
        return hmac.compare_digest(ours, other.encode("utf-8", "surrogatepass"))

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return self.matches(other._text) if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __str__(self) -> str:
        return MASK if self._text else ""

    def __repr__(self) -> str:
        return f"Secret({str(self)!r})"

    def __reduce__(self) -> tuple[type["Secret"], tuple[str]]:
        return Secret, (self._text,)  # workers get their settings by pickle


def mask(text: str) -> str:
    """The text with what looks like a credential in a URL left out."""
    return _PARAMETER.sub(rf"\g<1>{MASK}", _PASSWORD.sub(f"{MASK}@", text))


def printable(text: str) -> str:
    """The text on one line, with characters that cannot be shown spelled out."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
