"""Strategies for signed thinking blocks in the Messages API.

The order is the provider's own (providers want the exact blocks, or an unbroken run of them, or
none): restore, let it drop what does not fit, strip for good, switch off, tell the loop as text.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from thoughtline.engine.normalise import dropping_blocks
from thoughtline.engine.recovery.case import Case, Correction
from thoughtline.log.parts import Carrier
from thoughtline.log.quirks import Need, Quirk, Scope
from thoughtline.providers.policy import THINKING_OFF
from thoughtline.replay.needs import loop_start


def drop_block(case: Case) -> Iterator[Correction]:
    """Ask the provider to drop what is bound elsewhere, from now on; else strip it ourselves."""
    if case.decision.dialect.signed_blocks:
        overrides = dropping_blocks(case.decision)
        if overrides is not None:
            yield Correction(overrides=overrides)
    yield from strip_signed(case)


def strip_signed(case: Case) -> Iterator[Correction]:
    """Without the block it names and all after it; where it names none, without all of them."""
    unsigned = "signature: field required" in case.text
    first = _named(case) if case.decision.dialect.signed_blocks else 0
    correction = case.without(
        lambda sent, out: (
            not out.sealed
            if unsigned
            else sent.index >= first and (out.sealed or out.carrier is Carrier.BLOCK)
        )
    )
    if correction:
        yield correction


def drop_fallbacks(case: Case) -> Iterator[Correction]:
    """Without the marks of another model, and without the thoughts before the last of them."""
    yield case.with_rewrite(case.rewrites.drop_fallbacks)


def drop_bare_thoughts(case: Case) -> Iterator[Correction]:
    """Without answers that are nothing but a thought."""
    yield case.with_rewrite(case.rewrites.drop_bare_thoughts)


def _named(case: Case) -> int:
    """The position in the path of the message that a refusal names; the first one otherwise."""
    anchors = list(case.decision.request.anchors)
    return anchors.index(case.message) if case.message in anchors else 0


def restore_exact(case: Case) -> Iterator[Correction]:
    """The very blocks, though the client seems not to think; else none of them in this loop."""
    yield Correction(path=replace(case.decision.path, thinking=True))
    if not case.decision.dialect.signed_blocks:
        yield from strip_signed(case)
        return
    start = loop_start(case.decision.path.turns)
    correction = case.without(lambda sent, _: sent.index >= start)
    if correction is None:
        return
    correction = replace(correction, path=replace(case.decision.path, thinking=True))
    if case.policy.name == "generic":  # nobody knows whether this model goes on without
        overrides = correction.overrides or case.overrides
        overrides = replace(
            overrides, rewrites=(*overrides.rewrites, case.rewrites.flatten_tool_loop)
        )
        correction = replace(correction, overrides=overrides)
    yield correction


def restore_or_off(case: Case) -> Iterator[Correction]:
    """The blocks of the running loop; else thinking off, if that is an offer; else no loop."""
    policy = case.policy
    offered = "disable `thinking`" in case.text and policy.name == "generic"
    off = policy.off or (THINKING_OFF.get(policy.dialect) if offered else None)
    path = replace(case.decision.path, thinking=True)
    if policy.need is Need.REQUIRED:  # of this loop: the model may think in another
        known = Quirk(scope=policy.scope, lost=policy.lost, off=policy.off)
        yield replace(case.demanding(known), quirk=known, path=path)
    if off or policy.lost:
        quirk = Quirk(need=Need.REQUIRED, scope=Scope.LOOP, thinks=True, off=off)
        overrides = case.with_rewrite(case.rewrites.drop_clear_thinking).overrides
        demanding = case.demanding(quirk)
        yield replace(demanding, quirk=quirk, path=path, overrides=overrides)
    yield Correction(path=path)
    yield case.with_rewrite(case.rewrites.flatten_tool_loop)
