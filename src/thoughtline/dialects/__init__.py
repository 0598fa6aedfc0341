"""Pure, two-way codecs, one per API shape; see `base` for what each of them can do."""

from thoughtline.dialects.base import Dialect
from thoughtline.dialects.chat import Chat

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (Chat(),)}
"""Every dialect by its name."""
