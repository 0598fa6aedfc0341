"""Who is asked: a provider as a value, and where that leads.

    Provider("deepseek", model="deepseek-v4-pro")
    Provider("anthropic", model="claude-sonnet-4-5", options={"thinking": {"type": "adaptive"}})
    Provider("mine", base_url="http://127.0.0.1:8000/v1", model="glm-4.7", policy="vllm")

A known name (the settings' table of providers) brings the address, the variable that holds the key,
the dialect and the policy; all of them can be said. `options` are members of the request in the
provider's own words. A key never goes to another host than the one it belongs to.
"""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from msgspec import Struct

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.base import Dialect
from thoughtline.errors import ThoughtlineError
from thoughtline.guards import Target
from thoughtline.parts import Origin
from thoughtline.policies import Policy, infer, lookup, names, observed, parse
from thoughtline.settings.providers import PROVIDERS
from thoughtline.settings.providers import Provider as Known

_SPOKEN = {
    "openai": "responses",
    "codex": "responses",
    "azure": "responses",
    "xai": "responses",
    "anthropic": "messages",
    "bedrock": "messages",
    "gemini": "gemini",
}
"""What is spoken where nobody says it; everybody else speaks Chat Completions."""

_PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/{model}:streamGenerateContent?alt=sse",
}
_OURS = frozenset({"model", "messages", "input", "contents"})
"""Members of a request that are folded from the log, or said otherwise."""
_VERSION = re.compile(r"v\d+[a-z0-9]*")
_KNOWN = {known.name: known for known in PROVIDERS}


class _Named(Struct, frozen=True):
    name: str


class Provider(_Named, frozen=True, kw_only=True):
    """A provider, a model, and how to ask it. What is empty follows from the name."""

    model: str
    key: str = ""  # the credential; empty: from the provider's own variable
    base_url: str = ""
    dialect: str = ""  # chat, responses, messages or gemini
    policy: str = ""  # a row of the policy table; else inferred from the host, then the name
    options: dict[str, Any] = {}  # members of the request body, in the provider's own words
    headers: dict[str, str] = {}  # sent along
    path: str = ""  # instead of the dialect's usual path behind `base_url`
    stateful: bool = False  # Responses: let the server remember, and send only what is new
    websockets: bool = False  # Responses: one connection per chat, and only what is new is sent
    overrides: str = ""  # a file of `thoughtline verify --write`: rows as they were observed
    retries: int = 2  # after a rate limit or a server's error, before anything was shown

    def __repr__(self) -> str:
        return f"Provider({self.name!r}, model={self.model!r})"  # never the key


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where a provider leads: everything a request needs."""

    provider: Provider
    dialect: Dialect
    url: str
    headers: tuple[tuple[str, str], ...]
    target: Target
    credential: str = ""

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"


def endpoint(provider: Provider, env: Mapping[str, str]) -> Endpoint:
    """Where a provider leads; `account` is still to be filled in. Raises for what cannot be."""
    known = _KNOWN.get(provider.name)
    base = (provider.base_url or (known.base_url if known else "")).rstrip("/")
    if not base:
        near = difflib.get_close_matches(provider.name, _KNOWN, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ThoughtlineError(
            f"no provider is called {provider.name!r}; {hint}One that is not known needs a base_url"
        )
    if taken := sorted(_OURS & provider.options.keys()):
        raise ThoughtlineError(
            f"options cannot hold {', '.join(taken)}: the model is Provider's `model`, and what is "
            "said comes from the log"
        )
    policy = _policy(provider, known, base)
    spoken = provider.dialect or _SPOKEN.get(policy, "chat")
    if spoken not in DIALECTS:
        raise ThoughtlineError(f"{spoken!r} is no dialect; use one of {', '.join(DIALECTS)}")
    elsewhere = known.endpoints.get(spoken, "") if known and not provider.base_url else ""
    credential = provider.key or _key(provider, known, base, env)
    where = elsewhere or base
    return Endpoint(
        provider=provider,
        dialect=DIALECTS[spoken],
        url=_url(where, spoken, provider, versioned=bool(elsewhere)),
        headers=(*_headers(spoken, credential), *provider.headers.items()),
        target=Target(
            policy=_row(provider, policy, spoken, where),
            origin=Origin(
                dialect=spoken,
                provider=policy,
                endpoint=where,
                model=provider.model,
                asked=provider.model,
            ),
        ),
        credential=credential,
    )


def _row(provider: Provider, name: str, dialect: str, endpoint: str) -> Policy:
    row = lookup(name, dialect, provider.model)
    if not provider.overrides:
        return row
    try:
        found = parse(Path(provider.overrides).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ThoughtlineError(f"overrides {provider.overrides!r}: {error}") from error
    return observed(row, found, name=name, model=provider.model, endpoint=endpoint)


def _policy(provider: Provider, known: Known | None, base: str) -> str:
    if provider.policy:
        if provider.policy not in names():
            near = difflib.get_close_matches(provider.policy, names(), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names())}"
            raise ThoughtlineError(f"no policy is called {provider.policy!r}; {hint}")
        return provider.policy
    if known is not None and known.policy and not provider.base_url:
        return known.policy
    by_host = infer(base)
    if by_host != "generic":
        return by_host
    return provider.name if provider.name in names() else "generic"


def _key(provider: Provider, known: Known | None, base: str, env: Mapping[str, str]) -> str:
    if known is None or not known.keys or urlsplit(base)[:2] != urlsplit(known.base_url)[:2]:
        return ""
    for variable in known.keys:
        if found := env.get(variable, "").strip():
            return found
    raise ThoughtlineError(
        f"no key for {provider.name!r}: set {' or '.join(known.keys)}, or give Provider a key"
    )


def _url(base: str, dialect: str, provider: Provider, *, versioned: bool) -> str:
    """A version anywhere in the base stands in place of the path's own."""
    path = provider.path or _PATHS[dialect].format(model=quote(provider.model, safe="/"))
    head, _, rest = path.lstrip("/").partition("/")
    said = any(_VERSION.fullmatch(part) for part in urlsplit(base).path.split("/"))
    if not provider.path and (versioned or said) and _VERSION.fullmatch(head):
        path = rest
    return f"{base}/{path.lstrip('/')}"


def _headers(dialect: str, credential: str) -> list[tuple[str, str]]:
    made = [
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
        ("accept-encoding", "identity"),
    ]
    if dialect == "messages":
        made.append(("anthropic-version", "2023-06-01"))
    if credential:
        where = {"messages": "x-api-key", "gemini": "x-goog-api-key"}.get(dialect)
        made.append((where, credential) if where else ("authorization", f"Bearer {credential}"))
    return made
