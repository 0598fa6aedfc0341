"""Which upstream serves a request, and what is known about it.

An upstream is a name, an endpoint and a policy row. A client names one in its path, or its model
does: configured patterns come before built-in ones, and the longest pattern wins.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.dialects import DEFAULT, DIALECTS
from thoughtline.engine.model_names import ModelNames, ModelRow
from thoughtline.engine.path_options import PathOptions, read_options
from thoughtline.engine.routes import Route, beneath, has_version, join, named_first, unversioned
from thoughtline.log.parts import Origin
from thoughtline.providers.catalogue import (
    asks_for_key,
    credential_dialect,
    infer_policy,
    known_name,
    matches_model,
    refuses_version,
    takes_bearer,
    wants_version,
)
from thoughtline.providers.contracts import find_policy
from thoughtline.providers.known_providers import SIMULATED
from thoughtline.providers.overrides import Override, with_overrides
from thoughtline.replay.guard import LostThought, Target
from thoughtline.wires.base import Wire, WireTimeouts

_SIMULATED = f"{SIMULATED}/"


class Upstream(Struct, frozen=True, kw_only=True):
    """One provider's endpoint."""

    name: str
    base_url: str
    policy: str = ""  # inferred from the host when empty
    key: str = ""  # goes upstream instead of the client's credential
    models: tuple[str, ...] = ()
    headers: Mapping[str, str] = {}
    endpoints: Mapping[str, str] = {}  # dialect → its own base, where that is somewhere else
    supports_websockets: bool = False
    timeouts: WireTimeouts | None = None
    configured: bool = True  # by the user; False: known to us
    overrides: tuple[Override, ...] = ()  # what was observed there, against the policy table
    identity: str = "auto"  # what names a tenant: "token", "credential", or as the policy has it
    wire: Wire | None = None  # a wire of its own, as simulated upstreams have; None: the usual one
    lost_thought: LostThought = LostThought.THINKING_OFF  # where a demanded one is lost
    same_endpoints: frozenset[str] = frozenset()  # of this upstream, and of those it is one with
    dialects: tuple[str, ...] = ()  # that it speaks, the preferred one first; empty: any
    served: str = ""  # the model as the upstream knows it, where that is not what is asked for
    asked: str = ""  # the client's name for it, where a row of [models] put `served` in its place
    effort: str = ""  # how hard it is to think, in place of what the client asks for
    foreign: bool = False  # the client's credential is another provider's, and stays here

    def __repr__(self) -> str:
        return f"Upstream({self.name!r}, {self.base_url!r})"  # never the key

    def url(self, dialect: str, path: str, query: str = "") -> str:
        """Where a request in this dialect goes."""
        base = self.endpoints.get(dialect, self.base_url)
        if not beneath(base, path):
            bare = dialect in self.endpoints or refuses_version(base, dialect)
            path = unversioned(path) if bare else _versioned(base, dialect, path)
        return join(base, path, query)

    @property
    def all_endpoints(self) -> tuple[str, ...]:
        """The endpoints that thoughts made here have in their origin."""
        bases = (self.base_url, *self.endpoints.values())
        return tuple(dict.fromkeys(base.rstrip("/") for base in bases))

    @property
    def policy_name(self) -> str:
        """The policy, as configured or by the host."""
        return self.policy or infer_policy(self.base_url)

    def is_one_with(self, other: "Upstream") -> bool:
        """Whether both are the same provider."""
        shared = self.same_endpoints & other.same_endpoints
        return self.name == other.name or bool(shared)

    @property
    def lacks_key(self) -> bool:
        """Whether nobody has a key for it that may be sent there, although it asks for one."""
        if not self.foreign or self.key or self.headers:
            return False
        return asks_for_key(self.base_url)

    def translates(self, dialect: str) -> str:
        """The dialect that a client's request must be translated to; empty: it goes as it is."""
        if not self.dialects or dialect in self.dialects:
            return ""
        return self.dialects[0]

    def credential_dialect_for(self, family: str) -> str:
        """The dialect in which a request says who it is: its own, else this provider's."""
        if takes_bearer(self.base_url):
            return DEFAULT.name
        return family or credential_dialect(self.policy_name)

    def target(self, *, dialect: str, model: str, account: str) -> Target:
        """Where a request with this model and credential goes, for guards and policies."""
        policy = self.policy_name
        model = self.served or model
        endpoint = self.endpoints.get(dialect, self.base_url).rstrip("/")
        row = find_policy(policy, dialect, model)
        if self.overrides:
            row = with_overrides(row, self.overrides, name=policy, model=model, endpoint=endpoint)
        return Target(
            name=self.name,
            policy=row,
            lost_thought=self.lost_thought,
            same_endpoints=self.same_endpoints,
            origin=Origin(
                dialect=dialect,
                provider=policy,
                endpoint=endpoint,
                account=account,
                model=model,
                asked=model,
            ),
        )


@lru_cache(128)
def _versioned(base_url: str, dialect: str, path: str) -> str:
    """The path with the version that its client left out, where one is needed."""
    if has_version(path) or (has_version(base_url) and not wants_version(base_url)):
        return path
    spoken = DIALECTS.get(dialect)
    if spoken is None:
        listed = f"{path}/".startswith("/models/") and wants_version(base_url)
        return f"/v1{path}" if listed else path
    needed = spoken.always_versioned or wants_version(base_url)
    return f"{spoken.models_path.removesuffix('/models')}{path}" if needed else path


class Directory:
    """All upstreams."""

    def __init__(
        self,
        upstreams: Iterable[Upstream],
        simulated: Callable[[str], Upstream | None] | None = None,
        model_names: ModelNames | None = None,
        simulated_models: Sequence[str] = (),
    ) -> None:
        self.model_names = model_names or ModelNames()
        self.simulated_models = simulated_models
        self._simulated = simulated  # the upstream of a `sim/…` model
        self._all = {upstream.name: upstream for upstream in upstreams}
        self._patterns = sorted(
            (
                (not upstream.configured, -len(pattern), pattern, upstream)
                for upstream in self._all.values()
                for pattern in upstream.models
            ),
            key=lambda entry: entry[:3],
        )

    @property
    def names(self) -> list[str]:
        """The names a client may use in its path."""
        return list(self._all)

    def __iter__(self) -> Iterator[Upstream]:
        return iter(self._all.values())

    def pick(self, name: str, model: str, options: str = "") -> Upstream | None:
        """By name if one is given, else by model; a single configured upstream takes the rest.

        A name that is mapped to another model comes before the upstream that has such models. Where
        the client names the upstream, its models keep their names: only another provider's name
        becomes what a row says that leads there. `options` are those of its path: `SettingsError`
        for those that make no sense.
        """
        if options:
            return self._pick_with(read_options(options), name, model)
        if not self.model_names.rows:
            return self._by_name(name, model) if name else self._by_model(model)
        if not name:
            row, owner = self.model_names.find(model), self._by_model(model)
            return owner if row is None else self._mapped(row, model, owner)
        named = self._by_name(name, model)
        lead = self.model_names.find(model, named.name if named else name)
        owner = self._by_model(model) if lead is not None else None
        if lead is None or owner is None or (named is not None and owner.name == named.name):
            return named
        return self._mapped(lead, model)

    def _pick_with(self, options: PathOptions, name: str, model: str) -> Upstream | None:
        served = options.served(model)
        found = self.pick(name, served)
        if found is None:
            return None
        if served != model:
            found = replace(found, served=found.served or served, asked=model)
        return replace(found, effort=options.effort or found.effort)

    def _by_name(self, name: str, model: str) -> Upstream | None:
        if name == SIMULATED and self._simulated is not None:
            return self._simulated(model)
        return self._all.get(name) or self._alike(name)

    def _by_model(self, model: str) -> Upstream | None:
        """Whose a model is by its own name."""
        if model.startswith(_SIMULATED) and self._simulated is not None:
            return self._simulated(model)
        for _, _, pattern, upstream in self._patterns:
            if matches_model(pattern, model):
                return upstream
        own = [upstream for upstream in self._all.values() if upstream.configured]
        return own[0] if len(own) == 1 else None

    def understood(self, route: Route, model: str) -> Route:
        """A route whose path begins with an upstream's name, as if it began with `/u/`.

        Where the model's own upstream is configured, or has such a path itself, it stays as it is.
        """
        if route.upstream or not route.dialect or route.path.startswith("/v1"):
            return route
        name, rest = named_first(route.path)
        if not name or self.pick(name, model) is None:
            return route
        meant = self.pick("", model)
        if meant is not None and (
            meant.configured or any(beneath(base, route.path) for base in meant.all_endpoints)
        ):
            return route
        return replace(route, upstream=name, path=rest)

    def _mapped(self, row: ModelRow, asked: str, owner: Upstream | None = None) -> Upstream | None:
        """The upstream of a row, which serves the row's model.

        `owner` has the name that is asked for, and so it is whose key the client brings.
        """
        if row.upstream == SIMULATED and self._simulated is not None:
            found, owner = self._simulated(_SIMULATED + row.model), None  # it takes any key
        else:
            found = self._all.get(row.upstream)
        if found is None:
            return None
        return replace(
            found,
            served=found.served or row.model,
            asked=asked,
            effort=row.effort,
            dialects=(row.dialect,) if row.dialect else found.dialects,
            foreign=owner is not None and not owner.is_one_with(found),
        )

    def _alike(self, name: str) -> Upstream | None:
        """The only upstream of this name in another case, or under another of its names."""
        lowered = name.lower()
        alike = [upstream for key, upstream in self._all.items() if key.lower() == lowered]
        return alike[0] if len(alike) == 1 else self._all.get(known_name(name))
