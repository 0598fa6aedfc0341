"""`reasoning_details`: a typed list that streams in fragments, to be merged by index."""

from collections.abc import Iterable
from typing import Any

_GROWING = ("text", "summary", "data", "signature")


def merge(fragments: Iterable[Any]) -> list[Any]:
    """The list as a client must send it back: fragments of one detail joined, in arrival order.

    A fragment belongs to the detail with its index and type, unless both have ids and those
    differ. Without an index it continues the last one of its type. Fields that do not grow are
    the first ones given. What is no detail at all is kept as it came.
    """
    merged: list[Any] = []
    grown: list[dict[str, list[str]]] = []  # per detail: the pieces of its growing fields
    places: dict[tuple[Any, Any], int] = {}
    for fragment in fragments:
        for detail in fragment if isinstance(fragment, list) else ():
            place = _place(detail, merged, places)
            if place == len(merged):
                merged.append(dict(detail) if isinstance(detail, dict) else detail)
                grown.append({})
            if isinstance(detail, dict):
                _extend(merged[place], grown[place], detail)
    for whole, growth in zip(merged, grown, strict=True):
        for field, pieces in growth.items():
            whole[field] = "".join(pieces)
    return merged


def _place(detail: Any, merged: list[Any], places: dict[tuple[Any, Any], int]) -> int:
    """Where this fragment belongs; at the end when it opens a detail of its own."""
    if not isinstance(detail, dict):
        return len(merged)
    key = (detail.get("index"), detail.get("type"))
    try:
        place = places.get(key)
        if place is not None:
            ours = detail.get("id")
            if not ours or (merged[place].get("id") or ours) == ours:
                return place
        places[key] = len(merged)
    except TypeError:  # an index or a type that nothing can be filed under
        pass
    return len(merged)


def _extend(whole: dict[str, Any], growth: dict[str, list[str]], detail: dict[str, Any]) -> None:
    for field, value in detail.items():
        if field in growth:
            if type(value) is str:
                growth[field].append(value)
        elif field in _GROWING and type(value) is str and whole.get(field) in (None, value):
            growth[field] = [value]
        elif whole.get(field) is None:
            whole[field] = value
