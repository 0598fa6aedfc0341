"""The credential of a provider: a text, or a function that gives a fresh one for each request."""

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from thoughtline.errors import MissingKey

Key: TypeAlias = str | Callable[[], str | Awaitable[str]]
"""A credential, or a function (plain or async) that gives the one to use now."""


async def current_key(key: Key, provider: str) -> str:
    """Return the credential for the next request. Raises `MissingKey` when there is none."""
    if isinstance(key, str):
        return key
    whose = f"the key of provider {provider!r}"
    try:
        given = key()
        found = await given if inspect.isawaitable(given) else given
    except Exception as error:
        raise MissingKey(
            f"{whose} could not be obtained: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(found, str):
        raise MissingKey(
            f"{whose} is a {type(found).__name__}; expected text from the function that was given"
        )
    found = found.strip()
    if not found:
        raise MissingKey(f"{whose} is empty; the function that was given has to return one")
    if not (found.isascii() and found.isprintable()):
        raise MissingKey(f"{whose} has characters that no header may hold")
    return found
