"""Rows as they were observed: what differs from the table at one endpoint, from a file.

`thoughtline verify --write` writes such a file, and the settings read it (`replay.policies`). An
override holds for one endpoint, dialect and set of models; what it does not say stays as the table
has it.
"""

import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thoughtline.policies.rows import Need, Policy, Scope
from thoughtline.policies.table import names


class Override(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is otherwise than in a row of the table; None: nothing."""

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

    def fits(self, row: str, dialect: str, model: str, endpoint: str) -> bool:
        """Whether it speaks of this row, at this place."""
        wanted = model.lower()
        return (
            (self.policy, self.dialect) == (row, dialect)
            and self.endpoint.rstrip("/") in ("", endpoint.rstrip("/"))
            and any(fnmatchcase(wanted, pattern.lower()) for pattern in self.models)
        )

    def changed(self, policy: Policy) -> Policy:
        """The row with what was observed."""
        plain = ("need", "scope", "with_tools", "lost", "prefix", "binds")
        said = {name: value for name in plain if (value := getattr(self, name)) is not None}
        if self.off is not None:
            said["off"] = self.off or None
        return replace(policy, **said)


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    policies: tuple[Override, ...] = ()


def parse(text: str) -> tuple[Override, ...]:
    """The overrides of a file. Raises `ValueError` that says what is wrong with it."""
    try:
        found = msgspec.convert(tomllib.loads(text), _File).policies
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"not as `thoughtline verify --write` writes it: {error}") from error
    for override in found:
        if override.policy not in names():
            near = get_close_matches(override.policy, names(), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"no policy is called {override.policy!r}{hint}")
        if override.off is not None and len(override.off) not in (0, 2):
            raise ValueError(f"`off` of {override.policy!r} is not a member and its JSON value")
    return found


def observed(
    policy: Policy, overrides: Iterable[Override], *, name: str, model: str, endpoint: str
) -> Policy:
    """A row with all that was observed at this endpoint, the last word last."""
    for override in overrides:
        if override.fits(name, policy.dialect, model, endpoint):
            policy = override.changed(policy)
    return policy
