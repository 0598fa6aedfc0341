"""Which entries of the cache an upstream has made, as far as that can be told.

An entry says at which endpoint its thought was made, by which provider and for which account, and
not under which name of the settings. Where several upstreams are at one endpoint, those of another
provider are told by that, and one with a key of its own by its account. Those of one provider with
the same key, or with none, are alike.
"""

from collections.abc import Iterable

from thoughtline.engine.endpoints import Upstream
from thoughtline.gateway.auth import Auth
from thoughtline.providers.catalogue import known_name
from thoughtline.stores.base import EntryFilter, ThoughtEntry
from thoughtline.stores.rules import is_of_account


class UpstreamEntries:
    """Tells the entries of upstreams apart."""

    def __init__(self, upstreams: Iterable[Upstream], auth: Auth) -> None:
        self._named = {upstream.name.lower(): upstream for upstream in upstreams}
        self._accounts = {one.name: auth.known_account(one) for one in self._named.values()}
        self._at: dict[str, list[Upstream]] = {}  # by endpoint
        for upstream in self._named.values():
            for endpoint in upstream.all_endpoints:
                self._at.setdefault(endpoint, []).append(upstream)
        self._policies = {at: {one.policy_name for one in found} for at, found in self._at.items()}

    def selected(self, name: str | None) -> EntryFilter:
        """The filter for a provider: a policy, or an upstream, by any of its names in any case."""
        if name is None:
            return EntryFilter()
        upstream = self._find(name)
        if upstream is None:
            return EntryFilter(provider=known_name(name.lower()))
        endpoints, policy = upstream.all_endpoints, upstream.policy_name
        told = {endpoint: self._told_by(upstream, endpoint) for endpoint in endpoints}
        mixed = [endpoint for endpoint in endpoints if len(self._policies[endpoint]) > 1]
        return EntryFilter(
            provider=upstream.name.lower(),
            endpoints=endpoints,
            accounts={endpoint: one for endpoint, one in told.items() if one is not None},
            providers=dict.fromkeys(mixed, policy),
        )

    def alike(self, name: str | None) -> tuple[str, ...]:
        """The upstreams whose entries this name selects, where there are others than its own."""
        upstream = self._find(name) if name is not None else None
        if upstream is None:
            return ()
        found = {
            other.name
            for endpoint in upstream.all_endpoints
            for other in self._like(upstream, endpoint)
            if self._told_by(upstream, endpoint) in {None, self._accounts[other.name]}
        }
        return tuple(sorted(found)) if len(found) > 1 else ()

    def made_by(self, entry: ThoughtEntry) -> str | None:
        """The name of the upstream; None: none has this endpoint now, or several may be it.

        One of the settings goes before one that is only known.
        """
        found = [
            upstream
            for upstream in self._at.get(entry.endpoint, ())
            if len(self._policies[entry.endpoint]) == 1 or upstream.policy_name == entry.provider
            if is_of_account(entry, self._told_by(upstream, entry.endpoint), entry.tenant)
        ]
        likely = [upstream for upstream in found if upstream.configured] or found
        return likely[0].name if len(likely) == 1 else None

    def _told_by(self, upstream: Upstream, endpoint: str) -> str | None:
        """The account by which its entries are told from those of others there; None: by none."""
        own = self._accounts[upstream.name]
        others = {self._accounts[other.name] for other in self._like(upstream, endpoint)}
        return own if others != {own} else None

    def _like(self, upstream: Upstream, endpoint: str) -> list[Upstream]:
        """The upstreams there of the same provider, itself included."""
        policy = upstream.policy_name
        return [other for other in self._at[endpoint] if other.policy_name == policy]

    def _find(self, name: str) -> Upstream | None:
        lowered = name.lower()
        return self._named.get(lowered) or self._named.get(known_name(lowered))
