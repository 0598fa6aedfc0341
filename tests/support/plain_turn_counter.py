"""Counts what became of thoughts in the plainest way: what the fast counting is held against."""

from collections import Counter

from thoughtline.errors import Unreadable
from thoughtline.log.events import TurnEnded, TurnStarted, decode
from thoughtline.log.parts import Origin
from thoughtline.log.turn_counts import KEPT, ended_counts, started_counts
from thoughtline.log.usage import usage_of


def _body(event):
    try:
        return decode(event.type, event.version, event.data)
    except Unreadable:
        return None


def plain_counts(events):
    """Count events of a whole log, one after the other, for each length of interval by itself."""
    counts, started = {}, {}
    for event in events:
        body = _body(event)
        if isinstance(body, TurnStarted):
            target = started[event.session, event.id] = body.target or Origin()
            more = {"turns": 1, **started_counts(body, event.parent)}
        elif isinstance(body, TurnEnded):
            place = (event.session, event.parent)
            target = started.pop(place, None) or Origin(model=body.model)
            usage = usage_of(body.usage, version=event.version, dialect=target.dialect)
            more = ended_counts(body, usage, target.endpoint)
        else:
            continue
        for seconds in KEPT if more else ():
            at = int(event.at // seconds) * seconds
            key = (seconds, at, target.provider, target.model)
            for name, count in more.items():
                counts.setdefault(key, Counter())[name] += count
    return {key: dict(of_key) for key, of_key in counts.items()}
