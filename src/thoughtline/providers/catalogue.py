"""What is known of a provider by its name or its host: its row, its policy, its company.

The rows are in `known_providers`, and `hosts` says which policy an endpoint's host speaks for.
"""

from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import urlsplit

from thoughtline.providers.contracts import policy_names
from thoughtline.providers.hosts import HOSTS, TAKES_BEARER
from thoughtline.providers.known_providers import PROVIDERS, SCHEME, SIMULATED, KnownProvider

BY_NAME = {provider.name: provider for provider in PROVIDERS}
_ALIASES = {alias: provider.name for provider in PROVIDERS for alias in provider.aliases}


def known_name(name: str) -> str:
    """Return a provider's own name for what people call it, in any case; else the name itself."""
    lowered = name.lower()
    found = _ALIASES.get(lowered, lowered)
    return found if found in BY_NAME else name


def known_provider(name: str) -> KnownProvider | None:
    """Return the provider of this name, in any case, or of one of its other names."""
    return BY_NAME.get(known_name(name))


def asks_for_key(base_url: str) -> bool:
    """Whether what is there asks for a key, as far as is known."""
    return any(p.owns(base_url) for p in PROVIDERS if not p.local and p.name != SIMULATED)


@lru_cache(maxsize=256)
def _provider_at(base_url: str) -> KnownProvider | None:
    """The provider that is known to have this base URL."""
    return next((provider for provider in PROVIDERS if provider.is_at(base_url)), None)


def wants_version(base_url: str) -> bool:
    """Whether paths have to begin with a version there, as far as is known."""
    if base_url.startswith(SCHEME):
        return True
    provider = _provider_at(base_url)
    return provider is not None and not provider.unversioned


def refuses_version(base_url: str, dialect: str) -> bool:
    """Whether paths of a dialect must not have a version there, as far as is known."""
    provider = _provider_at(base_url)
    return provider is not None and dialect in provider.bare


def is_pattern(name: str) -> bool:
    """Whether this stands for many names of models."""
    return not set(name).isdisjoint("*?[")


@lru_cache(maxsize=4096)
def matches_model(pattern: str, model: str) -> bool:
    """Whether a pattern of model names matches, without regard to case.

    `owner/model` names a model at a host: a pattern that begins with a lab's own name and has no
    slash does not match it, or `deepseek-*` would send `deepseek-ai/DeepSeek-R1` to DeepSeek.
    """
    if "/" in model and "/" not in pattern and pattern[:1] not in ("*", "?", "["):
        return False
    return fnmatchcase(model.lower(), pattern.lower())


@lru_cache(maxsize=256)
def infer_policy(url: str, name: str = "") -> str:
    """Return the policy of an endpoint: by host, else by name; `generic` when neither is known.

    A mirror of a provider is mostly named after it.
    """
    place = urlsplit(url)
    host = (place.hostname or "").lower()
    within = f"{host}{place.path}"
    by_host = next(
        (
            policy
            for pattern, policy in HOSTS
            if fnmatchcase(within if "/" in pattern else host, pattern)
        ),
        "generic",
    )
    named = known_name(name.lower())
    return named if by_host == "generic" and named in policy_names() else by_host


_RESOURCES = frozenset({"generic", "azure", "bedrock", "vertex", "cloudflare"})
"""Policies whose hosts do not belong to one company, or each to a customer of its own."""


@lru_cache(maxsize=256)
def same_company(one: str, other: str) -> bool:
    """Whether two URLs are known hosts of one company: `api.moonshot.cn` and `api.moonshot.ai`."""
    policy = infer_policy(one)
    return policy not in _RESOURCES and policy == infer_policy(other)


_CREDENTIAL_DIALECTS = {"anthropic": "messages", "gemini": "gemini", "vertex": "gemini"}


def credential_dialect(policy: str) -> str:
    """Return the dialect whose credential header a provider reads beside its API (`/v1/models`).

    Empty for providers that take a bearer token everywhere.
    """
    return _CREDENTIAL_DIALECTS.get(policy, "")


@lru_cache(maxsize=256)
def takes_bearer(url: str) -> bool:
    """Whether a host takes a bearer token in every dialect."""
    host = (urlsplit(url).hostname or "").lower()
    return any(fnmatchcase(host, pattern) for pattern in TAKES_BEARER)
