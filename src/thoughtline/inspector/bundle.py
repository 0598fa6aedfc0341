"""Puts the page's modules into one script, and its style sheets into one, as they are served.

A browser would ask for each file, and for each again when it is opened the next time. Nothing is
built before: the files are read when the page is asked for, and put one after the other, each
module in a function of its own. That works for what our modules use and no more: named imports of
files beside them, and declarations with `export` before them.
"""

import re
from collections.abc import Callable, Iterable

_IMPORT = re.compile(
    r'^import (?:\{(?P<names>[^}]*)\}|\* as (?P<all>\w+)) from "\./(?P<file>[\w-]+\.js)";\n',
    re.MULTILINE,
)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)

Read = Callable[[str], str]
"""Reads a file of the page by its name."""


def script(entry: str, read: Read) -> str:
    """One classic script that does what the module `entry` and all that it imports do."""
    modules: dict[str, str] = {}
    _add(entry, read, modules, ())
    return '"use strict";\n(() => {\n' + "\n".join(modules.values()) + "\n})();\n"


def style(names: Iterable[str], read: Read) -> str:
    """One style sheet of several."""
    return "\n".join(read(name) for name in names)


def _add(name: str, read: Read, modules: dict[str, str], above: tuple[str, ...]) -> None:
    """Add a module after those that it imports."""
    if name in above:
        raise ValueError(f"modules import each other in a circle: {' → '.join((*above, name))}")
    if name in modules:
        return
    source = read(name)
    for found in _IMPORT.finditer(source):
        _add(found["file"], read, modules, (*above, name))
    modules[name] = _wrapped(name, source)


def _wrapped(name: str, source: str) -> str:
    """A module as a function whose result is what it exports."""
    exported = _EXPORT.findall(source)
    body = _EXPORT.sub("", _IMPORT.sub(_constant, source))
    if left := _OTHER.search(body):
        raise ValueError(f"{name} has a line that cannot be bundled: {left[0]}")
    members = ", ".join(exported)
    return (
        f"// {name}\nconst {_variable(name)} = (() => {{\n{body}\nreturn {{ {members} }};\n}})();"
    )


def _constant(found: re.Match[str]) -> str:
    wanted = found["all"] or "{" + found["names"].replace(" as ", ": ") + "}"
    return f"const {wanted} = {_variable(found['file'])};\n"


def _variable(file: str) -> str:
    return "$" + file.removesuffix(".js").replace("-", "_")
