"""Half an emoji: UTF-16 surrogates that JSON can escape and UTF-8 cannot carry.

Some providers cut their text between the two halves of a character and send each as an escape in a
chunk of its own. Side by side they are a character again (`join`); a half that stays alone
is shown as U+FFFD (`mend`).
"""

from typing import Any


def clean(text: str) -> bool:
    """Whether there is no half in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def join(value: Any) -> Any:
    """The value with all halves that have met made whole, in every string of it."""
    return _each(value, "surrogatepass")


def mend(value: Any) -> Any:
    """The same, and halves that are alone replaced by U+FFFD."""
    if type(value) is str and value.isascii():
        return value  # the usual case
    return _each(value, "replace")


def _each(value: Any, lone: str) -> Any:
    if isinstance(value, str):
        if clean(value):
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", lone)
    if isinstance(value, list):
        return [_each(element, lone) for element in value]
    if isinstance(value, dict):
        return {_each(key, lone): _each(inner, lone) for key, inner in value.items()}
    return value
