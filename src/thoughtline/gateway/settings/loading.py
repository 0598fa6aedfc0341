"""Layers become settings: merge, look up `env:` references, convert, complete, check.

Every problem is collected, so that a person mends a file once and not line by line. Nothing is
read here but the files that the arguments lead to, and nothing is created.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path as File
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thoughtline.engine.folders import user_folder
from thoughtline.errors import SettingsError
from thoughtline.gateway.settings import checks, sources, values
from thoughtline.gateway.settings.keys import ANY, KEYS, Key, Path, dotted, find
from thoughtline.gateway.settings.sections import (
    ADMIN_TOKEN,
    ReplaySettings,
    Settings,
    StoreSettings,
    printable,
)
from thoughtline.gateway.settings.sources import FILE, Layer, Value
from thoughtline.gateway.settings.upstreams import complete
from thoughtline.providers.known_providers import PROVIDERS
from thoughtline.providers.overrides import parse_overrides

_REFERENCE = "env:"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYS: Path = ("store", "keys")
_SOURCES = (_KEYS, ("store", "secret"))
"""Keys that say where something is, which is read when the store is opened."""
DEFAULT = "default"
POLICIES = "policies.toml"
"""Where `thoughtline verify --write` writes if it is not told, in the user's config folder."""
KEY_FILE = "thoughtline.keys"
"""Where the keys of the user's store are, in the same folder."""


class Loaded(Struct, frozen=True, kw_only=True):
    """Settings, and where they are from."""

    settings: Settings
    sources: dict[Path, str]  # key → where its value was written; absent: it is the default
    files: tuple[File, ...]  # the files that were read

    def source(self, path: Path) -> str:
        """Where the value of a key comes from."""
        return self.sources.get(path, DEFAULT)


def load(flags: Mapping[str, Any], env: Mapping[str, str], cwd: File) -> Settings:
    """The settings that flags, environment and files give; raises `SettingsError`."""
    return read(flags, env, cwd).settings


def read(flags: Mapping[str, Any], env: Mapping[str, str], cwd: File) -> Loaded:
    """As `load`, together with where each value comes from."""
    files = _files(flags, env, cwd)
    layers = _layers(files, flags, env)
    problems = [problem for layer in layers for problem in layer.problems]
    tables = {path: source for layer in layers for path, source in layer.tables.items()}
    found = _convert(layers, env, problems)
    nested = _nested(found, tables)
    configured = nested.pop("upstreams", {})
    settings = msgspec.convert(nested, Settings)
    settings = replace(
        settings,
        store=_with_keys(_with_url(settings.store, env, cwd), found, files, env, cwd),
        replay=_with_overrides(settings.replay, found, env, cwd, problems),
        upstreams=complete(configured, env, local=checks.is_loopback(settings.server.host)),
    )
    written = {path: item.source for path, item in found.items()}
    if not problems:
        problems += checks.problems(settings, tables | written)
    if problems:
        raise SettingsError("\n".join(dict.fromkeys(map(printable, problems))))
    return Loaded(
        settings=settings,
        sources={path: source for path, source in written.items() if source != DEFAULT},
        files=tuple(file for file, _ in files if file.is_file()),
    )


# --- Layers ------------------------------------------------------------------------------------


def _files(flags: Mapping[str, Any], env: Mapping[str, str], cwd: File) -> list[tuple[File, str]]:
    """The files to read, the weakest first, and what to call them."""
    chosen = flags.get("config") or env.get("THOUGHTLINE_CONFIG", "").strip()
    if chosen:
        file = cwd / File(str(chosen))
        try:
            exists = file.exists()
        except (OSError, ValueError):
            exists = False
        if not exists:
            source = "--config" if flags.get("config") else "$THOUGHTLINE_CONFIG"
            raise SettingsError(
                f"{source}: there is no file {str(chosen)!r}; write one with `thoughtline init`"
            )
        return [(file, str(chosen))]
    user = user_folder("config", env) / FILE
    return [(user, str(user)), (cwd / FILE, FILE)]


def _layers(
    files: Sequence[tuple[File, str]], flags: Mapping[str, Any], env: Mapping[str, str]
) -> list[Layer]:
    """What every source says, the weakest first."""
    defaults = Layer()
    defaults.values[("access", "admin_token")] = Value(ADMIN_TOKEN, DEFAULT)
    layers = [defaults, *(sources.read_file(file, source) for file, source in files)]
    known = [path for layer in layers for path in layer.tables]
    known += [("upstreams", provider.name) for provider in PROVIDERS]
    return [*layers, sources.read_env(env, known), sources.read_flags(flags)]


# --- Values ------------------------------------------------------------------------------------


def _convert(
    layers: Sequence[Layer], env: Mapping[str, str], problems: list[str]
) -> dict[Path, Value]:
    """The strongest value of each key, as the key holds it."""
    merged = {path: value for layer in layers for path, value in layer.values.items()}
    found: dict[Path, Value] = {}
    for path, value in merged.items():
        try:
            found[path] = _convert_one(find(path), path, value, env)
        except SettingsError as error:
            problems.append(str(error))
    return found


def _convert_one(key: Key, path: Path, value: Value, env: Mapping[str, str]) -> Value:
    raw, source, text, hidden = value.raw, value.source, value.text, key.kind == "secret"
    if path[-1] == "env_key":
        hidden = True  # people put the key itself there
        if isinstance(raw, str):
            raw = raw.strip().removeprefix(_REFERENCE)
    elif path not in _SOURCES and isinstance(raw, str) and raw.strip().startswith(_REFERENCE):
        variable = raw.strip().removeprefix(_REFERENCE).strip()
        raw = _look_up(path, variable, source, env)
        if raw or source != DEFAULT:
            source = f"{source} (${variable})"
        text = hidden = True
    try:
        converted = values.convert(key, raw, text=text)
    except msgspec.ValidationError:
        hint = "" if hidden else values.suggestion(key, raw)
        raise SettingsError(
            f"{source}: `{dotted(path)}` is {values.quote(raw, hidden=hidden)}; "
            f"expected {values.expected(key)}{hint}"
        ) from None
    if path[-1] == "env_key" and converted and not _VARIABLE.fullmatch(converted):
        raise SettingsError(
            f"{source}: `{dotted(path)}` is not the name of a variable; expected a name such as "
            f"DEEPSEEK_API_KEY, and the key itself in that variable"
        )
    return Value(converted, source)


def _look_up(path: Path, variable: str, source: str, env: Mapping[str, str]) -> str:
    where = f"{source}: `{dotted(path)}`"
    if not _VARIABLE.fullmatch(variable):
        raise SettingsError(f'{where} has no variable\'s name after "env:"; expected "env:NAME"')
    value = env.get(variable, "")
    if not value.strip() and f"{_REFERENCE}{variable}" != ADMIN_TOKEN:
        raise SettingsError(
            f"{where} is to be read from the variable {variable}, which is not set; "
            f"set {variable}, or change `{dotted(path)}`"
        )
    return value


def _nested(found: Mapping[Path, Value], tables: Mapping[Path, str]) -> dict[str, Any]:
    """The values as nested tables; a named table is there also when nothing is in it."""
    root: dict[str, Any] = {}

    def table(path: Path) -> dict[str, Any]:
        node = root
        for name in path:
            node = node.setdefault(name, {})
        return node

    for path in tables:
        table(path)
    for path, item in found.items():
        table(path[:-1])[path[-1]] = item.raw
    return root


# --- What depends on the place -----------------------------------------------------------------


def _with_url(store: StoreSettings, env: Mapping[str, str], cwd: File) -> StoreSettings:
    """A store whose file does not depend on the folder that the process happens to run in."""
    if not store.url:
        return replace(store, url=_usual_url(env))
    path = store.url.removeprefix("sqlite:///")
    if path == store.url or not path or path.startswith(("/", "?")):
        return store
    return replace(store, url=f"sqlite:///{cwd / path}")


def _usual_url(env: Mapping[str, str]) -> str:
    """The store of the user, which all commands use that are not told another one."""
    return f"sqlite:///{user_folder('data', env) / 'thoughtline.db'}"


def usual_keys(env: Mapping[str, str]) -> File:
    """Where the keys of the user's store are, if no settings name others."""
    return user_folder("config", env) / KEY_FILE


def _with_keys(
    store: StoreSettings,
    found: Mapping[Path, Value],
    files: Sequence[tuple[File, str]],
    env: Mapping[str, str],
    cwd: File,
) -> StoreSettings:
    """A store whose keys and secret are found wherever the process runs.

    Their files lie beside the settings that name them. The user's store has its keys in the user's
    folder: a command in a folder without settings opens it as well.
    """
    usual = usual_keys(env)
    if _KEYS not in found and store.url == _usual_url(env) and usual.is_file():
        store = replace(store, keys=f"file:{usual}")
    folders = {source: file.parent for file, source in files}
    for name in ("keys", "secret"):
        kind, _, path = getattr(store, name).partition(":")
        if kind == "file" and path.strip():
            value = found.get(("store", name))
            folder = folders.get(value.source, cwd) if value is not None else cwd
            store = replace(store, **{name: f"file:{folder / path.strip()}"})
    return store


def _with_overrides(
    replay: ReplaySettings,
    found: Mapping[Path, Value],
    env: Mapping[str, str],
    cwd: File,
    problems: list[str],
) -> ReplaySettings:
    """What `thoughtline verify` found to be otherwise than in the policy table."""
    usual = user_folder("config", env) / POLICIES
    if not replay.policies and not usual.is_file():
        return replay
    file = cwd / replay.policies if replay.policies else usual
    try:
        overrides = parse_overrides(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        written = found.get(("replay", "policies"))
        source = written.source if written else str(usual)
        problems.append(
            f"{source}: `replay.policies` is {str(file)!r}, which cannot be used: {why}"
        )
        return replay
    return replace(replay, policies=str(file), overrides=overrides)


def describe(loaded: Loaded) -> list[tuple[str, str, str]]:
    """Every setting with its value, secrets masked, and where it comes from; for people."""
    paths = [key.path for key in KEYS if ANY not in key.path]
    paths += sorted(loaded.sources.keys() - set(paths))
    rows: list[tuple[str, str, str]] = []
    for path in paths:
        value: Any = loaded.settings
        for name in path:
            value = value.get(name) if isinstance(value, dict) else getattr(value, name)
        rows.append((dotted(path), values.spell(value, find(path)), loaded.source(path)))
    return rows
