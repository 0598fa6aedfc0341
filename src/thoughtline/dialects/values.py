"""Members of a body that should be of some type; whatever else they are counts as not given."""

from typing import Any


def string(value: Any) -> str:
    """A string, or an empty one."""
    return value if isinstance(value, str) else ""


def mapping(value: Any) -> dict[str, Any]:
    """An object, or an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """A list, or an empty one."""
    return value if isinstance(value, list) else []


def flag(value: Any) -> bool | None:
    """True or false, or None."""
    return value if isinstance(value, bool) else None


def whole_number(value: Any) -> int | None:
    """A whole number, or None."""
    return value if type(value) is int else None


def number(value: Any) -> float | None:
    """A number, or None."""
    return value if type(value) in (int, float) else None


def strings(value: Any) -> tuple[str, ...]:
    """The strings of a list; one string is a list of one."""
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in sequence(value) if isinstance(item, str))


def without_empty(value: Any) -> Any:
    """Return a JSON value without the members that are null, false, zero or empty.

    Typed clients and servers write every member that they know, others those that are set.
    """
    if isinstance(value, dict):
        return {key: said for key, inner in value.items() if (said := without_empty(inner))}
    if isinstance(value, list):
        return [without_empty(inner) for inner in value]
    return value


def says_anything(value: Any) -> bool:
    """Whether anything but null, false, zero and empty values is in a JSON value."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            left += one.values()
        elif isinstance(one, list):
            left += one
        elif one:
            return True
    return False
