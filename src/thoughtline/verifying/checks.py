"""What is asked of an endpoint: one small row each, made from the policy row and a held history.

A check is a request that differs in one thing from one that was accepted, and what the policy row
expects of it. `EITHER` marks what the row does not decide: the answer is told, and never differs.
A check whose acceptance proves nothing (an endpoint may drop a thought without a word) says so.
"""

import json
from collections.abc import Callable, Iterator
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.thoughts import STRINGS
from thoughtline.keys import seal
from thoughtline.parts import Call, Carrier, Result, Text, Thought
from thoughtline.policies import Need, Policy, Scope
from thoughtline.turns import Turn
from thoughtline.verifying.histories import (
    MADE_UP,
    OTHER_SYSTEM,
    History,
    altered,
    bare,
    beside,
    holding,
)

SETUP = 5
"""Most exchanges before the checks begin, and one more to see that the history is accepted."""
DISABLED = ("thinking", '{"type":"disabled"}')
UNREAD = (Need.FORBIDDEN, Need.NONE)


class Expected(StrEnum):
    """What a policy row says of a request."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    EITHER = "either"


class Check(Struct, frozen=True, kw_only=True):
    """One request, and what is expected of it."""

    name: str
    asks: str  # for people
    field: str  # of the policy row
    expected: Expected
    body: bytes
    other: bool = False  # goes to the other model
    listens: bool = False  # accepted only if the answer has no thought
    silent: bool = False  # being accepted proves nothing
    harmless: bytes = b""  # if this is refused as well, it is for another reason


def control(policy: Policy, history: History) -> History:
    """The history as the row would send it."""
    return history.changed("all", bare) if policy.need in UNREAD else history


def plan(policy: Policy, history: History, other: str = "") -> list[Check]:
    """Every check that this row and this history allow."""
    made: list[Check] = []
    for source in _SOURCES:
        made += source(policy, history)
    return made + list(_model(policy, history, other))


def estimate(policy: Policy, dialect: str, other: str = "") -> int:
    """The most requests that verifying this row takes."""
    carrier = policy.reads[0] if policy.reads else Carrier.REASONING_CONTENT
    thought = Thought(carrier=carrier, raw=MADE_UP, seals=(seal(json.loads(MADE_UP)),))
    call = Call(name="look_up", arguments="{}", id="1", item="fc_1")
    turns = (
        Turn(input=(Text(text="?"),), output=(thought, call)),
        Turn(input=(Result(content="", call="1"),), output=(thought, Text(text="."))),
        Turn(input=(Text(text="?"),), output=(thought, call)),
        Turn(input=(Result(content="", call="1"),)),
    )
    history = History(dialect=DIALECTS[dialect], model="any", turns=turns)
    checks = plan(policy, history, other)
    return SETUP + 1 + len(checks) + sum(bool(check.harmless) for check in checks)


# -- a thought that is missing -------------------------------------------------------------------

_REACH = {
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


def _yes(said: bool) -> Expected:
    return Expected.REFUSED if said else Expected.ACCEPTED


def _missing(policy: Policy, history: History) -> Iterator[Check]:
    if policy.need in UNREAD or not history.thoughtful("all"):
        return
    required = policy.need is Need.REQUIRED
    yield Check(
        name="missing",
        asks="every thought is missing",
        field="need",
        expected=_yes(required),
        body=history.changed("all", bare).body(),
    )
    for kind, words in () if policy.prefix else _KINDS.items():
        if history.thoughtful(kind):
            yield Check(
                name=f"missing-{kind}",
                asks=f"the thought is missing {words}",
                field="scope",
                expected=_yes(required and kind in _REACH[policy.scope]),
                body=history.changed(kind, bare).body(),
            )
    plain = sorted(history.where("plain"))
    if required and policy.scope is Scope.ALL and plain:
        last = history.turns[plain[-1]]
        short = (Turn(input=(Text(text="Hello."),), output=bare(last).output), _GO_ON)
        yield Check(
            name="missing-toolless",
            asks="the thought is missing, and no tools are declared",
            field="with_tools",
            expected=_yes(not policy.with_tools),
            body=replace(history, turns=short).body(tools=()),
        )


_GO_ON = Turn(input=(Text(text="Say: done."),))


# -- something in its place ----------------------------------------------------------------------


def _placeholders(policy: Policy, history: History) -> Iterator[Check]:
    if policy.need is not Need.REQUIRED or not history.thoughtful("all") or not policy.reads:
        return
    carrier = policy.reads[0]

    def body(raw: str) -> bytes:
        made = history
        for kind in _REACH[policy.scope]:
            made = made.changed(kind, holding(raw, carrier))
        return made.body()

    if carrier in STRINGS:
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


def _brought(policy: Policy, history: History) -> Iterator[Check]:
    """A thought where none is read, or under a key that is not."""
    forbidden = policy.need in UNREAD
    if history.dialect.name != "chat" or not (forbidden or policy.reads):
        return
    keys = (Carrier.REASONING_CONTENT, Carrier.REASONING)
    foreign = [key for key in keys if key not in policy.reads]
    if not foreign:
        return
    shown = control(policy, history).changed("running", beside(MADE_UP, foreign[0]))
    refused = policy.need is Need.FORBIDDEN
    yield Check(
        name="brought" if forbidden else "foreign-key",
        asks=f"a thought comes as `{foreign[0].value}`",
        field="need" if forbidden else "reads",
        expected=Expected.REFUSED if refused else Expected.EITHER,
        body=shown.body(),
    )


# -- seals ---------------------------------------------------------------------------------------


def _sealed(history: History) -> bool:
    return any(t.sealed for n in history.where("running") for t in history.turns[n].thoughts)


def _seals(policy: Policy, history: History) -> Iterator[Check]:
    if policy.need in UNREAD or not _sealed(history):
        return
    yield Check(
        name="altered",
        asks="one character of a seal is changed",
        field="binds",
        expected=_yes("endpoint" in policy.binds),
        body=history.changed("running", altered).body(),
    )
    yield Check(
        name="prefix-system",
        asks="the system prompt before a sealed thought is changed",
        field="prefix",
        expected=_yes(policy.prefix),
        body=history.body(system=OTHER_SYSTEM),
    )
    if policy.prefix and history.thoughtful("earlier") and history.thoughtful("plain"):
        yield Check(
            name="prefix-gap",
            asks="a thought is missing between two sealed ones",
            field="prefix",
            expected=Expected.REFUSED,
            body=history.changed("plain", bare).body(),
        )
    if history.dialect.name == "responses":
        yield Check(
            name="pairing-ids",
            asks="a reasoning item is missing, its call keeps its id",
            field="pairing",
            expected=Expected.EITHER,
            body=history.changed("running", bare).body(ids=True),
        )


def _model(policy: Policy, history: History, other: str) -> Iterator[Check]:
    if other and _sealed(history) and policy.need not in UNREAD:
        yield Check(
            name="other-model",
            asks=f"sealed thoughts go to {other}",
            field="binds",
            expected=_yes("model" in policy.binds),
            body=history.body(model=other),
            other=True,
            silent=True,
            harmless=replace(history, turns=(_GO_ON,)).body(model=other),
        )


# -- off -----------------------------------------------------------------------------------------


def _off(policy: Policy, history: History) -> Iterator[Check]:
    tried = policy.off
    if tried is None and history.dialect.name in ("chat", "messages"):
        strict = policy.need is Need.REQUIRED or history.dialect.name == "messages"
        tried = DISABLED if strict and policy.need not in UNREAD else None
    if tried is not None:
        member, value = tried
        yield Check(
            name="off",
            asks=f"thinking is switched off: {member} = {value}",
            field="off",
            expected=_yes(policy.off is None),
            body=history.changed("all", bare).body(options={member: json.loads(value)}),
            listens=True,
        )


_SOURCES: tuple[Callable[[Policy, History], Iterator[Check]], ...] = (
    _missing,
    _placeholders,
    _brought,
    _seals,
    _off,
)
