"""The keys by which a turn is found again when a client echoes it in altered form.

A key is a hash of what every client sends back, in one form (`canonical.visible`). A `RollingKey`
hashes it along a path once, in linear time, and gives each turn three keys: `full` (the turn and
everything before it), `local` (the turn and the output before it) and `content` (its output only).
What a client may echo by itself has a key of its own: `reference_key` for the id of an item or a
response, `seal_key` for an encrypted or signed value.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from hashlib import blake2b
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.log.canonical import (
    canonical_json,
    encoded,
    joined,
    trimmed,
    visible,
    visible_call,
    visible_calls,
    visible_part,
    visible_parts,
)
from thoughtline.log.parts import Call, Part, Result, Text, Thought
from thoughtline.log.turns import Turn

KEY_SIZE = 16
"""Bytes of a key."""
SHARED_BYTES = 4
"""The first bytes that all three keys of a turn have in common, so that an index on keys keeps them
on the same page."""


class TurnKeys(Struct, frozen=True, gc=False):
    """The three keys of a turn, strongest first."""

    full: bytes  # this turn and everything before it
    local: bytes  # this turn and the output before it
    content: bytes  # the output of this turn
    input: bytes = b""  # hash of its input, which is no key by itself
    trimmed: tuple[bytes, ...] = ()  # all three once more, where each of several texts is trimmed


class _ParallelCalls:
    """The calls of an output that has several, for the order of their results."""

    __slots__ = ("calls", "visible")

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = calls
        self.visible = [visible_call(call) for call in calls]

    def ordered(self, parts: Sequence[Part]) -> Sequence[Part]:
        """Return an input with the results of these calls in the canonical order of the calls."""
        results = [part for part in parts if type(part) is Result]
        pairs = _paired(self.calls, results) if len(results) > 1 else []
        if not pairs:
            return parts
        visible = self.visible
        if len(set(visible)) == len(visible):
            pairs.sort(key=lambda pair: visible[pair[0]])
        else:  # the same call twice: which result is whose does not count
            pairs.sort(key=lambda pair: (visible[pair[0]], trimmed(pair[1].content)))
        return [*[one for _, one in pairs], *[part for part in parts if type(part) is not Result]]


def _single(parts: Sequence[Part]) -> Part | None:
    """Return the only part of an output, beside a thought in front: the usual case; else None."""
    count = len(parts)
    if count == 1 or (count == 2 and type(parts[0]) is Thought):
        return parts[-1]
    return None


def _parallel_calls(parts: Sequence[Part]) -> _ParallelCalls | None:
    calls = [part for part in parts if type(part) is Call]
    return _ParallelCalls(calls) if len(calls) > 1 else None


def _paired(calls: Sequence[Call], results: Sequence[Result]) -> list[tuple[int, Result]]:
    """Pair results with places of calls: by ids that are clear, else by position; or not at all."""
    by_id = {call.id: at for at, call in enumerate(calls) if call.id}
    if len(by_id) == len(calls) and all(one.call in by_id for one in results):
        return [(by_id[one.call], one) for one in results]
    count = len(calls)
    times, rest = divmod(len(results), count)
    if rest:
        return []
    contents = [trimmed(one.content) for one in results]
    if times > 1 and contents != contents[:count] * times:  # some clients repeat them on resume
        results = results[::times]
        if contents != [text for text in contents[::times] for _ in range(times)]:
            return []
    return list(enumerate(results[:count]))


def _trimmed_texts(parts: Sequence[Part]) -> str | None:
    """Return an output's texts, each trimmed; None where that makes no difference to its keys.

    Some clients trim every block of text, and two blocks then lack what stood between them.
    """
    texts: list[str] = []
    for part in parts:
        kind = type(part)
        if kind is Text:
            texts.append(part.text)  # type: ignore[union-attr]
        elif kind is not Thought:
            return None
    if len(texts) < 2:
        return None
    cut = "".join(map(trimmed, texts))
    return cut if cut != trimmed("".join(texts)) else None


# Copying a hash object takes half the time of making one.
_plain_hash = blake2b(digest_size=KEY_SIZE).copy
_full_hash = blake2b(b"chain", digest_size=KEY_SIZE).copy
_local_hash = blake2b(b"near", digest_size=KEY_SIZE).copy


def _hash(data: bytes, new: Callable[[], blake2b] = _plain_hash) -> bytes:
    state = new()
    state.update(data)
    return state.digest()


_EMPTY = _hash(visible(()))
_START = bytes(KEY_SIZE)


class RollingKey:
    """Computes the keys of the turns along a path, each in time proportional to that turn alone."""

    __slots__ = ("_full", "_input", "_output", "_parallel")

    def __init__(self) -> None:
        self._full = _START  # full key up to and including the last output
        self._output = _START  # content key of the last output
        self._input = _EMPTY  # hash of the input since then
        self._parallel: _ParallelCalls | None = None  # in the last output

    @classmethod
    def behind(cls, output: Sequence[Part], keys: TurnKeys) -> "RollingKey":
        """Return the rolling key behind a turn with this output and these keys."""
        made = cls()
        made._full, made._output = keys.full, keys.content
        made._parallel = None if _single(output) is not None else _parallel_calls(output)
        return made

    def __copy__(self) -> "RollingKey":
        twin = RollingKey()
        twin._full, twin._output, twin._input = self._full, self._output, self._input
        twin._parallel = self._parallel
        return twin

    def add_input(self, parts: Sequence[Part]) -> None:
        """Set the input of the next turn."""
        if self._parallel is not None:
            parts = self._parallel.ordered(parts)
        state = _plain_hash()
        state.update(visible(parts, is_input=True))
        self._input = state.digest()

    def keys_for(self, parts: Sequence[Part]) -> TurnKeys:
        """Return the keys of the next turn if this is its output, and leave the state as it is."""
        part = _single(parts)
        if part is not None:
            return self._keys(visible_part(part, is_input=False))
        return self._keys_of_many(parts, _parallel_calls(parts))

    def _keys(self, shown: bytes) -> TurnKeys:
        """Return the keys of the next turn if this is what is visible of its output."""
        state = _plain_hash()
        state.update(shown)
        content = state.digest()
        shared = content[:SHARED_BYTES]
        here = self._input + content
        full, local = _full_hash(), _local_hash()
        full.update(self._full + here)
        local.update(self._output + here)
        return TurnKeys(
            shared + full.digest()[SHARED_BYTES:],
            shared + local.digest()[SHARED_BYTES:],
            content,
            self._input,
        )

    def _keys_of_many(self, parts: Sequence[Part], parallel: _ParallelCalls | None) -> TurnKeys:
        if parallel is not None:
            return self._keys(visible_calls(sorted(parallel.visible)))
        keys = self._keys(visible_parts(parts, is_input=False))
        texts = _trimmed_texts(parts)
        if texts is None:
            return keys
        other = self._keys(visible_part(Text(text=texts), is_input=False))
        return replace(keys, trimmed=(other.full, other.local, other.content))

    def leads_to(self, keys: TurnKeys) -> bool:
        """Whether one of these is a key of the next turn, with whatever output."""
        here = self._input + keys.content
        full, local = _hash(self._full + here, _full_hash), _hash(self._output + here, _local_hash)
        return (
            keys.full[SHARED_BYTES:] == full[SHARED_BYTES:]
            or keys.local[SHARED_BYTES:] == local[SHARED_BYTES:]
        )

    def add_output(self, parts: Sequence[Part]) -> TurnKeys:
        """Go on to the turn after this output; returns the keys of the turn that it ends."""
        part = _single(parts)
        if part is not None:
            self._parallel, keys = None, self._keys(visible_part(part, is_input=False))
        else:
            self._parallel = _parallel_calls(parts)
            keys = self._keys_of_many(parts, self._parallel)
        self._full, self._output, self._input = keys.full, keys.content, _EMPTY
        return keys


def input_hash(parts: Sequence[Part]) -> bytes:
    """Return the hash of an input that has no results of parallel calls."""
    return _hash(visible(parts, is_input=True))


def rolling_keys(
    turns: Iterable[Turn], *, after: RollingKey | None = None
) -> tuple[list[TurnKeys | None], RollingKey]:
    """Return the keys of every turn (None: it has no output) and the rolling key after the last.

    A turn without an output that is not the last one was answered with nothing visible; its input
    is part of the full keys after it all the same. `after` is the rolling key after an output that
    stands before these turns.
    """
    rolling = RollingKey() if after is None else copy(after)
    keys: list[TurnKeys | None] = []
    unanswered = False
    for turn in turns:
        if unanswered:
            rolling.add_output(())
        rolling.add_input(turn.input)
        unanswered = not turn.output
        keys.append(None if unanswered else rolling.add_output(turn.output))
    return keys, rolling


def reference_key(kind: str, value: str) -> bytes:
    """Return the look-up key of an item or a response that a client may name by its id."""
    return _hash(joined(b"ref" + encoded(kind), [encoded(value)]))


def session_key(hint: str) -> bytes:
    """Return the look-up key of a session, given the `string_digest` of its id or of a hint."""
    return _hash(joined(b"session", [encoded(hint)]))


def string_digest(value: str) -> str:
    """Return the digest that stands for a string: an opaque value, a session id, a text."""
    return _hash(encoded(value)).hex()


def seal_key(digest: str) -> bytes:
    """Return the look-up key of an opaque value, given its `string_digest`."""
    return _hash(b"seal" + bytes.fromhex(digest))


MIN_SPOKEN = 24
"""Characters of a thought that is looked for among texts: shorter ones may be chance."""
_SPOKEN = 64


def spoken_key(text: str) -> bytes:
    """Return the look-up key of a thought that a client wrote as text, by how it begins."""
    return _hash(b"spoken" + encoded(text[:_SPOKEN]))


def json_digest(value: Any) -> str:
    """Return a digest of any JSON value that does not depend on formatting and key order."""
    return string_digest(canonical_json(value))
