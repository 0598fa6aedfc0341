"""Parameters of our own pages: each once, none that does not exist, and of the right kind.

A misspelt filter is refused, because without it the page would mean everything.
"""

import re
from collections.abc import Iterable

from starlette.requests import Request

from thoughtline.gateway.pages import Mistaken

ANONYMOUS = "anonymous"
"""The tenant of clients that show no credential."""

_WHOLE = re.compile(r"-?[0-9]{1,15}")


def asked_for(request: Request, known: Iterable[str]) -> dict[str, str]:
    """The query's parameters."""
    names, asked = list(known), dict[str, str]()
    for name, value in request.query_params.multi_items():
        if name not in names:
            expected = f"expected {', '.join(names)}" if names else "none is expected here"
            raise Mistaken(f"there is no parameter {name!r}; {expected}", "unknown_parameter")
        if name in asked:
            raise Mistaken(f"`{name}` is given twice; expected one")
        if not value:
            raise Mistaken(f"`{name}` is empty; give it a value, or leave it out")
        asked[name] = value
    return asked


def whole(asked: dict[str, str], name: str, usual: int) -> int:
    """A whole number."""
    value = asked.get(name, str(usual))
    if not _WHOLE.fullmatch(value):
        raise Mistaken(f"`{name}` is {value[:40]!r}; expected a whole number")
    return int(value)


def tenant_named(name: str) -> str:
    """The tenant that people mean by a name."""
    return "" if name == ANONYMOUS else name
