"""Where settings come from: files, variables and flags, each as one flat layer of raw values.

A layer knows for every value where it stood, so that an error and `thoughtline doctor` can say so.
Keys that do not exist are found here; whether a value fits is decided after layers are merged.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path as File
from typing import Any

import platformdirs
from msgspec import Struct

from thoughtline.settings.schema import ANY, TREE, Key, Path, Tree, dotted, nearest
from thoughtline.settings.values import from_json, kind_of

APP = "thoughtline"
PREFIX = "THOUGHTLINE_"
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

_SPELLED = {"store_url": "--store"}
"""Flags that the commands spell otherwise."""

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
# A Kubernetes service of our name puts these into every pod of its namespace.
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

    def put(self, tree: Tree, raw: Any, path: Path, source: str) -> None:
        """Take in a value or a table, key by key."""
        if isinstance(tree, Key):
            self.values[path] = Value(raw, source, self.text and isinstance(raw, str))
            return
        if self.text and isinstance(raw, str) and raw.lstrip().startswith("{"):
            raw = from_json(raw)
        if not isinstance(raw, Mapping):
            where = dotted(path)
            self.problems.append(
                f"{source}: `{where}` is {kind_of(raw)}; expected a table: [{where}]"
            )
            return
        for name, value in raw.items():
            self._step(tree, str(name), value, path, source)

    def _step(
        self, tree: Mapping[str, Tree], name: str, value: Any, path: Path, source: str
    ) -> None:
        here = (*path, name)
        if name in tree:
            self.put(tree[name], value, here, source)
        elif ANY not in tree:
            self.unknown(tree, here, source)
        elif (problem := _misnamed(here)) is not None:
            self.problems.append(f"{source}: {problem}")
        else:
            if not isinstance(tree[ANY], Key):
                self.tables[here] = source
            self.put(tree[ANY], value, here, source)

    def unknown(self, siblings: Iterable[str], path: Path, source: str) -> None:
        """There is no such key."""
        hint = nearest(path, siblings)
        self.problems.append(f"{source}: `{dotted(path)}` is no setting; {hint}")


def _misnamed(path: Path) -> str | None:
    """What is wrong with a name that the user chose; quotes it only where it is no secret."""
    if path[-2] == "headers":
        fits, rule = TOKEN.fullmatch(path[-1]), "the name of an HTTP header"
    else:
        fits = NAME.fullmatch(path[-1])
        rule = "a name of lower-case letters, digits, `.`, `_` and `-`"
    if fits:
        return None
    called = f"an entry called {path[-1]!r}" if path[0] == path[-2] else "an entry"
    return f"`{dotted(path[:-1])}` has {called} that cannot be; expected {rule}"


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
    except UnicodeDecodeError:
        layer.problems.append(f"{source}: is not UTF-8 text; save it as UTF-8")
    except RecursionError:
        layer.problems.append(f"{source}: is nested too deeply; expected a TOML file")
    except tomllib.TOMLDecodeError as error:
        layer.problems.append(f"{source}: is not valid TOML: {_first_line(error)}")
    except ValueError:  # a number with thousands of digits
        layer.problems.append(f"{source}: is not valid TOML: a number in it is far too long")
    else:
        layer.put(TREE, content, (), source)
    return layer


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def user_folder(kind: str, env: Mapping[str, str]) -> File:
    """The user's `config` or `data` folder for us, as this environment has it.

    platformdirs knows every system, but asks the process for its environment. So what an
    environment can say is read from the one that was given, and the rest is left to it.
    """
    chosen = env.get(f"XDG_{kind.upper()}_HOME", "").strip()
    home = env.get("HOME", "").strip()
    if sys.platform != "win32":
        if File(chosen).is_absolute():
            return File(chosen) / APP
        if File(home).is_absolute():
            usual = {"config": ".config", "data": ".local/share"}[kind]
            mac = sys.platform == "darwin"
            return File(home) / ("Library/Application Support" if mac else usual) / APP
    found = platformdirs.user_config_path if kind == "config" else platformdirs.user_data_path
    return found(APP, appauthor=False)


# --- Variables and flags -----------------------------------------------------------------------


def read_env(env: Mapping[str, str], known: Iterable[Path]) -> Layer:
    """What `THOUGHTLINE_…` variables say. An empty one counts as not set.

    A name in a variable cannot have every character: `MY_PROXY` is taken for `my-proxy` when there
    is one, among the names that are `known` from elsewhere.
    """
    layer = Layer(text=True)
    names = {(path[:-1], _plain(path[-1])): path[-1] for path in known}
    ours = sorted(n for n in env if n.startswith(PREFIX) and env[n].strip())
    # Short names first: a long one is more specific, and wins.
    for variable in sorted(ours, key=lambda name: "__" in name):
        rest = variable.removeprefix(PREFIX).lower()
        value = env[variable]
        if rest == "config" or _SERVICE.fullmatch(variable):
            continue
        if rest == "port" and _LINK.match(value):
            continue
        path = SHORT.get(rest) or tuple(rest.split("__"))
        _follow(layer, path, value, f"${variable}", names)
    return layer


def _plain(name: str) -> str:
    return re.sub(r"[.-]", "_", name)


def _follow(
    layer: Layer, path: Path, value: Any, source: str, names: Mapping[tuple[Path, str], str]
) -> None:
    """Walk down to where a variable points, and put its value there."""
    tree: Tree = TREE
    here: Path = ()
    for step in path:
        name = step
        if isinstance(tree, Key):
            text = f"`{dotted(here)}` is a value; nothing stands below it"
            layer.problems.append(f"{source}: {text}")
            return
        if name not in tree and ANY in tree:
            headers = here[-1] == "headers"
            name = name.replace("_", "-") if headers else names.get((here, _plain(name)), name)
            problem = _misnamed((*here, name))
            if problem is not None:
                layer.problems.append(f"{source}: {problem}")
                return
            if not isinstance(tree[ANY], Key):
                layer.tables[(*here, name)] = source
        elif name not in tree:
            layer.unknown(tree, (*here, name), source)
            return
        tree = tree.get(name) or tree[ANY]
        here = (*here, name)
    layer.put(tree, value, here, source)


def read_flags(flags: Mapping[str, Any]) -> Layer:
    """What the command line says; None is a flag that was not given.

    A flag has a short name (`port`) or the path of its key (`server.port`).
    """
    layer = Layer(text=True)
    for flag, value in flags.items():
        if value is None or flag == "config":
            continue
        path = SHORT.get(flag) or tuple(flag.split("."))
        spelled = _SPELLED.get(flag) or f"--{flag.replace('_', '-')}"
        source = spelled if flag in SHORT else f"flag {flag}"
        _follow(layer, path, value, source, {})
    return layer
