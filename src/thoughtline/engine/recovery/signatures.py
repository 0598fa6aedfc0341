"""Strategies for Gemini's thought signatures, in its own API and behind Chat Completions.

The first call of each running step is signed; where the signature is lost, the provider has a
value of its own that stands for it. A real signature is never replaced by that value.
"""

import base64
from collections.abc import Iterator

from msgspec.structs import replace

from thoughtline.engine.recovery.case import Case, Correction
from thoughtline.log.parts import Carrier
from thoughtline.log.quirks import Need, Quirk, Scope
from thoughtline.providers.policy import BYPASS

ENCODED = f'"{base64.b64encode(BYPASS.strip(chr(34)).encode()).decode()}"'
"""The same value as some clients send it, and some routes want it."""

_SHAPES: dict[Carrier, str] = {
    Carrier.SIGNATURE: "{}",
    Carrier.EXTRA_CONTENT: '{{"google":{{"thought_signature":{}}}}}',
    Carrier.REASONING_DETAILS: (
        '[{{"type":"reasoning.encrypted","data":{},"format":"google-gemini-v1","index":0}}]'
    ),
}


def sign_or_bypass(case: Case) -> Iterator[Correction]:
    """Signatures from the log; else the value that stands for one, in either spelling."""
    carrier = _carrier(case)
    if carrier is None:
        return
    others = tuple(c for c in case.policy.reads if c is not carrier)
    path = replace(case.decision.path, thinking=True)
    for value in (BYPASS, ENCODED):
        quirk = Quirk(
            need=Need.REQUIRED,
            scope=Scope.FIRST_CALL,
            reads=(carrier, *others),
            lost=_SHAPES[carrier].format(value),
            thinks=True,
        )
        yield replace(case.demanding(quirk), path=path)


def _carrier(case: Case) -> Carrier | None:
    own = case.decision.dialect.signature_carrier
    if own is Carrier.EXTRA_CONTENT and case.policy.reads[:1] == (Carrier.REASONING_DETAILS,):
        return Carrier.REASONING_DETAILS
    return own


def resign(case: Case) -> Iterator[Correction]:
    """Without the signatures that went out, for good; signed again where the running loop needs it.

    Models that do not insist on signatures get none.
    """
    correction = case.without(lambda _, out: out.sealed)
    if correction is None:
        return
    policy = case.policy
    optional = policy.scope is Scope.FIRST_CALL and policy.need is not Need.REQUIRED
    for bypass in () if optional else sign_or_bypass(case):
        yield replace(
            bypass,
            found=correction.found,
            overrides=correction.overrides,
            quarantine=correction.quarantine,
        )
    if optional:
        yield correction
