"""How hard a model is to think, put into a client's own body in place of what the client asks.

A body says it in members that differ by dialect and by provider (`Dialect.effort_members`); what
excludes thinking, such as a temperature, goes out with them.
"""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from thoughtline.dialects import splice
from thoughtline.dialects.base import Dialect, Request
from thoughtline.dialects.splice import TopLevel
from thoughtline.log.capabilities import Capabilities


def with_effort(
    request: Request, dialect: Dialect, effort: str, takes: Capabilities
) -> tuple[Request, Mapping[str, bytes | None]]:
    """A request that thinks or not, and the members of its body to set or remove for that.

    There are none where the provider cannot be told that effort, or where none is given.
    """
    fields = _fields(request, dialect, effort, takes) if effort else {}
    return (replace(request, thinking=effort != "none") if fields else request), fields


def _fields(
    request: Request, dialect: Dialect, effort: str, takes: Capabilities
) -> Mapping[str, bytes | None]:
    asked = dialect.params(request)
    without = dialect.param_fields(replace(asked, effort="", thinking=False), takes).fields
    wanted = dialect.param_fields(replace(asked, effort=effort, thinking=effort != "none"), takes)
    if any(name.startswith("effort=") for name in wanted.left):
        return {}
    top, fields = TopLevel(request.body), wanted.fields
    made: dict[str, bytes | None] = {
        name: None for name in without if name not in fields and name in top.has
    }
    for name, inner in dialect.effort_members.items():
        own, value = _spelled(name, top.has), fields.get(name)
        if inner:
            given = value if isinstance(value, Mapping) else {}
            changes = _inner_changes(top, own, {key: given.get(key) for key in inner})
            if changes:
                made[own] = top.nested(own, changes)
        elif value is not None:
            made[own] = splice.dumps(value)
        elif own in top.has:
            made[own] = None
    return made


def _inner_changes(
    top: TopLevel, name: str, wanted: Mapping[str, object]
) -> dict[str, bytes | None]:
    """What changes inside of a member that says other things, too."""
    before = top.value(name)
    has = before if isinstance(before, dict) else {}
    changes: dict[str, bytes | None] = {}
    for key, value in wanted.items():
        own = _spelled(key, has)
        if value is not None:
            changes[own] = splice.dumps(value)
        elif own in has:
            changes[own] = None
    return changes


def _spelled(name: str, has: Iterable[str]) -> str:
    """A name as the client spells it: Google takes `generation_config` for `generationConfig`."""
    plain = name.replace("_", "").lower()
    return next((key for key in has if key.replace("_", "").lower() == plain), name)
