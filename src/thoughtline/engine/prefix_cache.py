"""The settled beginnings of conversations, within a limit of bytes: least recently used out first.

One is found by its bytes, which are compared and never only hashed. The bodies of one client are
kept in order, so that those with the longest common beginning are neighbours of a new one.
"""

from bisect import bisect_left, insort
from collections import OrderedDict
from operator import attrgetter

from thoughtline.dialects import limits
from thoughtline.engine.settled_prefix import Resumed, SettledPrefix

MIN_SIZE = 4 << 10
"""Bytes of a body from which it is worth it."""
_NEIGHBOURS = 3
"""Bodies on either side that are looked at: forks of a conversation lie close together."""
_BODY = attrgetter("body")

Owner = tuple[str, str]
"""Who asks, and in which dialect."""


class PrefixCache:
    """Settled beginnings by who asked; `max_bytes` of 0: none are kept."""

    def __init__(self, max_bytes: int, *, min_size: int | None = None) -> None:
        self.max_bytes = max_bytes
        self.min_size = MIN_SIZE if min_size is None else min_size
        self.size = 0  # about how many bytes of memory they take
        self._by_owner: dict[Owner, list[SettledPrefix]] = {}  # in the order of their bodies
        self._used: OrderedDict[SettledPrefix, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._used)

    def resume(self, owner: Owner, body: bytes) -> Resumed | None:
        """Return the request split after its longest settled prefix, if one is known."""
        kept = self._by_owner.get(owner)
        if kept is None or len(body) < self.min_size:
            return None
        at = bisect_left(kept, body, key=_BODY)
        near = kept[max(0, at - _NEIGHBOURS) : at + _NEIGHBOURS]
        prefix, end = None, 0
        for one in near:
            if one.end > end and body.startswith(memoryview(one.body)[: one.end]):
                prefix, end = one, one.end
        if prefix is None:
            return None
        text = body[: prefix.start] + body[prefix.end :]
        if text[prefix.start : prefix.start + 1] != b"{" or _too_complex(prefix, text, len(body)):
            return None
        self._used.move_to_end(prefix)
        return Resumed(prefix, body, text)

    def put(self, prefix: SettledPrefix, *, before: SettledPrefix | None = None) -> None:
        """Keep a beginning, in the place of the shorter one from which its request went on."""
        if prefix is before:
            return
        if before is not None:
            self.remove(before)
        size = prefix.size
        if size > self.max_bytes:
            return
        insort(self._by_owner.setdefault(prefix.owner, []), prefix, key=_BODY)
        self._used[prefix] = None
        self.size += size
        while self.size > self.max_bytes:
            self.remove(next(iter(self._used)))

    def remove(self, prefix: SettledPrefix) -> None:
        """Drop a prefix; harmless if it is gone."""
        if prefix not in self._used:
            return
        del self._used[prefix]
        self.size -= prefix.size
        kept = self._by_owner[prefix.owner]
        at = bisect_left(kept, prefix.body, key=_BODY)
        while kept[at] is not prefix:  # two may have the same body
            at += 1
        del kept[at]
        if not kept:
            del self._by_owner[prefix.owner]

    def clear(self) -> None:
        """Drop all: something that they hold was deleted."""
        self._by_owner.clear()
        self._used.clear()
        self.size = 0


def _too_complex(prefix: SettledPrefix, text: bytes, size: int) -> bool:
    """Whether the whole body may be more than is read at all."""
    marks = limits.marks(text)
    return limits.may_exceed(size, prefix.cost + marks.cost, prefix.parts + marks.parts)
