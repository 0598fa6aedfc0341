"""Which entries of the cache an upstream has made, as far as that can be told.

An entry says at which endpoint its thought was made and for which account, and not under which
name of the settings. Where several upstreams are at one endpoint, one with a key of its own is told
from the others by its account. Those with the same key, or with none, are alike.
"""

from collections.abc import Iterable

from thoughtline.engine.endpoints import Upstream
from thoughtline.gateway.auth import Auth
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

    def selected(self, name: str | None) -> EntryFilter:
        """The filter for a provider: a policy of this name, or an upstream, whatever its case."""
        upstream = self._named.get((name or "").lower())
        if upstream is None:
            return EntryFilter(provider=name)
        endpoints = upstream.all_endpoints
        told = {endpoint: self._told_by(upstream, endpoint) for endpoint in endpoints}
        accounts = {endpoint: account for endpoint, account in told.items() if account is not None}
        return EntryFilter(provider=name, endpoints=endpoints, accounts=accounts)

    def alike(self, name: str | None) -> tuple[str, ...]:
        """The upstreams whose entries this name selects, where there are others than its own."""
        upstream = self._named.get((name or "").lower())
        if upstream is None:
            return ()
        found = {
            other.name
            for endpoint in upstream.all_endpoints
            for other in self._at[endpoint]
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
            if is_of_account(entry, self._told_by(upstream, entry.endpoint), entry.tenant)
        ]
        likely = [upstream for upstream in found if upstream.configured] or found
        return likely[0].name if len(likely) == 1 else None

    def _told_by(self, upstream: Upstream, endpoint: str) -> str | None:
        """The account by which its entries are told from those of others there; None: by none."""
        own = self._accounts[upstream.name]
        others = {self._accounts[other.name] for other in self._at[endpoint]}
        return own if others != {own} else None
