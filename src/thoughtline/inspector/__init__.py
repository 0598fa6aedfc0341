"""The inspector shows people what is in the log, and what happens right now.

It serves JSON under `/api` (sessions, their turns, a live feed, continuity) and the page at
`/inspect` that reads it. It only reads: nothing is written for its sake, and while nobody looks it
costs nothing. Only for the administrator (see `gateway.pages`).
"""

from pathlib import Path

from thoughtline.gateway.build import Components, ExtraPages
from thoughtline.gateway.failed_requests import FailedLog
from thoughtline.gateway.pages.page import pages_of
from thoughtline.inspector.api import InspectorApi
from thoughtline.inspector.failed import FailedApi
from thoughtline.inspector.requests import RequestsApi
from thoughtline.inspector.running_turns import RunningTurns
from thoughtline.inspector.static import ROUTES
from thoughtline.inspector.usage import UsageApi

__all__ = ["inspector"]


def inspector(components: Components, *, socket_folder: Path | None = None) -> ExtraPages:
    """The inspector's pages over these components: an argument for `gateway.build`.

    `socket_folder` is a folder in which the workers of one gateway find each other's sockets.
    """
    running = RunningTurns(components.proxy.engine.recordings, socket_folder, components.store)
    api = InspectorApi(components, running)
    failed = FailedLog(components.store)
    return ExtraPages(
        pages=[
            *pages_of(api),
            *pages_of(RequestsApi(components, api.reader, api.live_feed, failed)),
            *pages_of(FailedApi(components.store, components.clock)),
            *pages_of(UsageApi(components, api.live_feed, failed)),
        ],
        files=ROUTES,
        background=running.tasks,
        on_shutdown=[api.live_feed.close],
    )
