"""A provider and model to ask, and the endpoint that they resolve to.

    Provider("deepseek", model="deepseek-v4-pro")
    Provider("anthropic", model="claude-sonnet-5-5", options={"thinking": {"type": "adaptive"}})
    Provider("mine", base_url="http://127.0.0.1:8000/v1", model="glm-4.7", policy="vllm")
    Provider.from_string("deepseek/deepseek-v4-pro")

A name of the catalogue brings the URL, the variable that holds the key, the dialect and the policy;
each can be given instead. `options` are members of the request body, as the provider's API names
them. A key from the environment is sent to its own provider's host only. What cannot be right
whatever the environment says (a misspelt name, dialect or policy) is an error at once.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from msgspec import Struct

from thoughtline.agents.keys import Key, current_key
from thoughtline.dialects import DEFAULT, DIALECTS
from thoughtline.dialects.base import Dialect
from thoughtline.engine.endpoints import Upstream
from thoughtline.engine.routes import has_version
from thoughtline.engine.tokens import token_subject
from thoughtline.errors import (
    InvalidArgument,
    MissingKey,
    ProviderError,
    UnknownProvider,
    did_you_mean,
)
from thoughtline.providers.accounts import ACCOUNT_HEADERS
from thoughtline.providers.catalogue import (
    BY_NAME,
    infer_policy,
    known_provider,
    matches_model,
    takes_bearer,
    wants_version,
)
from thoughtline.providers.contracts import policy_names, preferred_dialect
from thoughtline.providers.known_providers import PROVIDERS, SCHEME, SIMULATED, KnownProvider
from thoughtline.providers.overrides import Override, parse_overrides
from thoughtline.replay.guard import Target

_NAMES = tuple(name for name in BY_NAME if name != SIMULATED)
_RESERVED = frozenset({"model", *(dialect.history_member for dialect in DIALECTS.values())})
"""Members of a request that `options` cannot set: they come from the log, or from `model`."""
_HEADERS = (
    ("content-type", "application/json"),
    ("accept", "text/event-stream"),
    ("accept-encoding", "identity"),
)


class _Named(Struct, frozen=True):
    name: str


class Provider(_Named, frozen=True, kw_only=True):
    """A provider, a model, and options of its requests. What is empty follows from the name."""

    model: str
    key: Key = ""  # the credential, or a function that gives it; empty: from its own variable
    account: str = ""  # whose key it is, where it changes; empty: known by the key
    base_url: str = ""
    dialect: str = ""  # chat, responses, messages or gemini
    policy: str = ""  # a row of the policy table; else inferred from the host, then the name
    options: dict[str, Any] = {}  # members of the request body, as the provider's API names them
    headers: dict[str, str] = {}  # added to each request
    path: str = ""  # after `base_url`, instead of the dialect's usual one
    stateful: bool = False  # Responses: the server stores the history, only new items are sent
    websockets: bool = False  # Responses: one connection per chat, only new items are sent
    overrides: str = ""  # a file of `thoughtline verify --write`
    same_as: tuple[str, ...] = ()  # base URLs that are one with it: thoughts go to any of them
    retries: int = 2  # after a rate limit or a server error, before any output
    keep_last: int | None = None  # optional thoughts of the last so many outputs only go back
    loop_only: bool = False  # optional thoughts of the running tool loop only go back

    def __post_init__(self) -> None:
        """Raise for a provider that no environment could make right."""
        if not self.model or not self.model.strip():
            raise InvalidArgument(
                f"provider {self.name!r} needs the name of a model; it has model={self.model!r}"
            )
        if reserved := sorted(_RESERVED & self.options.keys()):
            raise InvalidArgument(
                f"options cannot hold {', '.join(reserved)}: the model is Provider's `model`, and "
                "the messages come from the log"
            )
        known = known_provider(self.name)
        _dialect(self, _policy(self, known, _base_url(self, known)))

    @classmethod
    def from_string(cls, text: str, **more: Any) -> Self:
        """Make a provider of `PROVIDER/MODEL`, such as `deepseek/deepseek-v4-pro`.

        What follows the first slash is the model: `openrouter/z-ai/glm-4.7`. A known model may
        stand alone: `claude-sonnet-5-5` is Anthropic's. `sim/deepseek` is simulated, and needs
        neither key nor network. `more` are other arguments of `Provider`.
        """
        name, slash, model = text.strip().partition("/")
        if name == SIMULATED and model and not more.get("base_url"):
            return cls(**_simulated(model) | more)
        if slash and (known_provider(name) or more.get("base_url")):
            return cls(name, model=model, **more)
        if not slash and known_provider(name):
            raise InvalidArgument(
                f"{text!r} names a provider and no model; expected {name}/MODEL, "
                f"or Provider({name!r}, model=…)"
            )
        owners = [known.name for known in PROVIDERS if not known.host and _owns(known, text)]
        if owners:
            return cls(owners[0], model=text.strip(), **more)
        hint = did_you_mean(name, _NAMES, f"known providers: {', '.join(_NAMES)}")
        raise UnknownProvider(
            f"{text!r} names no known provider; expected PROVIDER/MODEL, such as "
            f"deepseek/deepseek-v4-pro; {hint}"
        )

    def __repr__(self) -> str:
        return f"Provider({self.name!r}, model={self.model!r})"  # never the key


def _simulated(model: str) -> dict[str, Any]:
    """The fields of a simulated provider. Raises `UnknownProvider`."""
    from thoughtline.agents import simulated

    name, _, served = model.partition("/")
    try:
        made = simulated.provider(name, served)
    except ValueError as error:
        raise UnknownProvider(str(error)) from error
    return {field: getattr(made, field) for field in made.__struct_fields__}


def _owns(known: KnownProvider, model: str) -> bool:
    return any(matches_model(pattern, model.strip()) for pattern in known.models)


def as_provider(given: Any) -> Provider | None:
    """A provider as it was given: one, its string, or none. Raises `InvalidArgument`."""
    if given is None or isinstance(given, Provider):
        return given
    if isinstance(given, str):
        return Provider.from_string(given)
    kind = type(given).__name__
    raise InvalidArgument(
        f"a provider is a Provider or a string such as PROVIDER/MODEL, not {kind}"
    )


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where requests to a provider go, and with what."""

    provider: Provider
    dialect: Dialect
    url: str
    target: Target
    credential: Key = ""

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"  # never the key

    async def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers of the next request, with the key as it is now."""
        key = await current_key(self.credential, self.provider.name)
        shown = DEFAULT if takes_bearer(self.url) else self.dialect
        credential = (shown.credential(key),) if key else ()
        own = self.provider.headers.items()
        return (*_HEADERS, *self.dialect.request_headers, *credential, *own)


def resolve(
    provider: Provider, env: Mapping[str, str], account: Callable[[str], str] = lambda _: ""
) -> Endpoint:
    """Find a provider's endpoint; raises for a provider that is unknown or contradicts itself.

    Args:
        provider: the provider to ask.
        env: the environment, for the provider's key.
        account: gives the keyed hash of a credential, or of what names an account.
    """
    known = known_provider(provider.name)
    known = known.located(env) or known if known else None
    base = _base_url(provider, known)
    if known is not None and base == known.base_url and known.missing:
        raise ProviderError(
            f"where {provider.name!r} is depends on {known.missing}: set it, or give a base_url"
        )
    policy = _policy(provider, known, base)
    dialect = _dialect(provider, policy)
    key = provider.key or _key(provider, known, base, env)
    upstream = Upstream(
        name=provider.name,
        base_url=base,
        policy=policy,
        headers=provider.headers,
        endpoints=_endpoints(known, base, dialect),
        overrides=_overrides(provider.overrides),
        same_endpoints=frozenset(url.rstrip("/") for url in provider.same_as),
    )
    target = upstream.target(
        dialect=dialect.name,
        model=provider.model,
        account=account(_account_name(provider, policy, key)),
    )
    return Endpoint(
        provider=provider,
        dialect=dialect,
        url=_url(provider, upstream, dialect, target.origin.endpoint),
        target=target,
        credential=key,
    )


def _account_name(provider: Provider, policy: str, key: Key) -> str:
    """What the account is known by: its name, the subject of its token, or the key itself.

    A name has a line break in it, as no key has. Behind a function there is one account.
    """
    if provider.account:
        return f"account\n{provider.account}"
    if not isinstance(key, str):
        return f"function\n{provider.name}"
    header = ACCOUNT_HEADERS.get(policy, "")
    own = {name.lower(): value for name, value in provider.headers.items()}
    subject, account = token_subject(key), own.get(header, "") if header else ""
    return f"token\n{policy}\n{account}\n{subject}" if subject or account else key


def _base_url(provider: Provider, known: KnownProvider | None) -> str:
    base = provider.base_url or (known.base_url if known else "")
    if base == SCHEME:
        raise ProviderError(
            'a simulated provider is named as in Provider.from_string("sim/deepseek"), or started '
            "with `thoughtline.testing.serving` and given as base_url"
        )
    if base := base.rstrip("/"):
        return base
    hint = did_you_mean(provider.name, _NAMES, f"known are {', '.join(_NAMES)}.")
    raise UnknownProvider(
        f"no provider is called {provider.name!r}; {hint} Any other needs a base_url."
    )


def _policy(provider: Provider, known: KnownProvider | None, base: str) -> str:
    if not provider.policy:
        if known is not None and known.policy and not provider.base_url:
            return known.policy
        return infer_policy(base, provider.name)
    if provider.policy.lower() not in policy_names():
        hint = did_you_mean(provider.policy, policy_names(), f"known: {', '.join(policy_names())}")
        raise ProviderError(f"no policy is called {provider.policy!r}; {hint}")
    return provider.policy.lower()


def _dialect(provider: Provider, policy: str) -> Dialect:
    name = provider.dialect or preferred_dialect(policy)
    if name not in DIALECTS:
        hint = did_you_mean(name, DIALECTS, f"use one of {', '.join(DIALECTS)}")
        raise ProviderError(f"no dialect is called {name!r}; {hint}")
    return DIALECTS[name]


def _endpoints(known: KnownProvider | None, base: str, dialect: Dialect) -> dict[str, str]:
    """The dialect's own base, which takes its path without a version.

    A base URL with a version anywhere in it is taken for one, too.
    """
    own = known.endpoints.get(dialect.name, "") if known and base == known.base_url else ""
    if own or (has_version(base) and not wants_version(base)):
        return {dialect.name: own or base}
    return {}


def _overrides(file: str) -> tuple[Override, ...]:
    if not file:
        return ()
    try:
        return tuple(parse_overrides(Path(file).read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise ProviderError(f"the overrides in {file!r} cannot be used: {error}") from error


def _key(provider: Provider, known: KnownProvider | None, base: str, env: Mapping[str, str]) -> str:
    if known is None or not known.keys or not known.owns(base):
        return ""
    if variable := known.key_variable(env):
        return env[variable].strip()
    raise MissingKey(
        f"there is no key for {provider.name!r}; set {' or '.join(known.keys)}, "
        "or give one: `key=` in a program, --key-env on the command line"
    )


def _url(provider: Provider, upstream: Upstream, dialect: Dialect, base: str) -> str:
    if provider.path:  # as it is, whatever versions are in it
        return f"{base}/{provider.path.lstrip('/')}"
    return upstream.url(dialect.name, dialect.request_path(quote(provider.model, safe="/")))
