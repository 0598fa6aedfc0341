"""Finds the gap in a run of prefix-bound blocks before which none may be put back. Pure.

Such a block is valid only behind the blocks that its own request went out with: one that was left
out then would invalidate it now, and so would the lack of one that was there. Which were left out
is in the index entries (`skipped`). This is about blocks that we would put back. Those that the
client itself sends stay: the provider judges them as it would without us, and drops what the model
cannot read.
"""

from collections.abc import Mapping, Sequence

from thoughtline.log.decisions import PREFIX_CHANGED
from thoughtline.log.index import IndexEntry
from thoughtline.replay.candidates import TurnMatch
from thoughtline.replay.guard import Target, sendable
from thoughtline.replay.match import RequestPath

Maker = tuple[str, str, str, str]
"""Provider, endpoint, account, model."""
_STAYS = frozenset({"foreign model", PREFIX_CHANGED})
"""Why a block is not put back, and yet stays where the client itself sends it."""


def stays(reasons: Sequence[str]) -> bool:
    """Whether a block that the client itself sends may stay, whatever keeps us from adding it."""
    return _STAYS.issuperset(reasons)


def last_gap(
    path: RequestPath,
    matches: Sequence[TurnMatch | None],
    target: Target,
    skipped_before: Mapping[str, str],
) -> int:
    """Return the last output before which no block may be put back; -1: there is none."""
    without_since = _without_since(matches)
    later: dict[Maker, int] = {}  # the nearest later block of each model that goes out

    def breaks(key: str) -> bool:
        """Whether a later block was made while the block of this output was there."""
        return any(
            without_since.get(maker, {}).get(key, made + 1) > made for maker, made in later.items()
        )

    for index in range(len(path.turns) - 1, -1, -1):
        match, turn, keys = matches[index], path.turns[index], path.keys[index]
        if match is None or keys is None:
            continue
        entry, own, key = match.entry, bool(turn.thoughts), keys.full.hex()
        if entry is None:
            if own or breaks(key):  # nobody knows what the client's own was made behind
                return index
        elif entry.thoughts or own:
            prefix = path.prefixes[index] if index < len(path.prefixes) else ""
            reasons = sendable(turn, entry, target, prefix)[1]
            goes = stays(reasons) if own else not reasons and key not in skipped_before
            if goes:
                later[_maker(entry)] = index
            elif breaks(key):
                return index
    return -1


def _without_since(matches: Sequence[TurnMatch | None]) -> dict[Maker, dict[str, int]]:
    """Return per model which outputs its requests went out without, and since which turn."""
    since: dict[Maker, dict[str, int]] = {}
    for index, match in enumerate(matches):
        if match is not None and match.entry is not None and match.entry.skipped:
            known = since.setdefault(_maker(match.entry), {})
            for key in match.entry.skipped:
                known.setdefault(key, index)
    return since


def _maker(entry: IndexEntry) -> Maker:
    origin = entry.origin
    return origin.provider, origin.endpoint, origin.account, origin.asked or origin.model
