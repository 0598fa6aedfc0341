"""The requests that test a policy row, made from the row and a sample history.

A check is a request that differs in one thing from one that was accepted, and what the policy row
expects of it. `EITHER` marks what the row does not decide: the answer is reported, and never
differs. An endpoint may drop a thought silently: a check whose acceptance proves nothing says so.
"""

import json
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.thoughts import STRING_CARRIERS
from thoughtline.log.keys import string_digest
from thoughtline.log.parts import Call, Carrier, Result, Text, Thought
from thoughtline.log.quirks import Need, Scope
from thoughtline.log.turns import Turn
from thoughtline.providers.policy import THINKING_OFF, Policy
from thoughtline.verify.sample_history import (
    MADE_UP,
    OTHER_SYSTEM,
    SampleHistory,
    adding_thought,
    replacing_thoughts,
    with_broken_seals,
    without_thoughts,
)

MAX_SETUP = 5
"""Exchanges that make the sample history; one more shows that the history is accepted."""
NOT_READ = (Need.FORBIDDEN, Need.NONE)


class Expected(StrEnum):
    """What a policy row says of a request."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    EITHER = "either"


class Check(Struct, frozen=True, kw_only=True):
    """One request, and what is expected of it."""

    name: str
    asks: str  # what is different, in words
    field: str  # the field of the policy row that is tested
    expected: Expected
    body: bytes
    other_model: bool = False  # goes to the other model
    without_thought: bool = False  # accepted only if the answer has no thought
    acceptance_proves: bool = True  # whether being accepted proves anything
    control: bytes = b""  # if this is refused as well, it is for another reason


def unchanged(policy: Policy, history: SampleHistory) -> SampleHistory:
    """The history as the gateway would send it under this row."""
    return history.changed("all", without_thoughts) if policy.need in NOT_READ else history


def plan(policy: Policy, history: SampleHistory, other: str = "") -> list[Check]:
    """Every check that this row and this history allow."""
    return [
        *_missing(policy, history),
        *_placeholders(policy, history),
        *_unread_key(policy, history),
        *_seals(policy, history),
        *_off(policy, history),
        *_other_model(policy, history, other),
    ]


def estimate(policy: Policy, dialect: str, other: str = "") -> int:
    """How many requests verifying this row takes at most."""
    carrier = policy.reads[0] if policy.reads else Carrier.REASONING_CONTENT
    thought = Thought(carrier=carrier, raw=MADE_UP, seals=(string_digest(json.loads(MADE_UP)),))
    call = Call(name="look_up", arguments="{}", id="1", item="fc_1")
    turns = (
        Turn(input=(Text(text="?"),), output=(thought, call)),
        Turn(input=(Result(content="", call="1"),), output=(thought, Text(text="."))),
        Turn(input=(Text(text="?"),), output=(thought, call)),
        Turn(input=(Result(content="", call="1"),)),
    )
    history = SampleHistory(dialect=DIALECTS[dialect], model="any", turns=turns)
    checks = plan(policy, history, other)
    return MAX_SETUP + 1 + len(checks) + sum(bool(check.control) for check in checks)


# -- a thought is missing ------------------------------------------------------------------------

_REACHED_BY = {
    Scope.ALL: ("plain", "earlier", "running"),
    Scope.CALLS: ("earlier", "running"),
    Scope.LOOP: ("running",),
    Scope.FIRST_CALL: ("running",),
}
_KINDS = {
    "plain": "in a plain answer",
    "earlier": "in an earlier tool call",
    "running": "in the running tool loop",
}


def _refused_if(refused: bool) -> Expected:
    return Expected.REFUSED if refused else Expected.ACCEPTED


def _missing(policy: Policy, history: SampleHistory) -> Iterator[Check]:
    if policy.need in NOT_READ or not history.has_thoughts("all"):
        return
    required = policy.need is Need.REQUIRED
    yield Check(
        name="missing",
        asks="every thought is missing",
        field="need",
        expected=_refused_if(required),
        body=history.changed("all", without_thoughts).body(),
    )
    for kind, words in () if policy.prefix else _KINDS.items():
        if history.has_thoughts(kind):
            yield Check(
                name=f"missing-{kind}",
                asks=f"the thought is missing {words}",
                field="scope",
                expected=_refused_if(required and kind in _REACHED_BY[policy.scope]),
                body=history.changed(kind, without_thoughts).body(),
            )
    plain = sorted(history.where("plain"))
    if required and policy.scope is Scope.ALL and plain:
        last = history.turns[plain[-1]]
        short = (
            Turn(input=(Text(text="Hello."),), output=without_thoughts(last).output),
            _LAST_REQUEST,
        )
        yield Check(
            name="missing-toolless",
            asks="the thought is missing, and no tools are declared",
            field="with_tools",
            expected=_refused_if(not policy.with_tools),
            body=replace(history, turns=short).body(tools=()),
        )


_LAST_REQUEST = Turn(input=(Text(text="Say: done."),))


# -- a placeholder, or a thought under another key -----------------------------------------------


def _placeholders(policy: Policy, history: SampleHistory) -> Iterator[Check]:
    if policy.need is not Need.REQUIRED or not history.has_thoughts("all") or not policy.reads:
        return
    carrier = policy.reads[0]

    def body(raw: str) -> bytes:
        changed = history
        for kind in _REACHED_BY[policy.scope]:
            changed = changed.changed(kind, replacing_thoughts(raw, carrier))
        return changed.body()

    if carrier in STRING_CARRIERS:
        for name, raw in (("empty", '""'), ("blank", '" "')):
            looser = raw == '" "' and policy.lost == '""'
            accepted = Expected.ACCEPTED if raw == policy.lost else Expected.REFUSED
            yield Check(
                name=name,
                asks=f"{raw} stands in place of each thought",
                field="lost",
                expected=Expected.EITHER if looser else accepted,
                body=body(raw),
            )
    elif policy.lost:
        yield Check(
            name="placeholder",
            asks=f"{policy.lost} stands in place of each thought",
            field="lost",
            expected=Expected.ACCEPTED,
            body=body(policy.lost),
        )


def _unread_key(policy: Policy, history: SampleHistory) -> Iterator[Check]:
    """A thought where none is read, or under a key that is not read."""
    forbidden = policy.need in NOT_READ
    foreign = [key for key in history.dialect.string_carriers if key not in policy.reads]
    if not foreign or not (forbidden or policy.reads):
        return
    changed = unchanged(policy, history).changed("running", adding_thought(MADE_UP, foreign[0]))
    refused = policy.need is Need.FORBIDDEN
    yield Check(
        name="brought" if forbidden else "foreign-key",
        asks=f"a thought comes as `{foreign[0].value}`",
        field="need" if forbidden else "reads",
        expected=Expected.REFUSED if refused else Expected.EITHER,
        body=changed.body(),
    )


# -- seals ---------------------------------------------------------------------------------------


def _sealed(history: SampleHistory) -> bool:
    return any(t.sealed for n in history.where("running") for t in history.turns[n].thoughts)


def _seals(policy: Policy, history: SampleHistory) -> Iterator[Check]:
    if policy.need in NOT_READ or not _sealed(history):
        return
    yield Check(
        name="altered",
        asks="one character of a seal is changed",
        field="binds",
        expected=_refused_if("endpoint" in policy.binds),
        body=history.changed("running", with_broken_seals).body(),
    )
    yield Check(
        name="prefix-system",
        asks="the system prompt before a sealed thought is changed",
        field="prefix",
        expected=_refused_if(policy.prefix),
        body=history.body(system=OTHER_SYSTEM),
    )
    if policy.prefix and history.has_thoughts("earlier") and history.has_thoughts("plain"):
        yield Check(
            name="prefix-gap",
            asks="a thought is missing between two sealed ones",
            field="prefix",
            expected=Expected.REFUSED,
            body=history.changed("plain", without_thoughts).body(),
        )
    if history.dialect.item_list:
        yield Check(
            name="pairing-ids",
            asks="a reasoning item is missing, its call keeps its id",
            field="pairing",
            expected=Expected.EITHER,
            body=history.changed("running", without_thoughts).body(item_ids=True),
        )


def _other_model(policy: Policy, history: SampleHistory, other: str) -> Iterator[Check]:
    if other and _sealed(history) and policy.need not in NOT_READ:
        yield Check(
            name="other-model",
            asks=f"sealed thoughts go to {other}",
            field="binds",
            expected=_refused_if("model" in policy.binds),
            body=history.body(model=other),
            other_model=True,
            acceptance_proves=False,
            control=replace(history, turns=(_LAST_REQUEST,)).body(model=other),
        )


# -- thinking switched off -----------------------------------------------------------------------


def _off(policy: Policy, history: SampleHistory) -> Iterator[Check]:
    switch = policy.off
    if switch is None and (policy.need is Need.REQUIRED or history.dialect.signed_blocks):
        switch = THINKING_OFF.get(policy.dialect) if policy.need not in NOT_READ else None
    if switch is not None:
        member, value = switch
        yield Check(
            name="off",
            asks=f"thinking is switched off: {member} = {value}",
            field="off",
            expected=_refused_if(policy.off is None),
            body=history.changed("all", without_thoughts).body(options={member: json.loads(value)}),
            without_thought=True,
        )
