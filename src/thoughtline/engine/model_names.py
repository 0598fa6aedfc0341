"""Which model a client means: names that it knows, mapped to models of other providers.

A row maps a pattern of names to `upstream/model`. The name itself comes first, then the name
without the date at its end, then the longest pattern. Programs ask for more models than the one
that a person chose (titles, summaries, side questions): a name of a family that is mapped goes to
the family's first row, so that it reaches no other provider by accident.
"""

import re
from collections.abc import Iterable

from msgspec import Struct

from thoughtline.providers.catalogue import matches_model

_DATE = re.compile(r"-(?:20\d{6}|20\d\d-\d\d-\d\d)$")
_SUFFIX = re.compile(r"\[[^\]]*\]$")
"""What some programs add to a name: `[1m]` asks for a long context."""


class ModelRow(Struct, frozen=True, kw_only=True):
    """One name, or a pattern of names, and what it stands for."""

    pattern: str
    upstream: str
    model: str
    effort: str = ""  # in place of what the client asks for
    dialect: str = ""  # to speak with the upstream, where it speaks several


class ModelNames:
    """All rows, in the order of the settings."""

    def __init__(self, rows: Iterable[ModelRow] = ()) -> None:
        self.rows = tuple(rows)

    def find(self, name: str, upstream: str = "") -> ModelRow | None:
        """The row for a name; `upstream`: only rows that lead there."""
        rows = [row for row in self.rows if not upstream or row.upstream == upstream]
        if not rows or not name:
            return None
        name = _SUFFIX.sub("", name)
        for asked in (name, _DATE.sub("", name)):
            for row in rows:
                if row.pattern.lower() == asked.lower():
                    return row
        matching = [row for row in rows if matches_model(row.pattern, name)]
        if matching:
            return max(matching, key=lambda row: len(row.pattern))
        family = _family(name)
        return next((row for row in rows if family and _family(row.pattern) == family), None)


def _family(name: str) -> str:
    """The first word of a name, where it is one."""
    return re.match(r"[a-z]*", name.lower())[0]  # type: ignore[index]
