"""A refusal that names a key which we put in, whatever its words: the key is taken out again.

Nobody knows what an unknown host does not know, nor how it says so. It is known what was added to
the client's own request, so a refusal that names that, and nothing that the client itself sent, is
ours to mend: a client that works without us works with us. One that names nothing at all is taken
for such a refusal once: at a host that nothing is known of, for the first thought it was given.
"""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from thoughtline.dialects import splice
from thoughtline.dialects.thoughts import KEYS
from thoughtline.dialects.upstream_errors import ErrorKind, error_kind, error_text
from thoughtline.engine.decision import RequestDecision
from thoughtline.engine.recovery.case import Case, Correction
from thoughtline.errors import Unreadable
from thoughtline.log.parts import Carrier
from thoughtline.log.quirks import Need, Quirk

STATUSES = (400, 422)
"""What is said of a request that is wrong in itself."""
_REFUSED = re.compile(
    r"unknown|unrecogni[sz]ed|unsupported|unexpected|disallowed|forbidden|no such|not expected"
    r"|not (?:be )?(?:supported|permitted|allowed|recogni[sz]ed|accepted|a valid)"
    r"|extra (?:inputs|fields|keys)|extra_|additional propert|cannot find field"
    r"|invalid (?:key|field|property|parameter|argument|type)|does not match any of the expected"
)
_VAGUE = re.compile(
    r"bad[ _]?request|(?:invalid|malformed|illegal|unprocessable|wrong)[ _](?:request|json|payload"
    r"|body|entity|input|format|schema|messages?|conversation|syntax)"
    r"|validation[ _](?:error|failed)|schema (?:validation|mismatch)"
    r"|does not (?:match|conform to) the schema"
    r"|(?:failed|unable|error|could not|cannot) (?:to )?(?:pars|deserializ|decod|validat)"
)
"""Words that say that a request is wrong, and not what is wrong with it."""
_HISTORY = r"(?:messages|input|contents)\b[^{}]{0,160}?"
FORBIDDEN = Quirk(need=Need.FORBIDDEN, reads=(), copies=False, lost="")


def names_added_key(decision: RequestDecision, status: int, refusal: bytes) -> bool:
    """Whether a refusal names a key that is only in the request because we put it in."""
    if status not in STATUSES or not decision.altered:
        return False
    text = refusal.decode("utf-8", "replace").replace('\\"', '"').lower()
    if not _REFUSED.search(text):
        return False
    return bool(_switches(decision, text) or _carriers(decision, text) or _fields(decision, text))


def is_vague(decision: RequestDecision, status: int, refusal: bytes) -> bool:
    """Whether a host that nothing is known of refuses, without a reason, the first thought it got.

    If it takes thoughts, it was given more of them later on, and if the request is wrong without
    the thought, too, the second answer says the same.
    """
    plan = decision.replay_plan
    if status not in STATUSES or decision.target.origin.provider != "generic":
        return False
    if not decision.altered or len([r for r in plan.revisions if r.thoughts]) != 1:
        return False
    words = error_text(refusal).lower()
    kind = error_kind(status, refusal.decode("utf-8", "replace"))
    return not words or (_VAGUE.search(words) is not None and kind is ErrorKind.INVALID)


def take_out(case: Case) -> Iterator[Correction]:
    """Without the key it names, for good: a parameter, or the thoughts that stand under it."""
    decision, policy = case.decision, case.policy
    if switches := _switches(decision, case.text):
        yield case.with_quirk(Quirk(refused_asks=switches))
    if fields := _fields(decision, case.text):
        kept = {name: raw for name, raw in case.overrides.fields.items() if name not in fields}
        overrides = replace(case.overrides, fields=kept)
        yield Correction(overrides=overrides, quirk=Quirk(drops=fields))
    if refused := _carriers(decision, case.text):
        rest = tuple(carrier for carrier in policy.reads if carrier not in refused)
        if policy.copies and rest:  # the same thought stands under another key, too
            yield case.with_quirk(Quirk(reads=rest))
        yield case.with_quirk(FORBIDDEN)
    elif not fields and not switches:  # it names nothing
        yield case.with_quirk(FORBIDDEN)


def _carriers(decision: RequestDecision, text: str) -> frozenset[Carrier]:
    """The carriers that we put in, and that the refusal names."""
    added = {placed.carrier for made in decision.replay_plan.revisions for placed in made.thoughts}
    return frozenset(
        carrier
        for carrier in added
        if any(_names(text, key) and _ours(decision, text, key) for key in KEYS.get(carrier, ()))
    )


def _switches(decision: RequestDecision, text: str) -> tuple[str, ...]:
    """The switches that we said, and that the refusal names."""
    own, asks = decision.original.body, decision.target.policy.asks
    return tuple(
        path
        for path, _ in asks
        for key in [path.rpartition(".")[2]]
        if b'"%s"' % key.encode() not in own and _names(text, key)
    )


def _fields(decision: RequestDecision, text: str) -> tuple[str, ...]:
    """The top-level members that we set, and that the refusal names."""
    own = decision.original.body
    return tuple(
        name
        for name, raw in decision.overrides.fields.items()
        if raw is not None and b'"%s"' % name.encode() not in own and _names(text, name)
    )


def _names(text: str, key: str, before: str = "") -> bool:
    """Whether a text names a key, and not only a longer one that it is a part of."""
    whole = rf"(?<![a-z0-9_]){re.escape(key.lower())}(?![a-z0-9_])"
    return re.search(before + whole, text) is not None


def _ours(decision: RequestDecision, text: str, key: str) -> bool:
    """Whether the client itself sends no such key where the refusal sees one."""
    own = decision.original.body
    count = own.count(b'"%s"' % key.encode())
    if not count:
        return True
    try:
        parameter = key in splice.members(own)
    except Unreadable:
        return False
    # A parameter of the same name is another thing than a key in the history.
    return parameter and count == 1 and _names(text, key, _HISTORY)
