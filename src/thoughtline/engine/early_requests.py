"""Requests that come before the answer they go on from is written.

Some clients go on as soon as the model has said why it stopped, before the stream ends. The request
then waits for the turn. Where other turns look like it, and are written, it waits all the same if
what the client brings points to the one that is not; and if that takes too long, none is taken.
"""

from collections.abc import Iterable, Sequence

from thoughtline.engine.decision import Found
from thoughtline.engine.recording import Recording
from thoughtline.log.index import IndexEntry, index_entry
from thoughtline.log.keys import TurnKeys
from thoughtline.replay.match import RequestPath
from thoughtline.replay.proof import VETOES, Echo


def unwritten(
    recordings: Iterable[Recording], tenant: str, path: RequestPath, found: Found
) -> Sequence[Recording]:
    """Return the recordings of answers that may be the last output, and are not written yet.

    The answers are to the same request, compacted since or not.
    """
    running = [one for one in recordings if one.tenant == tenant]
    place = _last_output(path) if running else None
    keys = path.keys[place] if place is not None else None
    if keys is None or place is None:
        return ()
    known = _look_alikes(keys, found)
    if known:  # the usual case: only answers that came as late in their conversation are meant
        running = [one for one in running if _turns(one.capture.path) == path.settled + place + 1]
    running = [one for one in running if one.capture.path.rolling_key.leads_to(keys)]
    if not known or not running:
        return running
    echo = path.echo(place)
    return [one for one in running if _points_to(echo, one, known)]


def without_look_alikes(path: RequestPath, found: Found) -> Found:
    """Return what was found without the turns that look like the last output, which is none."""
    place = _last_output(path)
    keys = path.keys[place] if place is not None else None
    if keys is None:
        return found
    out = {entry.turn for entry in _look_alikes(keys, found)}
    return {key: [e for e in filed if e.turn not in out] for key, filed in found.items()}


def _last_output(path: RequestPath) -> int | None:
    """The position of the last output of a path."""
    for place in range(len(path.keys) - 1, -1, -1):
        if path.keys[place] is not None:
            return place
    return None


def _look_alikes(keys: TurnKeys, found: Found) -> Sequence[IndexEntry]:
    """The known turns that look like an output, with what is before it."""
    return (*found.get(keys.full, ()), *found.get(keys.local, ()))


def _turns(path: RequestPath) -> int:
    return path.settled + len(path.turns)


def _points_to(echo: Echo, recording: Recording, known: Sequence[IndexEntry]) -> bool:
    """Whether what the client brings points to this answer, and to none of the known turns."""
    path, turn = recording.capture.path, recording.snapshot()
    entry = index_entry(turn, path.rolling_key.keys_for(turn.output), hints=path.hints)
    return any(
        echo.points_to(evidence, entry) and not any(echo.points_to(evidence, one) for one in known)
        for evidence in VETOES
    )
