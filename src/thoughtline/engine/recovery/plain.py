"""Strategies for plain thoughts: demanded, under another key, or forbidden."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from thoughtline.dialects.thoughts import STRING_CARRIERS
from thoughtline.engine.recovery.added import FORBIDDEN
from thoughtline.engine.recovery.case import Case, Correction
from thoughtline.log.parts import Carrier
from thoughtline.log.quirks import Need, Quirk, Scope
from thoughtline.providers.policy import THINKING_OFF


def restore_all(case: Case) -> Iterator[Correction]:
    """Every output has its thought; else the shortest value; else the other; else thinking off."""
    yield from _demanded(case, Scope.ALL)


def restore_calls(case: Case) -> Iterator[Correction]:
    """The same for outputs with tool calls."""
    yield from _demanded(case, Scope.CALLS)


def _demanded(case: Case, scope: Scope) -> Iterator[Correction]:
    policy, dialect = case.policy, case.decision.dialect
    values = dialect.placeholders(every_output=scope is Scope.ALL)
    if policy.need is Need.REQUIRED and policy.scope is Scope.ALL:
        scope = Scope.ALL
    carrier = dialect.reasoning_carrier
    if carrier is None:
        return
    more: dict[str, Any] = {"reads": (carrier,)}
    if carrier in dialect.string_carriers:
        # The key it names, and beside it what else the row knows that is not plain text.
        others = tuple(c for c in policy.reads if c not in STRING_CARRIERS)
        more = {"reads": (carrier, *others), "copies": bool(others)}
    if dialect.reasoning_before_each_call:
        more["every_call"] = True
    if policy.need is Need.REQUIRED:
        yield case.demanding(Quirk(scope=policy.scope, lost=policy.lost, off=policy.off))
    quirk = Quirk(need=Need.REQUIRED, scope=scope, with_tools=False, thinks=True, **more)
    for value in dict.fromkeys((policy.lost, *values) if policy.lost else values):
        yield _thinking(case, case.demanding(replace(quirk, lost=value)))
    off = policy.off or (
        THINKING_OFF.get(dialect.name) if "in the thinking mode" in case.text else None
    )
    yield _thinking(case, case.demanding(replace(quirk, lost="", off=off)))


def _thinking(case: Case, correction: Correction) -> Correction:
    """Whatever the client said about thinking: the provider says that it is on."""
    path = case.decision.path
    if path.thinking is not False:
        return correction
    return replace(correction, path=replace(path, thinking=True))


def rename(case: Case) -> Iterator[Correction]:
    """Send it as `reasoning`; where that is not known either, or no key is, not at all.

    A client's key with `null` in it is no thought: it goes alone, before any thought has to.
    """
    yield case.with_rewrite(case.rewrites.strip_null_reasoning, Quirk(strip_null_reasoning=True))
    only = (Carrier.REASONING,)
    strict = "extra_forbidden" in case.text  # a schema that knows no such key by any name
    if case.policy.reads != only and not strict:
        yield case.with_quirk(Quirk(need=Need.RECOMMENDED, reads=only, copies=False, lost=""))
    yield case.with_quirk(FORBIDDEN)


def drop_reasoning(case: Case) -> Iterator[Correction]:
    """Send none; for good, unless it is only that this client has switched thinking off."""
    correction = case.with_quirk(FORBIDDEN)
    once = "thinking is disabled" in case.text
    yield replace(correction, quirk=None) if once else correction
