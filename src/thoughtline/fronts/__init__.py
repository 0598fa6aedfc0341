"""Front ends: a run of the library as other people's components want to read it.

- `chunks`     turn events in, chunks of the AI SDK's UI message stream out; pure
- `parts`      which part of the message is open, and under which name
- `ui_stream`  the same over server-sent events, for any ASGI server
- `kept`       a stream that outlives its readers, so that a reload reads on
- `history`    a whole session as UI messages, with its branches and durations

A front reads events and deltas, whoever made them; it knows nothing of the turn loop.
"""

from thoughtline.fronts.history import History, history
from thoughtline.fronts.kept import Kept
from thoughtline.fronts.ui_stream import HEADERS, ui_stream

__all__ = ["HEADERS", "History", "Kept", "history", "ui_stream"]
