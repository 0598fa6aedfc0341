"""Treatments of signed thinking blocks in the Messages API.

The order is the provider's own (providers want the exact blocks, or an unbroken run of them, or
none): restore, let it drop what does not fit, strip for good, switch off, tell the loop as text.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from thoughtline.gateway import rewrites
from thoughtline.gateway.cases import Case, Change
from thoughtline.gateway.flattening import flattened
from thoughtline.gateway.learned import Lesson
from thoughtline.gateway.preparing import dropping
from thoughtline.gateway.treatments.parameters import rewriting
from thoughtline.parts import Carrier
from thoughtline.policies import Need, Scope
from thoughtline.policies.table import DISABLED
from thoughtline.replay import loop_start


def drop_block(case: Case) -> Iterator[Change]:
    """Ask the provider to drop what is bound elsewhere, from now on; else strip it ourselves."""
    if case.exchange.dialect.name == "messages":
        terms = dropping(case.exchange)
        if terms is not None:
            yield Change(terms=terms)
    yield from strip_signed(case)


def strip_signed(case: Case) -> Iterator[Change]:
    """Without the block it names and all after it; where it names none, without all of them."""
    messages = case.exchange.dialect.name == "messages"
    unsigned = "field required" in case.text
    first = _named(case) if messages else 0
    change = case.drop(
        lambda sent, out: (
            not out.sealed
            if unsigned
            else sent.index >= first and (out.sealed or out.carrier is Carrier.BLOCK)
        )
    )
    if change:
        yield change


def _named(case: Case) -> int:
    """The position in the path of the message that a refusal names; the first one otherwise."""
    anchors = list(case.exchange.request.anchors)
    return anchors.index(case.message) if case.message in anchors else 0


def restore_exact(case: Case) -> Iterator[Change]:
    """The very blocks, though the client seems not to think; else none of them in this loop."""
    yield Change(path=replace(case.exchange.path, thinking=True))
    if case.exchange.dialect.name != "messages":
        yield from strip_signed(case)
        return
    start = loop_start(case.exchange.path.turns)
    change = case.drop(lambda sent, _: sent.index >= start)
    if change is None:
        return
    change = replace(change, path=replace(case.exchange.path, thinking=True))
    if case.policy.name == "generic":  # nobody knows whether this model goes on without
        terms = change.terms or case.exchange.terms
        change = replace(change, terms=replace(terms, rewrites=(*terms.rewrites, flattened)))
    yield change


def restore_or_off(case: Case) -> Iterator[Change]:
    """The blocks of the running loop; else thinking off, if that is an offer; else no loop."""
    policy = case.policy
    offered = "disable `thinking`" in case.text and policy.name == "generic"
    off = policy.off or (DISABLED if offered else None)
    path = replace(case.exchange.path, thinking=True)
    if off or policy.lost:
        lesson = Lesson(need=Need.REQUIRED, scope=Scope.LOOP, thinks=True, off=off)
        unclearing = rewriting(case, rewrites.unclearing).terms
        yield replace(case.stricter(lesson), path=path, terms=unclearing)
    yield Change(path=path)
    if case.exchange.dialect.name == "messages":
        yield rewriting(case, flattened)
