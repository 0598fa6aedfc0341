"""Adapters for user interfaces: a run or a session in the form that a front end's library reads.

- `ui_stream`        a run as server-sent events, for `useChat` of the AI SDK, under any ASGI server
- `ResumableStream`  the same stream for a page that reloads while the model answers
- `history`          a whole session as UI messages, with its branches and durations

The adapters read events and deltas; they do not know the turn loop.
"""

from thoughtline.agents.ui.history import UiHistory, history
from thoughtline.agents.ui.stream import HEADERS, ResumableStream, ui_stream

__all__ = ["HEADERS", "ResumableStream", "UiHistory", "history", "ui_stream"]
