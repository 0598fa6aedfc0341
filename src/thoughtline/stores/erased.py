"""Thoughts that are erased from the log: whether one is, and which index entry tells of them."""

from collections.abc import Iterable

from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Origin
from thoughtline.stores import rules

StoredThought = tuple[int, str]
"""Version and data of a reasoning event."""


def is_erased(version: int, data: str) -> bool:
    """Whether the thought of a reasoning event is erased."""
    thought = rules.read_thought(version, data)
    return thought is not None and thought.forgotten


def erased(version: int, data: str) -> StoredThought:
    """Return the thought of a reasoning event without its content."""
    return (version, data) if is_erased(version, data) else rules.blank_thought(version, data)


def unfiled_entry(session: str, turn: str, thoughts: Iterable[StoredThought]) -> IndexEntry:
    """Return an index entry for thoughts that have none, to compare with a filter."""
    read = [rules.read_thought(*thought) for thought in thoughts]
    origin = next((one.origin for one in read if one is not None and one.origin), Origin())
    return IndexEntry(session, turn, origin=origin)
