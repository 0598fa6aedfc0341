"""What has to be set so that a tool talks with a model through the gateway.

`make_plan` decides it from the tool's row, the chosen model and the settings. It does no I/O, so
`--print`, `thoughtline env` and a real start all show and do the same.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from thoughtline.cli.launch_tools import LaunchTool, fill
from thoughtline.engine.model_names import ModelNames, ModelRow
from thoughtline.engine.path_options import write_options
from thoughtline.errors import SettingsError, did_you_mean
from thoughtline.gateway.settings import Settings, UpstreamSettings, is_loopback
from thoughtline.providers.catalogue import known_provider, matches_model
from thoughtline.providers.known_providers import SIMULATED
from thoughtline.providers.prices import PriceTable

KEY_VARIABLE = "GATEWAY_API_KEY"
"""Holds what a tool shows as its key, where no variable of a provider does."""
NO_KEY = "thoughtline"
"""What a tool shows where nobody asks for a key; most refuse to start without any."""


class ChosenModel(Struct, frozen=True, kw_only=True):
    """An upstream and the model to ask it for; without a model the tool chooses."""

    upstream: str
    model: str = ""

    @property
    def name(self) -> str:
        """As people write it."""
        return f"{self.upstream}/{self.model}"


class LaunchPlan(Struct, frozen=True, kw_only=True):
    """All that a tool needs to be told."""

    tool: LaunchTool
    chosen: ChosenModel
    variables: dict[str, str] = {}
    references: dict[str, str] = {}  # variables that get the value of another one
    unset: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    config_file: Path | None = None
    config_value: Any = None
    missing_key: tuple[str, ...] = ()  # variables, one of which should hold a key

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """The environment that the tool runs in."""
        kept = {name: value for name, value in env.items() if name not in self.unset}
        copied = {name: env[source] for name, source in self.references.items() if source in env}
        return {**kept, **self.variables, **copied}


def make_plan(
    tool: LaunchTool,
    model: str,
    settings: Settings,
    env: Mapping[str, str],
    url: str,
    *,
    effort: str = "",
) -> LaunchPlan:
    """Decide what a tool is told. Raises `SettingsError` for a model that nobody serves.

    Names of models that the tool has built in mean the chosen one, by the path of its requests.
    """
    chosen = choose_model(tool, model, settings)
    key = _Key(tool, chosen, settings, env)
    if key.login and tool.login:
        chosen = ChosenModel(upstream=tool.login, model=chosen.model)
    foreign = chosen.upstream not in (tool.home, tool.login)
    names = _built_in_names(tool, chosen, settings) if foreign else {}
    values = {
        "base": f"{url}/u/{chosen.upstream}{write_options(names, effort)}",
        "model": chosen.model,
        "key_variable": key.variable,
    }
    templates = {**tool.variables, **(tool.model_variables if chosen.model else {})}
    variables = {name: _text(fill(value, values), name, env) for name, value in templates.items()}
    if foreign and (window := _window(chosen, settings)):
        variables |= {name: str(window) for name in tool.window_variables if name not in env}
    if key.value:
        variables[key.variable] = key.value
    references = {} if key.login else dict.fromkeys(tool.key_variables, key.variable)
    references.pop(key.variable, "")
    if key.value:  # no variable has it yet
        variables |= dict.fromkeys(references, key.value)
        references = {}
    arguments = tool.login_arguments if key.login and tool.login_arguments else tool.arguments
    arguments += tool.model_arguments if chosen.model else ()
    entry = tool.config
    return LaunchPlan(
        tool=tool,
        chosen=chosen,
        variables=variables,
        references=references,
        unset=_unset(tool, env, () if key.login else tool.unset, references),
        arguments=tuple(fill(argument, values) for argument in arguments),
        config_file=config_file(tool, env),
        config_value=fill(entry.value, values) if entry else None,
        missing_key=key.missing,
    )


def _unset(
    tool: LaunchTool, env: Mapping[str, str], keys: tuple[str, ...], references: Mapping[str, str]
) -> tuple[str, ...]:
    """The variables that the tool must not see: keys of others, and what leads it past us."""
    return tuple(n for n in (*keys, *tool.elsewhere) if n in env and n not in references)


def choose_model(tool: LaunchTool, model: str, settings: Settings) -> ChosenModel:
    """What a name means: `UPSTREAM/MODEL`, a row of `[models]`, or a model that one claims."""
    model = model.strip() or tool.default
    if not model:
        if tool.home:
            return ChosenModel(upstream=tool.home)
        raise SettingsError(
            f"{tool.title} works with any model, so say which: "
            f"thoughtline launch {tool.name} --model deepseek/deepseek-v4-pro"
        )
    upstream, _, served = model.partition("/")
    if served and upstream in settings.upstreams:
        _check_simulated(upstream, served)
        return ChosenModel(upstream=upstream, model=served)
    if row := _names(settings).find(model):
        return ChosenModel(upstream=row.upstream, model=row.model)
    for name, one in settings.upstreams.items():
        if any(matches_model(pattern, model) for pattern in one.models):
            return ChosenModel(upstream=name, model=model)
    known = ", ".join(settings.upstreams)
    if served:
        near = did_you_mean(upstream, settings.upstreams, f"known are: {known}")
        raise SettingsError(f"the model {model!r} names no upstream that is known; {near}")
    raise SettingsError(
        f"no upstream is known for the model {model!r}; name it, as in deepseek/{model}. "
        f"Known are: {known}"
    )


def _check_simulated(upstream: str, model: str) -> None:
    """Refuse a simulated model that does not exist; only of those is it known beforehand."""
    from thoughtline.agents import simulated

    name = model.partition("/")[0]
    if upstream == SIMULATED and simulated.upstream(name) is None:
        known = [one.removeprefix(simulated.PREFIX) for one in simulated.models()]
        hint = did_you_mean(name, known, f"known are: {', '.join(known)}")
        raise SettingsError(f"there is no simulated model sim/{name}; {hint}")


class _Key:
    """Which key the tool shows: a client key of the gateway, the provider's, or none."""

    def __init__(
        self, tool: LaunchTool, chosen: ChosenModel, settings: Settings, env: Mapping[str, str]
    ) -> None:
        self.variable, self.value = KEY_VARIABLE, NO_KEY
        self.login = False  # it brings its own
        self.missing: tuple[str, ...] = ()
        upstream = settings.upstreams[chosen.upstream]
        variables = _key_variables(upstream)
        held = next((name for name in variables if env.get(name, "").strip()), "")
        if settings.access.clients:
            self.value = next(iter(settings.access.clients.values())).key.reveal()
        elif held and not (tool.login == tool.home == chosen.upstream):
            self.variable, self.value = held, ""
        elif tool.login and chosen.upstream == tool.home:
            self.login, self.value = True, ""
        elif not needs_no_key(upstream):
            self.missing = variables or (KEY_VARIABLE,)


def _key_variables(upstream: UpstreamSettings) -> tuple[str, ...]:
    provider = known_provider(upstream.name)
    return (upstream.env_key,) if upstream.env_key else (provider.keys if provider else ())


def needs_no_key(upstream: UpstreamSettings) -> bool:
    """Whether it asks for no key: it is simulated, or on this machine."""
    host = urlsplit(upstream.base_url).hostname or ""
    return upstream.name == SIMULATED or is_loopback(host)


def _window(chosen: ChosenModel, settings: Settings) -> int | None:
    """How many tokens a prompt of a model may have, if that is known."""
    return PriceTable().context(settings.upstreams[chosen.upstream].policy, chosen.model)


def _text(value: Any, name: str, env: Mapping[str, str]) -> str:
    """A variable's value; a table is added to the one that the user has there already."""
    if isinstance(value, str):
        return value
    try:
        own = json.loads(env.get(name) or "{}")
    except ValueError:
        own = {}
    return json.dumps(merged(own, value) if isinstance(own, dict) else value)


def merged(own: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """A table with another one added to it, level by level."""
    result = dict(own)
    for key, value in ours.items():
        before = result.get(key)
        if isinstance(before, dict) and isinstance(value, Mapping):
            result[key] = merged(before, value)
        else:
            result[key] = value
    return result


def config_file(tool: LaunchTool, env: Mapping[str, str]) -> Path | None:
    """The tool's own file, where it needs an entry in one."""
    if tool.config is None:
        return None
    folder = env.get(tool.config.folder_variable or "", "").strip() or tool.config.folder
    if folder.startswith("~/") and (home := env.get("HOME", "").strip()):
        return Path(home) / folder[2:] / tool.config.file
    return Path(folder).expanduser() / tool.config.file


def _names(settings: Settings) -> ModelNames:
    rows = []
    for pattern, row in settings.models.items():
        upstream, _, model = row.to.partition("/")
        rows.append(ModelRow(pattern=pattern, upstream=upstream, model=model))
    return ModelNames(rows)


def _built_in_names(tool: LaunchTool, chosen: ChosenModel, settings: Settings) -> dict[str, str]:
    """What stands for the chosen model, where the settings do not say otherwise."""
    if not chosen.model:
        return {}
    names = _names(settings)
    return {
        pattern: chosen.model
        for pattern in tool.side_models
        if names.find(pattern.replace("*", "x"), chosen.upstream) is None
    }
