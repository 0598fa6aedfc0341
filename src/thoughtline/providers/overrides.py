"""Overrides of the policy table: what was observed at one endpoint, read from a file.

`thoughtline verify --write` writes such a file, and the settings read it (`replay.policies`). An
override holds for one endpoint, dialect and set of models; what it does not say stays as the table
has it.
"""

import tomllib
from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thoughtline.errors import did_you_mean
from thoughtline.log.quirks import Need, Scope
from thoughtline.providers.contracts import policy_names
from thoughtline.providers.policy import Ask, Policy


class Override(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The columns of a policy row that differ at an endpoint; None: as in the table."""

    policy: str  # the row's name
    dialect: str
    models: tuple[str, ...] = ("*",)  # patterns
    endpoint: str = ""  # empty: wherever the row is used
    need: Need | None = None
    scope: Scope | None = None
    with_tools: bool | None = None
    lost: str | None = None
    prefix: bool | None = None
    off: tuple[str, ...] | None = None  # member and JSON value; empty: it cannot be switched off
    binds: frozenset[str] | None = None
    asks: tuple[Ask, ...] | None = None  # paths and JSON values; empty: nothing is asked for

    def applies(self, row: str, dialect: str, model: str, endpoint: str) -> bool:
        """Whether it is about this row, for this model and endpoint."""
        wanted = model.lower()
        return (
            (self.policy, self.dialect) == (row, dialect)
            and self.endpoint.rstrip("/") in ("", endpoint.rstrip("/"))
            and any(fnmatchcase(wanted, pattern.lower()) for pattern in self.models)
        )

    def apply(self, policy: Policy) -> Policy:
        """Return the row with what was observed."""
        plain = ("need", "scope", "with_tools", "lost", "prefix", "binds", "asks")
        observed = {name: value for name in plain if (value := getattr(self, name)) is not None}
        if self.off is not None:
            observed["off"] = self.off or None
        return replace(policy, **observed)


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    policies: tuple[Override, ...] = ()


def parse_overrides(text: str) -> tuple[Override, ...]:
    """Parse the overrides of a file. Raises `ValueError` that says what is wrong with it."""
    try:
        found = msgspec.convert(tomllib.loads(text), _File).policies
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"not as `thoughtline verify --write` writes it: {error}") from error
    for override in found:
        if override.policy not in policy_names():
            known = f"known: {', '.join(policy_names())}"
            hint = did_you_mean(override.policy, policy_names(), known)
            raise ValueError(f"no policy is called {override.policy!r}; {hint}")
        if override.off is not None and len(override.off) not in (0, 2):
            raise ValueError(f"`off` of {override.policy!r} is not a member and its JSON value")
    return found


def with_overrides(
    policy: Policy, overrides: Iterable[Override], *, name: str, model: str, endpoint: str
) -> Policy:
    """Return a row with the overrides of its endpoint; later ones win."""
    for override in overrides:
        if override.applies(name, policy.dialect, model, endpoint):
            policy = override.apply(policy)
    return policy
