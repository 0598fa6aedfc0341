"""Layers become settings: merge, look up `env:` references, convert, complete, check.

Every problem is collected, so that a person mends a file once and not line by line. Nothing is
read here but the files that the arguments lead to, and nothing is created.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path as File
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.errors import SettingsError
from thoughtline.policies import parse
from thoughtline.settings import checks, sources, values
from thoughtline.settings.masks import printable
from thoughtline.settings.providers import PROVIDERS
from thoughtline.settings.schema import ANY, KEYS, Key, Path, dotted, find
from thoughtline.settings.sections import (
    ADMIN_TOKEN,
    Access,
    Client,
    Log,
    Replay,
    Server,
    Settings,
    Store,
    Telemetry,
)
from thoughtline.settings.sources import FILE, Layer, Value
from thoughtline.settings.upstreams import complete

_REFERENCE = "env:"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DEFAULT = "default"
POLICIES = "policies.toml"
"""Where `thoughtline verify --write` writes if it is not told, in the user's config folder."""


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
    layers = [sources.read_file(file, source) for file, source in files]
    known = [path for layer in layers for path in layer.tables]
    known += [("upstreams", provider.name) for provider in PROVIDERS]
    layers += [sources.read_env(env, known), sources.read_flags(flags)]
    problems = [problem for layer in layers for problem in layer.problems]
    found = _convert(_merge(layers), env, problems)
    tables = {path: where for layer in layers for path, where in layer.tables.items()}
    settings = _build(found, tables)
    settings = replace(settings, store=_placed(settings.store, env, cwd))
    settings = replace(settings, replay=_observed(settings.replay, found, env, cwd, problems))
    settings = replace(settings, upstreams=complete(settings, found, tables, env))
    origins = {dotted(path): item.source for path, item in found.items()}
    if not problems:
        named = {dotted(path): source for path, source in tables.items()}
        problems += checks.problems(settings, {**named, **origins})
    if problems:
        raise SettingsError("\n".join(dict.fromkeys(map(printable, problems))))
    return Loaded(
        settings=settings,
        sources={path: item.source for path, item in found.items() if item.source != DEFAULT},
        files=tuple(file for file, _ in files if file.is_file()),
    )


def _files(flags: Mapping[str, Any], env: Mapping[str, str], cwd: File) -> list[tuple[File, str]]:
    """The files to read, the weakest first, and what to call them."""
    chosen = flags.get("config") or env.get("THOUGHTLINE_CONFIG", "").strip()
    if chosen:
        file = cwd / File(str(chosen))
        try:
            there = file.exists()
        except (OSError, ValueError):
            there = False
        if not there:
            said = "--config" if flags.get("config") else "$THOUGHTLINE_CONFIG"
            raise SettingsError(
                f"{said}: there is no file {str(chosen)!r}; write one with `thoughtline init`"
            )
        return [(file, str(chosen))]
    user = sources.user_folder("config", env) / FILE
    return [(user, str(user)), (cwd / FILE, FILE)]


def _merge(layers: Iterable[Layer]) -> dict[Path, Value]:
    merged: dict[Path, Value] = {("access", "admin_token"): Value(ADMIN_TOKEN, DEFAULT)}
    for layer in layers:
        merged |= layer.values
    return merged


class Found(Struct, frozen=True):
    """A value that fits its key, and where it was written."""

    value: Any
    source: str


def _convert(
    merged: Mapping[Path, Value], env: Mapping[str, str], problems: list[str]
) -> dict[Path, Found]:
    found: dict[Path, Found] = {}
    for path, value in merged.items():
        key = find(path)
        if key is None:
            continue
        try:
            found[path] = _one(key, path, value, env)
        except SettingsError as error:
            problems.append(str(error))
    return found


def _one(key: Key, path: Path, value: Value, env: Mapping[str, str]) -> Found:
    raw, source, text, hidden = value.raw, value.source, value.text, key.secret
    if path[-1] == "env_key":
        hidden = True  # people put the key itself there
        if isinstance(raw, str):
            raw = raw.strip().removeprefix(_REFERENCE)
    elif isinstance(raw, str) and raw.strip().startswith(_REFERENCE):
        variable = raw.strip().removeprefix(_REFERENCE).strip()
        raw = _look_up(path, variable, source, env)
        if not raw and source == DEFAULT:
            return Found(values.convert(key, "", text=True), DEFAULT)
        source, text, hidden = f"{source} (${variable})", True, True
    try:
        converted = values.convert(key, raw, text=text)
    except values.Misfit:
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
    return Found(converted, source)


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


def _build(found: Mapping[Path, Found], tables: Iterable[Path]) -> Settings:
    def of(*prefix: str) -> dict[str, Any]:
        depth = len(prefix) + 1
        return {p[-1]: f.value for p, f in found.items() if len(p) == depth and p[:-1] == prefix}

    clients = {
        path[-1]: Client(**of(*path)) for path in tables if path[:2] == ("access", "clients")
    }
    return Settings(
        server=Server(**of("server")),
        store=Store(**of("store")),
        access=Access(**of("access"), clients=clients),
        replay=Replay(**of("replay")),
        log=Log(**of("log")),
        telemetry=Telemetry(**of("telemetry")),
    )


def _placed(store: Store, env: Mapping[str, str], cwd: File) -> Store:
    """A store whose file does not depend on where the process happens to stand."""
    if not store.url:
        file = sources.user_folder("data", env) / "thoughtline.db"
        return replace(store, url=f"sqlite:///{file}")
    path = store.url.removeprefix("sqlite:///")
    if path == store.url or not path or path.startswith(("/", "?")):
        return store
    return replace(store, url=f"sqlite:///{cwd / path}")


def _observed(
    replay: Replay,
    found: Mapping[Path, Found],
    env: Mapping[str, str],
    cwd: File,
    problems: list[str],
) -> Replay:
    """What `thoughtline verify` found to be otherwise than in the policy table."""
    usual = sources.user_folder("config", env) / POLICIES
    said = found.get(("replay", "policies"))
    if not replay.policies and not usual.is_file():
        return replay
    file = cwd / replay.policies if replay.policies else usual
    try:
        overrides = parse(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        source = said.source if said else str(usual)
        problems.append(
            f"{source}: `replay.policies` is {str(file)!r}, which cannot be used: {why}"
        )
        return replay
    return replace(replay, policies=str(file), overrides=overrides)


def describe(loaded: Loaded) -> list[tuple[str, str, str]]:
    """Every setting with its value, secrets masked, and where it comes from; for people."""
    paths = [key.path for key in KEYS if ANY not in key.path]
    paths += sorted(path for path in loaded.sources if path not in set(paths))
    rows: list[tuple[str, str, str]] = []
    for path in paths:
        key = find(path)
        value: Any = loaded.settings
        for name in path:
            value = value.get(name) if isinstance(value, dict) else getattr(value, name)
        shown = values.spell(value, key.unit if key else "")
        rows.append((dotted(path), shown, loaded.source(path)))
    return rows
