"""Which model a client means: names that it knows, mapped to models of other providers.

A row maps a name to `upstream/model`: exactly the one that is written, in any case, or with a `*`
in it a whole family. The name itself comes first, then the longest pattern.
"""

import re
from collections.abc import Iterable

from msgspec import Struct

from thoughtline.providers.catalogue import matches_model

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
        name = _SUFFIX.sub("", name)
        if not name:
            return None
        rows = [row for row in self.rows if not upstream or row.upstream == upstream]
        for row in rows:
            if row.pattern.lower() == name.lower():
                return row
        matching = [row for row in rows if matches_model(row.pattern, name)]
        return max(matching, key=lambda row: len(row.pattern), default=None)
