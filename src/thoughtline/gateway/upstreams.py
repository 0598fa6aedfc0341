"""Which upstream serves a request, and what is known about it.

An upstream is a name, an endpoint and a policy row. A client names one in its path, or its model
does: configured patterns come before built-in ones, and the longest pattern wins.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from msgspec import Struct

from thoughtline.gateway.routes import beneath, join, unversioned
from thoughtline.guards import Target
from thoughtline.parts import Origin
from thoughtline.policies import Override, infer, lookup, observed
from thoughtline.wires.base import Patience

_TONGUES = {"anthropic": "messages", "gemini": "gemini"}
"""Providers whose keys go in a header of their own, also beside their API (`/v1/models`)."""


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
    patience: Patience | None = None
    configured: bool = True  # by the user; False: known to us
    overrides: tuple[Override, ...] = ()  # what was observed there, against the policy table
    served: str = ""  # the model as the upstream knows it, where that is not what is asked for

    def __repr__(self) -> str:
        return f"Upstream({self.name!r}, {self.base_url!r})"  # never the key

    def url(self, dialect: str, path: str, query: str = "") -> str:
        """Where a request in this dialect goes."""
        if base := self.endpoints.get(dialect):
            return join(base, beneath(base, path) or unversioned(path), query)
        return join(self.base_url, path, query)

    def tongue(self, family: str) -> str:
        """The dialect in which a request says who it is: its own, else this provider's."""
        return family or _TONGUES.get(self.policy or infer(self.base_url), "")

    def target(self, *, dialect: str, model: str, account: str) -> Target:
        """Where a request with this model and credential goes, for guards and policies."""
        policy = self.policy or infer(self.base_url)
        model = self.served or model
        endpoint = self.endpoints.get(dialect, self.base_url).rstrip("/")
        row = lookup(policy, dialect, model)
        if self.overrides:
            row = observed(row, self.overrides, name=policy, model=model, endpoint=endpoint)
        return Target(
            name=self.name,
            policy=row,
            origin=Origin(
                dialect=dialect,
                provider=policy,
                endpoint=endpoint,
                account=account,
                model=model,
                asked=model,
            ),
        )


class Directory:
    """All upstreams."""

    def __init__(
        self,
        upstreams: Iterable[Upstream],
        simulated: Callable[[str], Upstream | None] | None = None,
    ) -> None:
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

    def pick(self, name: str, model: str) -> Upstream | None:
        """By name if one is given, else by model; a single configured upstream takes the rest."""
        if self._simulated is not None and (name == "sim" or (not name and model[:4] == "sim/")):
            return self._simulated(model)
        if name:
            return self._all.get(name)
        for _, _, pattern, upstream in self._patterns:
            if fnmatchcase(model, pattern):
                return upstream
        own = [upstream for upstream in self._all.values() if upstream.configured]
        return own[0] if len(own) == 1 else None
