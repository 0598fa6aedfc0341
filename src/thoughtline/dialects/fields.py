"""Top-level members of a body, set or removed; shared by the dialects' patches."""

from collections.abc import Mapping

from thoughtline.splice import Edit, Span, revise


def edits(body: bytes, top: dict[str, Span], fields: Mapping[str, bytes | None]) -> list[Edit]:
    """Edits that set each member to a raw JSON value, or remove it where the value is None."""
    return revise(Span(0, 0, body.rindex(b"}") + 1), top, fields)
