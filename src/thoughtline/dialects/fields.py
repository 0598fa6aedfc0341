"""Top-level members of a body, set or removed; shared by the dialects' patches."""

from collections.abc import Mapping

from thoughtline.splice import Edit, Span, cut, put


def edits(body: bytes, top: dict[str, Span], fields: Mapping[str, bytes | None]) -> list[Edit]:
    """Edits that set each member to a raw JSON value, or remove it where the value is None."""
    whole = Span(0, 0, body.rindex(b"}") + 1)
    gone = [top[key] for key, raw in fields.items() if raw is None and key in top]
    made = cut(gone, top.values())
    return made + [put(whole, key, raw, top) for key, raw in fields.items() if raw is not None]
