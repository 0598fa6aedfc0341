"""`reasoning_details`: a typed list that streams in fragments, to be merged by index."""

from typing import Any

_GROWING = ("text", "summary", "data", "signature")


def merge(pieces: list[Any]) -> list[Any] | None:
    """The list as a client must send it back: fragments of one index joined, in order of arrival.

    Only the first fragment's other fields count, unless it lacked them. Details without an index
    continue the last one of their type.
    """
    merged: list[dict[str, Any]] = []
    places: dict[Any, int] = {}
    seen = False
    for piece in pieces:
        if not isinstance(piece, list):
            continue
        seen = True
        for detail in piece:
            if isinstance(detail, dict):
                _add(merged, places, detail)
    return merged if seen else None


def _add(merged: list[dict[str, Any]], places: dict[Any, int], detail: dict[str, Any]) -> None:
    index, kind = detail.get("index"), detail.get("type")
    try:
        place = places.get((index, kind))
    except TypeError:
        place = None
    if place is None:
        if isinstance(index, int | str | None) and isinstance(kind, str | None):
            places[(index, kind)] = len(merged)
        merged.append(dict(detail))
        return
    whole = merged[place]
    for key, value in detail.items():
        if key in _GROWING and isinstance(value, str) and isinstance(whole.get(key), str):
            whole[key] += value
        elif whole.get(key) is None:
            whole[key] = value
