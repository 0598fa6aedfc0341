"""Upstreams: what was configured, completed with what is known, and everything that is known.

How a model's name finds its upstream: `/u/NAME/…` names it outright. Else patterns decide: those of
configured upstreams come before built-in ones, the longest that fits wins, and of two equal ones
that of the upstream with a key. Hosts that serve other people's models claim them only when their
key was found. A model that nobody claims goes to the only configured upstream, if there is just
one. `sim/…` is the built-in simulated provider.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

from thoughtline.policies import infer, names
from thoughtline.settings.hosts import is_loopback, unfit
from thoughtline.settings.masks import Secret
from thoughtline.settings.providers import PROVIDERS, Provider
from thoughtline.settings.schema import Path
from thoughtline.settings.sections import Settings, Standing, Upstream

_BY_NAME = {provider.name: provider for provider in PROVIDERS}


class Has(Protocol):
    """Something with a value."""

    @property
    def value(self) -> Any: ...


def complete(
    settings: Settings, found: Mapping[Path, Has], tables: Iterable[Path], env: Mapping[str, str]
) -> dict[str, Upstream]:
    """All upstreams by name: configured ones, those with a key, then those known.

    The order decides between two that claim a model by the same pattern.
    """
    configured = {
        path[1]: _configured(path[1], found, env) for path in tables if path[0] == "upstreams"
    }
    local = is_loopback(settings.server.host)
    others = [
        _known(provider, env)
        for provider in PROVIDERS
        if provider.name not in configured and (local or not provider.local)
    ]
    with_key = {upstream.name: upstream for upstream in others if upstream.key}
    without = {upstream.name: upstream for upstream in others if not upstream.key}
    return {**configured, **with_key, **without}


def _found_key(provider: Provider, env: Mapping[str, str]) -> str:
    return next((name for name in provider.keys if env.get(name, "").strip()), "")


def _known(provider: Provider, env: Mapping[str, str]) -> Upstream:
    variable = _found_key(provider, env)
    standing: Standing = "environment" if variable else "known"
    return Upstream(
        name=provider.name,
        base_url=provider.base_url,
        env_key=variable,
        key=Secret(env.get(variable, "").strip()),
        policy=provider.policy or infer(provider.base_url),
        models=() if provider.host and not variable else provider.models,
        supports_websockets=provider.websockets,
        endpoints=dict(provider.endpoints),
        standing=standing,
    )


def _configured(name: str, found: Mapping[Path, Has], env: Mapping[str, str]) -> Upstream:
    said: dict[str, Any] = {}
    for path, item in found.items():
        if path[:2] != ("upstreams", name):
            continue
        if len(path) == 3:
            said[path[2]] = item.value
        else:
            said.setdefault(path[2], {})[path[3]] = item.value
    provider = _BY_NAME.get(name)
    if provider is not None:
        said = {**_inherited(provider, said, env), **said}
    base_url = str(said.get("base_url", "")).rstrip("/")
    said["base_url"] = f"{base_url}//" if base_url.endswith(":") else base_url  # sim://
    said["policy"] = said.get("policy") or _policy(name, said["base_url"], provider)
    key = env.get(said.get("env_key", ""), "").strip()
    return Upstream(**said, name=name, key=Secret(key), standing="configured")


def _inherited(
    provider: Provider, said: Mapping[str, Any], env: Mapping[str, str]
) -> dict[str, Any]:
    """What a provider's name stands for.

    At another address neither its key nor its other endpoints: a key goes only where it belongs.
    """
    base_url = said.get("base_url") or provider.base_url
    inherited: dict[str, Any] = {"base_url": base_url, "models": provider.models}
    if _host(base_url) == _host(provider.base_url):
        inherited |= {
            "env_key": _found_key(provider, env),
            "supports_websockets": provider.websockets,
            "endpoints": dict(provider.endpoints),
        }
    return inherited


def _policy(name: str, base_url: str, provider: Provider | None) -> str:
    """By the host, then by the name: a mirror of a provider is mostly named after it."""
    by_host = "generic" if unfit(base_url) else infer(base_url)
    if by_host != "generic":
        return by_host
    if name in names():
        return name
    return (provider.policy or infer(provider.base_url)) if provider else "generic"


def _host(url: str) -> tuple[str, str | None]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", None
    return parts.scheme, parts.netloc
