"""The keys, read off the structs: paths, kinds, defaults and descriptions, as one tree.

Loading walks the tree beside a file; `thoughtline init`, the reference and `thoughtline doctor`
walk the flat list. `*` in a path stands for a name that the user chooses. A key that does not exist
is answered with the nearest one that does.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, TypeAlias, get_args, get_type_hints

from msgspec import Struct, inspect

from thoughtline.settings.masks import Secret
from thoughtline.settings.sections import Section, Settings

ANY = "*"
Path: TypeAlias = tuple[str, ...]


class Key(Struct, frozen=True, kw_only=True):
    """One setting."""

    path: Path
    kind: inspect.Type
    unit: str = ""
    default: Any = None
    about: str = ""
    shown: str = ""  # the default as it is written, where the value itself would not say it

    @property
    def secret(self) -> bool:
        """Whether its value must not be seen."""
        return isinstance(self.kind, inspect.CustomType) and self.kind.cls is Secret

    @property
    def optional(self) -> bool:
        """Whether it can be `"none"`."""
        return isinstance(self.kind, inspect.UnionType)


Tree: TypeAlias = "Key | Mapping[str, Tree]"


def dotted(path: Iterable[str]) -> str:
    """A path as people write it."""
    return ".".join(path)


def _unwrap(kind: inspect.Type) -> tuple[inspect.Type, dict[str, Any], str]:
    """A type without its annotations, what they say, and the description."""
    extra: dict[str, Any] = {}
    about = ""
    while isinstance(kind, inspect.Metadata):
        extra |= kind.extra or {}
        about = about or (kind.extra_json_schema or {}).get("description", "")
        kind = kind.type
    if isinstance(kind, inspect.UnionType):
        for inner in kind.types:
            extra |= _unwrap(inner)[1]
    return kind, extra, about


def _tree(kind: inspect.StructType, path: Path) -> dict[str, Tree]:
    fields: dict[str, Tree] = {}
    hints = get_type_hints(kind.cls)
    for field in kind.fields:
        inner, extra, about = _unwrap(field.type)
        if isinstance(inner, inspect.LiteralType):  # in the order in which they were written
            inner = inspect.LiteralType(values=get_args(hints[field.name]))
        if extra.get("derived"):
            continue
        here = (*path, field.name)
        if isinstance(inner, inspect.StructType):
            fields[field.name] = _tree(inner, here)
        elif isinstance(inner, inspect.DictType):
            named = (*here, ANY)
            value = inner.value_type
            fields[field.name] = {
                ANY: _tree(value, named)
                if isinstance(value, inspect.StructType)
                else Key(path=named, kind=value, about=about)
            }
        else:
            fields[field.name] = Key(
                path=here,
                kind=inner,
                unit=extra.get("unit", ""),
                default=field.default,
                about=about,
                shown=extra.get("shown", ""),
            )
    return fields


def _flat(tree: Tree) -> Iterator[Key]:
    if isinstance(tree, Key):
        yield tree
        return
    for branch in tree.values():
        yield from _flat(branch)


def _titles(cls: type[Section]) -> Iterator[tuple[str, str]]:
    kind = inspect.type_info(cls)
    assert isinstance(kind, inspect.StructType)  # noqa: S101 (for the type checker)
    for field in kind.fields:
        inner = _unwrap(field.type)[0]
        inner = inner.value_type if isinstance(inner, inspect.DictType) else inner
        if isinstance(inner, inspect.StructType):
            yield field.name, (inner.cls.__doc__ or "").strip()


_root = inspect.type_info(Settings)
assert isinstance(_root, inspect.StructType)  # noqa: S101 (for the type checker)
TREE: Mapping[str, Tree] = _tree(_root, ())
KEYS: tuple[Key, ...] = tuple(_flat(TREE))
TITLES: Mapping[str, str] = dict(_titles(Settings))
"""Table → what it is about."""


def find(path: Path) -> Key | None:
    """The key that a path leads to."""
    node: Tree = TREE
    for name in path:
        if isinstance(node, Key):
            return None
        step = node.get(name, node.get(ANY))
        if step is None:
            return None
        node = step
    return node if isinstance(node, Key) else None


def nearest(path: Path, siblings: Iterable[str]) -> str:
    """What was probably meant by a path that leads nowhere; a hint to end a sentence with."""
    here, wrong, names = path[:-1], path[-1].lower(), [name for name in siblings if name != ANY]
    close = get_close_matches(wrong, names, n=1)
    if close:
        return f"did you mean `{dotted((*here, close[0]))}`?"
    elsewhere = [key.path for key in KEYS if key.path[-1] == wrong]
    if elsewhere:
        return f"did you mean `{dotted(elsewhere[0])}`?"
    everywhere = {dotted(key.path): key.path[-1] for key in KEYS if key.path[-1] != ANY}
    close = get_close_matches(wrong, everywhere.values(), n=1)
    if close:
        return f"did you mean `{next(p for p, last in everywhere.items() if last == close[0])}`?"
    return f"known here: {', '.join(f'`{name}`' for name in names)}"
