"""The inspector: what is in the log, and what happens right now, for people who look.

JSON under `/api` (sessions, their turns, a live feed, continuity) and a page at `/inspect` that
reads it. A reader like any other: nothing is written for its sake, and while nobody looks it
costs nothing. Only for the administrator (see `gateway.pages`).
"""

from pathlib import Path

from thoughtline.gateway.build import More, Rooms
from thoughtline.inspector import openapi
from thoughtline.inspector.api import Api
from thoughtline.inspector.live import Live
from thoughtline.inspector.shapes import ANSWERS
from thoughtline.inspector.static import Static

__all__ = ["inspector"]


def inspector(rooms: Rooms, *, meeting: Path | None = None) -> More:
    """The inspector's pages over these rooms: an argument for `gateway.build`.

    `meeting` is a folder in which the workers of one gateway find one another.
    """
    live = Live(rooms.proxy.exchanges, meeting)
    api = Api(rooms, live)
    return More(
        routes=[*api.routes(), *Static().routes()],
        paths=openapi.paths(),
        answers=ANSWERS,
        beside=live.beside,
        leave=[api.hub.close],
    )
