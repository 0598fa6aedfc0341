"""The keys of the settings, read off the structs in `sections` by one walk.

`TREE` is nested as the file is, `KEYS` is the flat list: loading, `thoughtline init`, the
reference and `thoughtline doctor` all use these two. `*` in a path stands for a name that the user
chooses. `nearest` answers a key that does not exist with the nearest one that does.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import NoneType
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args, get_origin

from msgspec import Meta, Struct
from msgspec.structs import fields

from thoughtline.errors import nearest_name
from thoughtline.gateway.settings.sections import DERIVED, Secret, Settings

ANY = "*"
Path: TypeAlias = tuple[str, ...]
Kind = Literal["duration", "size", "dollars", "number", "bool", "choice", "list", "secret", "text"]
_KINDS: Mapping[Any, Kind] = {
    float: "duration",
    int: "number",
    bool: "bool",
    Literal: "choice",
    tuple: "list",
    Secret: "secret",
    str: "text",
}


_UNITS: Mapping[Any, Kind] = {"bytes": "size", "dollars": "dollars"}


class Key(Struct, frozen=True, kw_only=True):
    """One setting: where it stands, what it takes and what it is about."""

    path: Path
    type: Any  # as annotated: what `msgspec.convert` is given
    kind: Kind
    about: str
    default: Any = None
    default_text: str = ""  # the default as it is written, where the value itself does not say it
    optional: bool = False  # whether it can be `"none"`
    bounds: Meta = Meta()
    choices: tuple[str, ...] = ()


Tree: TypeAlias = "Key | Mapping[str, Tree]"


def dotted(path: Iterable[str]) -> str:
    """A path as people write it."""
    return ".".join(path)


# --- The walk over the structs -----------------------------------------------------------------


def _split(annotation: Any) -> tuple[Any, list[Any]]:
    """A type without its annotations, and the annotations."""
    if get_origin(annotation) is not Annotated:
        return annotation, []
    plain, *notes = get_args(annotation)
    return plain, notes


def _tree(cls: type[Struct], path: Path) -> dict[str, Tree]:
    tree: dict[str, Tree] = {}
    for field in fields(cls):
        here = (*path, field.name)
        plain, notes = _split(field.type)
        if get_origin(plain) is dict:
            value = Annotated[get_args(plain)[1], *notes] if notes else get_args(plain)[1]
            tree[field.name] = {ANY: _branch((*here, ANY), value, None)}
        elif DERIVED not in notes:
            tree[field.name] = _branch(here, field.type, field.default)
    return tree


def _branch(path: Path, annotation: Any, default: Any) -> Tree:
    plain, notes = _split(annotation)
    if isinstance(plain, type) and issubclass(plain, Struct):
        return _tree(plain, path)
    optional = NoneType in get_args(plain)
    if optional:
        plain, inner = _split(get_args(plain)[0])
        notes += inner
    metas = [note for note in notes if isinstance(note, Meta)]
    extra = {name: value for meta in metas for name, value in (meta.extra or {}).items()}
    kind = _KINDS[get_origin(plain) or plain]
    return Key(
        path=path,
        type=annotation,
        kind=_UNITS.get(extra.get("unit"), kind),
        about=next((note for note in notes if isinstance(note, str)), ""),
        default=default,
        default_text=extra.get("default", ""),
        optional=optional,
        bounds=metas[0] if metas else Meta(),
        choices=get_args(plain) if kind == "choice" else (),
    )


def _flat(tree: Tree) -> Iterator[Key]:
    if isinstance(tree, Key):
        yield tree
        return
    for branch in tree.values():
        yield from _flat(branch)


def _title(annotation: Any) -> str:
    section = get_args(annotation)[1] if get_origin(annotation) is dict else annotation
    return str(section.__doc__).strip()


TREE: Mapping[str, Tree] = _tree(Settings, ())
KEYS: tuple[Key, ...] = tuple(_flat(TREE))
TITLES: Mapping[str, str] = {field.name: _title(field.type) for field in fields(Settings)}
"""Table → what it is about."""


# --- Looking up --------------------------------------------------------------------------------


def find(path: Path) -> Key:
    """The key that a path leads to."""
    node: Any = TREE
    for name in path:
        node = node[name if name in node else ANY]
    return cast("Key", node)


def nearest(path: Path, siblings: Iterable[str]) -> str:
    """What was probably meant by a path that leads nowhere; a hint to end a sentence with."""
    here, wrong, names = path[:-1], path[-1].lower(), [name for name in siblings if name != ANY]
    if close := nearest_name(wrong, names):
        return f"did you mean `{dotted((*here, close))}`?"
    elsewhere = {key.path[-1]: key.path for key in reversed(KEYS) if key.path[-1] != ANY}
    if close := nearest_name(wrong, elsewhere):
        return f"did you mean `{dotted(elsewhere[close])}`?"
    return f"known here: {', '.join(f'`{name}`' for name in names)}"
