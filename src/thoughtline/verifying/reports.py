"""What came of it: a row per check, a verdict each, and the row's fields as they were observed.

`differs` is said only on evidence: an accepted request where the row expects a refusal, or the
other way round. A line that broke, a missing turn or an answer that proves nothing is `unknown`.
An override never loosens what a seal is bound to: that one key accepts it says nothing of others.
"""

import json
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from thoughtline.policies import Need, Policy, Scope
from thoughtline.verifying.checks import Check, Expected


class Outcome(StrEnum):
    """What an endpoint did."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    IGNORED = "ignored"  # accepted, and nothing came of it: thinking stayed on
    FAILED = "failed"  # something else went wrong
    UNTESTED = "untested"


class Verdict(StrEnum):
    """What that says of the policy row."""

    AS_ASSUMED = "as assumed"
    DIFFERS = "differs"
    UNKNOWN = "unknown"


class Row(Struct, frozen=True, kw_only=True):
    """One check and its answer."""

    name: str
    asks: str
    field: str
    expected: Expected
    observed: Outcome
    verdict: Verdict
    words: str = ""  # the endpoint's own, or why there are none


class Report(Struct, frozen=True, kw_only=True):
    """Everything that was asked."""

    policy: str
    dialect: str
    model: str
    endpoint: str
    requests: int
    rows: tuple[Row, ...]
    problem: str = ""  # why there are no checks
    findings: dict[str, str] = {}  # what no field of the row says
    override: dict[str, Any] = field(default_factory=dict)  # fields of the row that differ

    @property
    def differs(self) -> bool:
        """Whether any assumption was wrong."""
        return any(row.verdict is Verdict.DIFFERS for row in self.rows)


def judged(check: Check, observed: Outcome, words: str) -> Row:
    """A check with its verdict."""
    if observed in (Outcome.FAILED, Outcome.UNTESTED):
        verdict = Verdict.UNKNOWN
    elif check.expected is Expected.EITHER:
        verdict = Verdict.AS_ASSUMED
    else:
        agreed = (observed is Outcome.ACCEPTED) == (check.expected is Expected.ACCEPTED)
        verdict = Verdict.AS_ASSUMED if agreed else Verdict.DIFFERS
        if check.silent and observed is Outcome.ACCEPTED and not agreed:
            verdict = Verdict.UNKNOWN
            words = words or "it may have been dropped without a word"
    return Row(
        name=check.name,
        asks=check.asks,
        field=check.field,
        expected=check.expected,
        observed=observed,
        verdict=verdict,
        words=words,
    )


def untestable(name: str, asks: str, why: str) -> Row:
    """Something that cannot be asked."""
    return Row(
        name=name,
        asks=asks,
        field="binds",
        expected=Expected.REFUSED,
        observed=Outcome.UNTESTED,
        verdict=Verdict.UNKNOWN,
        words=why,
    )


def pairing(rows: dict[str, Row]) -> dict[str, str]:
    """How a Responses endpoint checks that a call has its reasoning item."""
    named, bare = rows.get("pairing-ids"), rows.get("missing-running")
    told = (Outcome.ACCEPTED, Outcome.REFUSED)
    if named is None or bare is None or {named.observed, bare.observed} - set(told):
        return {}
    if bare.observed is Outcome.REFUSED:
        return {"pairing": "by position"}
    return {"pairing": "by id" if named.observed is Outcome.REFUSED else "not checked"}


# -- the row as it was observed ------------------------------------------------------------------


def override(policy: Policy, rows: dict[str, Row]) -> dict[str, Any]:
    """The fields of the row that turned out otherwise, with what was observed."""
    wrong = {row.field for row in rows.values() if row.verdict is Verdict.DIFFERS}
    made: dict[str, Any] = {}
    if wrong & {"need", "scope"}:
        made |= _needs(policy, rows)
    if "with_tools" in wrong:
        made["with_tools"] = not policy.with_tools
    if "lost" in wrong:
        made["lost"] = _lost(rows)
    if "prefix" in wrong:
        made["prefix"] = Outcome.REFUSED in (
            _seen(rows, "prefix-system"),
            _seen(rows, "prefix-gap"),
        )
    if "off" in wrong:
        off = _seen(rows, "off") is Outcome.ACCEPTED
        made["off"] = ["thinking", '{"type":"disabled"}'] if off else []
    if "binds" in wrong:
        made |= _binds(policy, rows)
    now: dict[str, Any] = {"need": policy.need.value, "scope": policy.scope.value}
    now |= {"lost": policy.lost, "prefix": policy.prefix}
    return {key: value for key, value in made.items() if now.get(key) != value}


def _seen(rows: dict[str, Row], name: str) -> Outcome:
    return rows[name].observed if name in rows else Outcome.UNTESTED


def _needs(policy: Policy, rows: dict[str, Row]) -> dict[str, Any]:
    if _seen(rows, "brought") is Outcome.ACCEPTED:
        return {"need": Need.IGNORED.value}
    refused = [n for n, row in rows.items() if row.observed is Outcome.REFUSED]
    if not any(name.startswith("missing") for name in refused):
        return {"need": Need.RECOMMENDED.value}
    if "missing-plain" in refused:
        scope = Scope.ALL
    elif "missing-earlier" in refused:
        scope = Scope.CALLS
    else:
        scope = Scope.FIRST_CALL if policy.scope is Scope.FIRST_CALL else Scope.LOOP
    return {"need": Need.REQUIRED.value, "scope": scope.value}


def _lost(rows: dict[str, Row]) -> str:
    if _seen(rows, "empty") is Outcome.ACCEPTED:
        return '""'
    return '" "' if _seen(rows, "blank") is Outcome.ACCEPTED else ""


def _binds(policy: Policy, rows: dict[str, Row]) -> dict[str, Any]:
    more = set(policy.binds)
    if _seen(rows, "other-model") is Outcome.REFUSED:
        more |= {"model"}
    if _seen(rows, "altered") is Outcome.REFUSED:
        more |= {"provider", "endpoint", "account"}
    return {} if more == policy.binds else {"binds": sorted(more)}


_HEAD = "# What `thoughtline verify` saw at "


def toml(report: Report, before: str = "") -> str:
    """The differing fields as TOML, after what another file says of other rows.

    Where nothing differs, it says so.
    """
    about = f"{report.endpoint} ({report.dialect}, {report.model})"
    kept = [_HEAD + part for part in before.split(_HEAD)[1:] if not part.startswith(f"{about},")]
    lines = [
        *(part.rstrip() + "\n" for part in kept),
        f"{_HEAD}{about}, in {report.requests} requests.",
        "[[policies]]",
        f"policy = {json.dumps(report.policy)}",
        f"endpoint = {json.dumps(report.endpoint)}",
        f"dialect = {json.dumps(report.dialect)}",
        f"models = [{json.dumps(report.model)}]",
    ]
    if not report.override:
        lines.append("# Nothing differs from the built-in row.")
    lines += [f"{key} = {json.dumps(value)}" for key, value in report.override.items()]
    lines += [f"# {key}: {value}" for key, value in report.findings.items()]
    return "\n".join(lines) + "\n"
