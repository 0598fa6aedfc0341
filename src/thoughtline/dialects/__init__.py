"""Pure, two-way codecs, one per API shape; see `base` for what each of them can do."""

from collections.abc import Iterable

from thoughtline.dialects.base import Dialect
from thoughtline.dialects.chat import ChatCompletions
from thoughtline.dialects.gemini import Gemini
from thoughtline.dialects.messages import Messages
from thoughtline.dialects.responses import Responses

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (ChatCompletions(), Responses(), Messages(), Gemini())
}
"""Every dialect by its name."""

WEBSOCKET_DIALECT = next(dialect for dialect in DIALECTS.values() if dialect.websockets)
"""The dialect that can be spoken over a WebSocket."""

DEFAULT = DIALECTS["chat"]
"""Spoken where a path or a provider belongs to no dialect."""


def dialect_by_headers(names: Iterable[str]) -> Dialect | None:
    """Return the dialect whose own headers a request has; None: most dialects have none."""
    sent = frozenset(names)
    for dialect in DIALECTS.values():
        if any(name in sent for name, _ in dialect.request_headers):
            return dialect
    return None
