"""The path behind a remembered turn, read from the log.

A client may name a response instead of repeating the conversation before it. Who has to repeat it
in its place finds it here: the session's events, folded, and those of the sessions it was forked
from. A path with a hole in it, or one that the client had edited since, is none: half a history is
worse than the provider's own answer.
"""

from collections.abc import Iterable

from thoughtline import keys as k
from thoughtline.errors import ThoughtlineError
from thoughtline.memories import Memory
from thoughtline.parts import Blob, Part
from thoughtline.sessions import Session
from thoughtline.stores.base import Store
from thoughtline.turns import Turn

ASIDE = "aside"
"""Noted with a turn: before it, something was said that the log does not hold."""


async def path_to(store: Store, memory: Memory) -> tuple[Turn, ...]:
    """The turns up to and including this one; nothing where the log does not hold all of it."""
    if ASIDE in memory.skipped:
        return ()
    folded: dict[str, Session] = {}
    wanted = memory.session
    try:
        while wanted and wanted not in folded:
            session = folded[wanted] = Session(wanted).extend(await store.read(wanted))
            wanted = session.origin.session if session.origin else ""
        path = folded[memory.session].path(memory.turn, folded.__getitem__)
    except (ThoughtlineError, KeyError):
        return ()
    names, _ = k.trail(path)
    last = names[-1] if names else None
    same = last is not None and last.chain in memory.names
    said = (part for turn in path for part in (*turn.input, *turn.output))
    return tuple(path) if same and whole(said) else ()


def whole(parts: Iterable[Part]) -> bool:
    """Whether all that was said can be said again; of a picture only its digest is kept."""
    return all(part.raw for part in parts if isinstance(part, Blob))
