"""The path behind a remembered turn, read from the log.

A client may name a response instead of repeating the conversation before it. Who has to repeat it
in its place finds it here: the session's events, folded, and those of the sessions it was forked
from. A path with a hole in it is none: half a history is worse than the provider's own answer.
"""

from thoughtline.errors import ThoughtlineError
from thoughtline.memories import Memory
from thoughtline.parts import Blob
from thoughtline.sessions import Session
from thoughtline.stores.base import Store
from thoughtline.turns import Turn


async def path_to(store: Store, memory: Memory) -> tuple[Turn, ...]:
    """The turns up to and including this one; nothing where the log does not hold all of them."""
    folded: dict[str, Session] = {}
    wanted = memory.session
    try:
        while wanted and wanted not in folded:
            session = folded[wanted] = Session(wanted).extend(await store.read(wanted))
            wanted = session.origin.session if session.origin else ""
        path = folded[memory.session].path(memory.turn, folded.__getitem__)
    except (ThoughtlineError, KeyError):
        return ()
    return tuple(path) if all(_whole(turn) for turn in path) else ()


def _whole(turn: Turn) -> bool:
    """Whether all that was said can be said again; of a picture only its digest is kept."""
    return all(part.raw for part in (*turn.input, *turn.output) if isinstance(part, Blob))
