"""Switches: what a request says so that the thoughts which go back are read, and not ignored.

They are columns of the provider's row (`Policy.asks`), a path and a JSON value each:

    preserve_thinking            a member of the body
    thinking.keep                a member of an object in it, which is made where it is missing
    thinking?.clear_thinking     only where the client itself sends the object

One that the client has said, in whatever sense, is left alone, and so are all of them where it has
switched thinking off. They are said from the first request on, whether or not a thought goes back:
one that appeared later would change what the provider's prompt cache begins with.
"""

from collections.abc import Iterable, Mapping, Sequence

from thoughtline.dialects import splice
from thoughtline.dialects.splice import TopLevel
from thoughtline.providers.policy import Ask


def switch_fields(
    body: bytes, asks: Sequence[Ask], fields: Mapping[str, bytes | None]
) -> dict[str, bytes | None]:
    """The top-level members that say the switches; `fields` are others that are set."""
    top = TopLevel(body)
    said = {name: _raw(top, name, fields) for name in map(member_of, dict(asks))}
    made: dict[str, bytes | None] = {}
    for path, value in asks:
        name, key = member_of(path), path.partition(".")[2]
        raw = made.get(name, said[name])
        if not key:
            wanted = value.encode() if raw is None else None
        elif raw is None:
            wanted = None if "?" in path else _with(b"{}", key, value)
        else:
            wanted = _with(raw, key, value)
        if wanted is not None and fields.get(name, b"") is not None:
            made[name] = wanted
    return made


def member_of(path: str) -> str:
    """The top-level member that a switch stands in."""
    return path.partition(".")[0].rstrip("?")


def without_switches(asks: Iterable[Ask], refused: Iterable[str]) -> tuple[Ask, ...]:
    """The switches without those in members that an endpoint refuses."""
    gone = {member_of(path) for path in refused}
    return tuple(ask for ask in asks if member_of(ask[0]) not in gone)


def _raw(top: TopLevel, name: str, fields: Mapping[str, bytes | None]) -> bytes | None:
    place = top.has.get(name)
    own = top.body[place.value : place.end] if place else None
    return fields.get(name, own)


def _with(raw: bytes, key: str, value: str) -> bytes | None:
    """An object with one more member; None where it has it, or switches thinking off."""
    given = splice.loads(raw)
    if not isinstance(given, dict) or key in given or given.get("type") == "disabled":
        return None
    return splice.with_members(raw, {key: value.encode()})
