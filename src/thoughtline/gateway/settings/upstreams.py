"""Upstreams: what was configured, completed with what is known, and everything that is known.

How a model's name finds its upstream: `/u/NAME/…` names it outright. Else patterns decide: those of
configured upstreams come before built-in ones, the longest that fits wins, and of two equal ones
that of the upstream with a key. Hosts that serve other people's models claim them only when their
key was found. A model that nobody claims goes to the only configured upstream, if there is just
one. `sim/…` is the built-in simulated provider.
"""

from collections.abc import Mapping
from typing import Any

from thoughtline.gateway.settings.checks import url_problem
from thoughtline.gateway.settings.sections import Secret, UpstreamSettings, UpstreamSource
from thoughtline.providers.catalogue import infer_policy, known_provider
from thoughtline.providers.known_providers import PROVIDERS, KnownProvider


def complete(
    configured: Mapping[str, dict[str, Any]], env: Mapping[str, str], *, local: bool
) -> dict[str, UpstreamSettings]:
    """All upstreams by name: configured ones, those with a key, then those known.

    The order decides between two that claim a model by the same pattern. Servers on this machine
    are among those known only if the gateway is `local`, too.
    """
    upstreams = {name: _configured(name, fields, env) for name, fields in configured.items()}
    others = [
        _known(located, env)
        for provider in PROVIDERS
        if provider.name not in configured and (local or not provider.local)
        if (located := provider.located(env)) is not None
    ]
    others.sort(key=lambda upstream: not upstream.key)
    return upstreams | {upstream.name: upstream for upstream in others}


def _known(provider: KnownProvider, env: Mapping[str, str]) -> UpstreamSettings:
    variable = provider.key_variable(env)
    source: UpstreamSource = "environment" if variable else "known"
    return UpstreamSettings(
        name=provider.name,
        base_url=provider.base_url,
        env_key=variable,
        key=Secret(env.get(variable, "").strip()),
        policy=provider.policy or infer_policy(provider.base_url),
        models=() if provider.host and not variable else provider.models,
        supports_websockets=provider.websockets,
        endpoints=dict(provider.endpoints),
        dialects=provider.dialects,
        source=source,
    )


def _configured(name: str, fields: Mapping[str, Any], env: Mapping[str, str]) -> UpstreamSettings:
    provider = known_provider(name)
    inherited = _inherited(provider, fields, env) if provider else {}
    fields = {**inherited, **fields}
    base_url = str(fields.get("base_url", "")).rstrip("/")
    base_url = f"{base_url}//" if base_url.endswith(":") else base_url  # sim://
    fields["base_url"] = base_url
    fields["policy"] = str(fields.get("policy") or "").lower() or _policy(name, base_url, provider)
    key = env.get(fields.get("env_key", ""), "").strip()
    return UpstreamSettings(**fields, name=name, key=Secret(key), source="configured")


def _inherited(
    provider: KnownProvider, fields: Mapping[str, Any], env: Mapping[str, str]
) -> dict[str, Any]:
    """What a provider's name stands for.

    At another address neither its key nor its other endpoints: a key goes only where it belongs.
    """
    located = provider.located(env)
    base_url = fields.get("base_url") or (located.base_url if located else "")
    inherited: dict[str, Any] = {"base_url": base_url, "models": provider.models}
    if provider.owns(base_url):
        inherited |= {
            "env_key": provider.key_variable(env),
            "supports_websockets": provider.websockets,
            "endpoints": _endpoints(provider, located, base_url),
            "dialects": provider.dialects,
        }
    return inherited


def _endpoints(
    provider: KnownProvider, located: KnownProvider | None, base_url: str
) -> Mapping[str, str]:
    """Its other endpoints: elsewhere, what the environment completes is somewhere else, too."""
    if not provider.is_completed:
        return provider.endpoints
    return located.endpoints if located and located.is_at(base_url) else {}


def _policy(name: str, base_url: str, provider: KnownProvider | None) -> str:
    """By the host, then by the name, then as the provider of this name has it."""
    policy = infer_policy("" if url_problem(base_url) else base_url, name)
    if policy == "generic" and provider:
        return provider.policy or infer_policy(provider.base_url)
    return policy


def same_endpoints(upstreams: Mapping[str, UpstreamSettings]) -> dict[str, frozenset[str]]:
    """By name: the endpoints of an upstream, and of all that are one with it (`same_as`)."""
    groups = {name: {name} for name in upstreams}
    for name, upstream in upstreams.items():
        if upstream.same_as in groups:
            joined = groups[name] | groups[upstream.same_as]
            groups |= dict.fromkeys(joined, joined)
    return {
        name: frozenset(url for one in group for url in _urls(upstreams[one]))
        for name, group in groups.items()
    }


def _urls(upstream: UpstreamSettings) -> list[str]:
    return [url.rstrip("/") for url in (upstream.base_url, *upstream.endpoints.values())]
