"""What a verification found: a verdict per check, and the policy row's fields as observed.

The verdict is `differs` only on evidence: an accepted request where the row expects a refusal, or
the other way round. A broken connection, a missing turn or an answer that proves nothing makes it
`unknown`. An override never loosens what a seal is bound to: that one key accepts it says nothing
about others.
"""

import json
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from thoughtline.log.quirks import Need, Scope
from thoughtline.providers.policy import Policy
from thoughtline.verify.checks import Check, Expected


class Observed(StrEnum):
    """What an endpoint did with a request."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    IGNORED = "ignored"  # accepted, without effect: thinking stayed on
    FAILED = "failed"  # something else went wrong
    UNTESTED = "untested"


class CheckVerdict(StrEnum):
    """Whether the policy row assumes what the endpoint did."""

    AS_ASSUMED = "as assumed"
    DIFFERS = "differs"
    UNKNOWN = "unknown"


class CheckResult(Struct, frozen=True, kw_only=True):
    """One check and what the endpoint answered."""

    name: str
    asks: str
    field: str
    expected: Expected
    observed: Observed
    verdict: CheckVerdict
    words: str = ""  # the endpoint's message, or why there is none


class VerifyReport(Struct, frozen=True, kw_only=True):
    """All checks of one policy row, and what follows from them."""

    policy: str
    dialect: str
    model: str
    endpoint: str
    requests: int
    rows: tuple[CheckResult, ...]
    problem: str = ""  # why nothing could be checked
    findings: dict[str, str] = {}  # facts that the policy row has no field for
    override: dict[str, Any] = field(default_factory=dict)  # fields of the row that differ

    @property
    def differs(self) -> bool:
        """Whether any assumption was wrong."""
        return any(row.verdict is CheckVerdict.DIFFERS for row in self.rows)


def judged(check: Check, observed: Observed, words: str) -> CheckResult:
    """The result of a check: what was observed against what was expected."""
    if observed in (Observed.FAILED, Observed.UNTESTED):
        verdict = CheckVerdict.UNKNOWN
    elif check.expected is Expected.EITHER:
        verdict = CheckVerdict.AS_ASSUMED
    else:
        agreed = (observed is Observed.ACCEPTED) == (check.expected is Expected.ACCEPTED)
        verdict = CheckVerdict.AS_ASSUMED if agreed else CheckVerdict.DIFFERS
        if not (agreed or check.acceptance_proves) and observed is Observed.ACCEPTED:
            verdict = CheckVerdict.UNKNOWN
            words = words or "it may have been dropped without a word"
    return CheckResult(
        name=check.name,
        asks=check.asks,
        field=check.field,
        expected=check.expected,
        observed=observed,
        verdict=verdict,
        words=words,
    )


def untestable(name: str, asks: str, why: str) -> CheckResult:
    """The result of a check that cannot be made."""
    return CheckResult(
        name=name,
        asks=asks,
        field="binds",
        expected=Expected.REFUSED,
        observed=Observed.UNTESTED,
        verdict=CheckVerdict.UNKNOWN,
        words=why,
    )


def pairing(rows: dict[str, CheckResult]) -> dict[str, str]:
    """How a Responses endpoint checks that a call has its reasoning item."""
    with_ids, without_ids = rows.get("pairing-ids"), rows.get("missing-running")
    if with_ids is None or without_ids is None:
        return {}
    if {with_ids.observed, without_ids.observed} - {Observed.ACCEPTED, Observed.REFUSED}:
        return {}
    if without_ids.observed is Observed.REFUSED:
        return {"pairing": "by position"}
    return {"pairing": "by id" if with_ids.observed is Observed.REFUSED else "not checked"}


# -- the row as it was observed ------------------------------------------------------------------


def override(policy: Policy, rows: dict[str, CheckResult]) -> dict[str, Any]:
    """The fields of the policy row that are wrong, with the observed values."""
    wrong = {row.field for row in rows.values() if row.verdict is CheckVerdict.DIFFERS}
    fields: dict[str, Any] = {}
    if wrong & {"need", "scope"}:
        fields |= _needs(policy, rows)
    if "with_tools" in wrong:
        fields["with_tools"] = not policy.with_tools
    if "lost" in wrong:
        fields["lost"] = _lost(rows)
    if "prefix" in wrong:
        fields["prefix"] = Observed.REFUSED in (
            _observed(rows, "prefix-system"),
            _observed(rows, "prefix-gap"),
        )
    if "off" in wrong:
        off = _observed(rows, "off") is Observed.ACCEPTED
        fields["off"] = ["thinking", '{"type":"disabled"}'] if off else []
    if "binds" in wrong:
        fields |= _binds(policy, rows)
    now: dict[str, Any] = {"need": policy.need.value, "scope": policy.scope.value}
    now |= {"lost": policy.lost, "prefix": policy.prefix}
    return {key: value for key, value in fields.items() if now.get(key) != value}


def _observed(rows: dict[str, CheckResult], name: str) -> Observed:
    return rows[name].observed if name in rows else Observed.UNTESTED


def _needs(policy: Policy, rows: dict[str, CheckResult]) -> dict[str, Any]:
    if _observed(rows, "brought") is Observed.ACCEPTED:
        return {"need": Need.IGNORED.value}
    refused = [n for n, row in rows.items() if row.observed is Observed.REFUSED]
    if not any(name.startswith("missing") for name in refused):
        return {"need": Need.RECOMMENDED.value}
    if "missing-plain" in refused:
        scope = Scope.ALL
    elif "missing-earlier" in refused:
        scope = Scope.CALLS
    else:
        scope = Scope.FIRST_CALL if policy.scope is Scope.FIRST_CALL else Scope.LOOP
    return {"need": Need.REQUIRED.value, "scope": scope.value}


def _lost(rows: dict[str, CheckResult]) -> str:
    if _observed(rows, "empty") is Observed.ACCEPTED:
        return '""'
    return '" "' if _observed(rows, "blank") is Observed.ACCEPTED else ""


def _binds(policy: Policy, rows: dict[str, CheckResult]) -> dict[str, Any]:
    more = set(policy.binds)
    if _observed(rows, "other-model") is Observed.REFUSED:
        more |= {"model"}
    if _observed(rows, "altered") is Observed.REFUSED:
        more |= {"provider", "endpoint", "account"}
    return {} if more == policy.binds else {"binds": sorted(more)}


_HEADING = "# What `thoughtline verify` saw at "


def toml(report: VerifyReport, before: str = "") -> str:
    """The differing fields as TOML, appended to what the file `before` says of other rows.

    Where nothing differs, a comment says so.
    """
    about = f"{report.endpoint} ({report.dialect}, {report.model})"
    sections = before.split(_HEADING)[1:]
    others = [_HEADING + section for section in sections if not section.startswith(f"{about},")]
    lines = [
        *(part.rstrip() + "\n" for part in others),
        f"{_HEADING}{about}, in {report.requests} requests.",
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
