"""Where settings come from: files, variables and flags, each as one flat layer of raw values.

A layer knows for every value where it was written, so that an error and `thoughtline doctor` can
say so. Keys that do not exist are found here; whether a value fits is decided when layers are
merged.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path as File
from typing import Any

from msgspec import Struct

from thoughtline.gateway.settings.keys import ANY, TREE, Key, Path, Tree, dotted, nearest
from thoughtline.gateway.settings.values import from_json, kind_of

PREFIX = "THOUGHTLINE_"
INTERNAL = "THOUGHTLINE_INTERNAL_"
"""The prefix of variables that Thoughtline's processes hand to one another."""
FILE = "thoughtline.toml"
SHORT: Mapping[str, Path] = {
    "host": ("server", "host"),
    "port": ("server", "port"),
    "workers": ("server", "workers"),
    "allow_remote": ("server", "allow_remote"),
    "admin_token": ("access", "admin_token"),
    "store_url": ("store", "url"),
    "strict": ("replay", "strict"),
    "log_level": ("log", "level"),
    "log_format": ("log", "format"),
}
"""Short names: of flags (`--log-level`) and of variables (`THOUGHTLINE_LOG_LEVEL`)."""

RETIRED: Mapping[Path, str] = {
    ("store", "cache_url"): "this version has no shared hot tier; leave it empty or remove it",
}
"""Keys that files written for another version may have: empty they are passed over, set refused."""

_SPELLED = {"store_url": "--store"}
"""Flags that the commands spell otherwise."""

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
MODEL = re.compile(r"[^\x00-\x20\x7f]{1,200}")
TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
# A Kubernetes service called `thoughtline` puts these into every pod of its namespace.
_SERVICE = re.compile(r"THOUGHTLINE_(SERVICE_(HOST|PORT)(_\w+)?|PORT_\d+_(TCP|UDP)(_\w+)?)")
_LINK = re.compile(r"(tcp|udp)://")


class Value(Struct, frozen=True):
    """What was written for a key, and where."""

    raw: Any
    source: str
    text: bool = False  # from a variable or a flag: read generously


class Layer:
    """What one source says."""

    def __init__(self, *, text: bool = False) -> None:
        self.text = text
        self.values: dict[Path, Value] = {}
        self.tables: dict[Path, str] = {}  # named tables, such as upstreams.deepseek → source
        self.problems: list[str] = []

    def add_at(self, path: Path, raw: Any, source: str) -> None:
        """Take in the value that a variable or a flag gives to one path."""
        for name in reversed(path):
            raw = {name: raw}
        self.add(TREE, raw, (), source)

    def add(self, tree: Tree, raw: Any, path: Path, source: str) -> None:
        """Take in a value or a table, key by key."""
        where = dotted(path)
        if self.text and isinstance(raw, str) and raw.lstrip().startswith("{"):
            raw = raw if isinstance(tree, Key) else from_json(raw)
        if isinstance(tree, Key) and self.text and isinstance(raw, Mapping):
            self._problem(source, f"`{where}` is a single value, not a table")
        elif isinstance(tree, Key):
            self.values[path] = Value(raw, source, self.text and isinstance(raw, str))
        elif isinstance(raw, Mapping):
            for name, value in raw.items():
                self._add_entry(tree, (*path, str(name)), value, source)
        else:
            self._problem(source, f"`{where}` is {kind_of(raw)}; expected a table: [{where}]")

    def _add_entry(self, tree: Mapping[str, Tree], path: Path, raw: Any, source: str) -> None:
        name = path[-1]
        if name in tree:
            self.add(tree[name], raw, path, source)
        elif path in RETIRED:
            if raw != "":
                self._problem(source, f"`{dotted(path)}` is set, and {RETIRED[path]}")
        elif ANY not in tree:
            self._problem(source, f"`{dotted(path)}` is not a setting; {nearest(path, tree)}")
        elif problem := _name_problem(path):
            self._problem(source, problem)
        else:
            if not isinstance(tree[ANY], Key):
                self.tables[path] = source
            self.add(tree[ANY], raw, path, source)

    def _problem(self, source: str, text: str) -> None:
        self.problems.append(f"{source}: {text}")


def _name_problem(path: Path) -> str:
    """What is wrong with a name that the user chose; quotes it only where it is no secret."""
    if path[-2] == "headers":
        fits, rule = TOKEN.fullmatch(path[-1]), "the name of an HTTP header"
    elif path[-2] in ("models", "prices"):
        fits, rule = MODEL.fullmatch(path[-1]), "the name of a model, or a pattern of names"
    else:
        fits = NAME.fullmatch(path[-1])
        rule = "a name of lower-case letters, digits, `.`, `_` and `-`"
    if fits:
        return ""
    called = f"an entry called {path[-1]!r}" if path[0] == path[-2] else "an entry"
    return f"`{dotted(path[:-1])}` has {called} that cannot be used; expected {rule}"


# --- Files -------------------------------------------------------------------------------------


def read_file(path: File, source: str) -> Layer:
    """What a TOML file says; one that is not there says nothing."""
    layer = Layer()
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return layer
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it has no valid name"
        layer.problems.append(f"{source}: cannot be read ({reason}); make it readable or remove it")
        return layer
    try:
        content = tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        layer.problems.append(f"{source}: {_toml_problem(error)}")
    else:
        layer.add(TREE, _with_tables(content), (), source)
    return layer


def _with_tables(content: dict[str, Any]) -> dict[str, Any]:
    """A file's content with a table for each model: a text alone says what it stands for."""
    models = content.get("models")
    if not isinstance(models, dict):
        return content
    rows = {name: {"to": to} if isinstance(to, str) else to for name, to in models.items()}
    return {**content, "models": rows}


def _toml_problem(error: Exception) -> str:
    match error:
        case UnicodeDecodeError():
            return "is not UTF-8 text; save it as UTF-8"
        case RecursionError():
            return "is nested too deeply; expected a TOML file"
        case tomllib.TOMLDecodeError():
            first_line = str(error).partition("\n")[0]
            return f"is not valid TOML: {first_line}"
        case _:  # a number with thousands of digits
            return "is not valid TOML: a number in it is far too long"


# --- Variables and flags -----------------------------------------------------------------------


def read_env(env: Mapping[str, str], known: Iterable[Path]) -> Layer:
    """What `THOUGHTLINE_…` variables say. An empty one counts as not set.

    A name in a variable cannot have every character: `MY_PROXY` is taken for `my-proxy` when there
    is one, among the names that are `known` from elsewhere.
    """
    layer = Layer(text=True)
    names = {(*path[:-1], _plain(path[-1])): path[-1] for path in known}
    variables = sorted(n for n in env if n.startswith(PREFIX) and env[n].strip())
    # Short names first: a long one is more specific, and wins.
    for variable in sorted(variables, key=lambda name: "__" in name):
        rest = variable.removeprefix(PREFIX).lower()
        value = env[variable]
        if rest == "config" or variable.startswith(INTERNAL) or _SERVICE.fullmatch(variable):
            continue
        if rest == "port" and _LINK.match(value):
            continue
        path = SHORT.get(rest) or _respelled(rest.split("__"), names)
        layer.add_at(path, value, f"${variable}")
    return layer


def _plain(name: str) -> str:
    return re.sub(r"[.-]", "_", name)


def _respelled(names: Iterable[str], known: Mapping[Path, str]) -> Path:
    """A path with names as users chose them, and with the dashes that headers have."""
    path: Path = ()
    for name in names:
        if len(path) == 3 and path[0] == "upstreams" and path[2] == "headers":
            path = (*path, name.replace("_", "-"))
        else:
            path = (*path, known.get((*path, _plain(name)), name))
    return path


def read_flags(flags: Mapping[str, Any]) -> Layer:
    """What the command line says; None is a flag that was not given.

    A flag has a short name (`port`) or the path of its key (`server.port`).
    """
    layer = Layer(text=True)
    for flag, value in flags.items():
        if value is None or flag == "config":
            continue
        path = SHORT.get(flag) or _respelled(flag.split("."), {})
        spelled = _SPELLED.get(flag) or f"--{flag.replace('_', '-')}"
        layer.add_at(path, value, spelled if flag in SHORT else f"flag {flag}")
    return layer
