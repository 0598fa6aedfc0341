"""The inspector: what is in the log, and what happens right now, for people who look.

JSON under `/api` (sessions, their turns, a live feed, continuity) and a page at `/inspect` that
reads it. A reader like any other: nothing is written for its sake, and while nobody looks it
costs nothing. Only for the administrator (see `gateway.pages`).
"""

from thoughtline.gateway.build import More, Rooms
from thoughtline.inspector import openapi
from thoughtline.inspector.api import Api
from thoughtline.inspector.shapes import ANSWERS
from thoughtline.inspector.static import Static

__all__ = ["inspector"]


def inspector(rooms: Rooms) -> More:
    """The inspector's pages over these rooms: an argument for `gateway.build`."""
    api = Api(rooms)
    return More(
        routes=[*api.routes(), *Static().routes()],
        paths=openapi.paths(),
        answers=ANSWERS,
        leave=[api.hub.close],
    )
