"""Rulings that repeat: a request rules on every output of its history, mostly as the last one did.

Written out with every turn, a session would grow with the square of its length. So the log keeps
only what is new: `TurnStarted.repeated` says how many of the first rulings are those of the turn
before. That they are is proven by a mark, which the memory of the turn before carries.
"""

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from thoughtline.events import TurnStarted
from thoughtline.parts import Origin
from thoughtline.replay import Action, Restoration, Ruling

_encode = msgspec.json.Encoder().encode


def mark(rulings: Sequence[Ruling]) -> str:
    """How many rulings are settled, and a digest of them; nothing for none.

    The last one is not: nothing follows its output yet, and what follows is evidence.
    """
    return _marked(rulings[:-1])


def _marked(rulings: Sequence[Ruling]) -> str:
    if not rulings:
        return ""
    return f"{len(rulings)}.{blake2b(_encode(rulings), digest_size=12).hexdigest()}"


def marked(rulings: Sequence[Ruling], mark_before: str) -> int:
    """How many of the first rulings are the ones that were marked: all of those, or none."""
    count = int(mark_before.partition(".")[0] or 0)
    same = 0 < count <= len(rulings) and _marked(rulings[:count]) == mark_before
    return count if same else 0


def alike(rulings: Sequence[Ruling], before: Sequence[Any]) -> int:
    """How many of the first rulings are those of the turn before, as its log has them."""
    count = 0
    for ruling, known in zip(rulings, before, strict=False):
        if msgspec.to_builtins(ruling) != known:
            break
        count += 1
    return count


def started(target: Origin, restoration: Restoration, repeated: int) -> TurnStarted:
    """The start of a turn, of whose rulings so many are those of the turn before."""
    rulings = restoration.rulings
    if not repeated:
        return TurnStarted(target=target, replay=rulings)
    counted = Counter([ruling.action for ruling in rulings])
    tally = {action.value: counted[action] for action in Action if action in counted}
    if missed := restoration.missed:
        tally["missed"] = missed
    return TurnStarted(target=target, replay=rulings[repeated:], repeated=repeated, tally=tally)
