"""Holds a short conversation, sends it again unchanged to see it accepted, then sends each check.

The connection is closed as soon as an answer begins, so a check costs little more than its prompt.
A rate limit or a server error is tried once more; what still fails is `unknown`, never taken for a
refusal. A key that is not accepted ends the verification at once.
"""

import asyncio
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.agents.caller import TRANSIENT, ProviderRefusal
from thoughtline.agents.provider import Endpoint
from thoughtline.clock import Clock
from thoughtline.engine.capture import output_parts
from thoughtline.errors import WireError
from thoughtline.log.events import (
    Keepalive,
    Outcome,
    ReasoningDelta,
    StreamEvent,
    TurnEnded,
    TurnStarted,
)
from thoughtline.log.parts import Part, Result, Text, Thought
from thoughtline.log.turns import Turn
from thoughtline.verify.checks import MAX_SETUP, Check, plan, unchanged
from thoughtline.verify.report import (
    CheckResult,
    Observed,
    VerifyReport,
    judged,
    override,
    pairing,
    untestable,
)
from thoughtline.verify.sample_history import SampleHistory, as_policy_demands
from thoughtline.wires.base import Inbound, Outbound, Wire, read_up_to

QUESTIONS = ("What is the value of the key alpha?", "And what is the value of the key beta?")
REFUSALS = frozenset({400, 404, 409, 413, 415, 422})
MAX_ERROR_BODY = 1 << 16
RETRY_DELAY = 2.0

pause = asyncio.sleep
"""Waits before the second attempt; tests replace it."""


class EndpointAnswer(Struct, frozen=True, kw_only=True):
    """What the endpoint answered to one request."""

    observed: Observed
    words: str = ""  # its error message
    output: tuple[Part, ...] = ()
    thought: bool = False  # whether the answer has a thought
    transient: bool = False  # whether the same request may succeed later


async def verify(
    endpoint: Endpoint, wire: Wire, clock: Clock, *, elsewhere: Endpoint | None = None
) -> VerifyReport:
    """Check every assumption of the policy row; `elsewhere` is the endpoint with another model."""
    return await _Verifier(endpoint, wire, clock, elsewhere).run()


class _Verifier:
    """One verification of one endpoint."""

    def __init__(
        self, endpoint: Endpoint, wire: Wire, clock: Clock, elsewhere: Endpoint | None
    ) -> None:
        self.endpoint = endpoint
        self.policy = endpoint.target.policy
        self.elsewhere = elsewhere
        self.requests = 0
        self._wire = wire
        self._clock = clock

    async def run(self) -> VerifyReport:
        history, problem = await self._converse()
        if problem:
            return self._report((), problem=problem)
        lacking = _lacking(history)
        history = history.changed("all", lambda turn: as_policy_demands(turn, self.policy))
        answer = await self._ask(self.endpoint, unchanged(self.policy, history).body())
        if answer.observed is not Observed.ACCEPTED:
            return self._report((), problem=f"the unchanged history: {answer.words}")
        rows: dict[str, CheckResult] = {}
        other = self.elsewhere.provider.model if self.elsewhere else ""
        for check in plan(self.policy, history, other):
            rows[check.name] = await self._check(check)
        for row in self._untestable(history):
            rows[row.name] = row
        return self._report(tuple(rows.values()), lacking=lacking)

    async def _converse(self) -> tuple[SampleHistory, str]:
        """Ask two questions: the first up to its answer, the second up to its first call."""
        provider = self.endpoint.provider
        history = SampleHistory(
            dialect=self.endpoint.dialect,
            model=provider.model,
            turns=(),
            options=provider.options,
        )
        message: list[Part] = [Text(text=QUESTIONS[0])]
        second = False
        for _ in range(MAX_SETUP):
            history = replace(history, turns=(*history.turns, Turn(input=tuple(message))))
            sent = history.changed("all", lambda turn: as_policy_demands(turn, self.policy))
            body = unchanged(self.policy, sent).body()
            answer = await self._ask(self.endpoint, body, to_end=True)
            if answer.observed is not Observed.ACCEPTED:
                return history, f"the conversation to test with: {answer.words}"
            last = replace(history.turns[-1], output=answer.output)
            history = replace(history, turns=(*history.turns[:-1], last))
            message = [Result(call=c.id, name=c.name, content="42") for c in last.calls]
            if second:
                break
            if not message:
                second, message = True, [Text(text=QUESTIONS[1])]
        waiting = Turn(input=tuple(message or [Text(text=QUESTIONS[1])]))
        return replace(history, turns=(*history.turns, waiting)), ""

    async def _check(self, check: Check) -> CheckResult:
        target = self.elsewhere if check.other_model and self.elsewhere else self.endpoint
        answer = await self._ask(target, check.body, to_end=check.without_thought)
        observed, words = answer.observed, answer.words
        if check.without_thought and observed is Observed.ACCEPTED and answer.thought:
            observed, words = Observed.IGNORED, "accepted, but it still thinks"
        if check.control and observed is Observed.REFUSED:
            control = await self._ask(target, check.control)
            if control.observed is not Observed.ACCEPTED:
                observed, words = Observed.FAILED, control.words
        return judged(check, observed, words)

    def _untestable(self, history: SampleHistory) -> list[CheckResult]:
        """Results for what one key and one model cannot show."""
        if not any(t.sealed for turn in history.turns for t in turn.thoughts):
            return []
        rows = []
        if "account" in self.policy.binds:
            why = "cannot be tested with one key"
            rows.append(untestable("other-account", "sealed thoughts go to another account", why))
        if self.elsewhere is None and "model" in self.policy.binds:
            why = "name another model with --other-model"
            rows.append(untestable("other-model", "sealed thoughts go to another model", why))
        return rows

    def _report(
        self,
        rows: tuple[CheckResult, ...],
        *,
        problem: str = "",
        lacking: dict[str, str] | None = None,
    ) -> VerifyReport:
        named = {row.name: row for row in rows}
        return VerifyReport(
            policy=self.policy.name,
            dialect=self.policy.dialect,
            model=self.endpoint.provider.model,
            endpoint=self.endpoint.target.origin.endpoint,
            requests=self.requests,
            rows=rows,
            problem=problem,
            findings={**pairing(named), **(lacking or {})},
            override=override(self.policy, named),
        )

    # -- one request -----------------------------------------------------------------------------

    async def _ask(self, target: Endpoint, body: bytes, *, to_end: bool = False) -> EndpointAnswer:
        """Send at most twice; with `to_end`, read the answer to its end."""
        answer = await self._try(target, body, to_end=to_end)
        if answer.transient:
            await pause(RETRY_DELAY)
            answer = await self._try(target, body, to_end=to_end)
        return answer

    async def _try(self, target: Endpoint, body: bytes, *, to_end: bool) -> EndpointAnswer:
        try:
            return await self._send(target, body, to_end=to_end)
        except WireError as error:
            return EndpointAnswer(observed=Observed.FAILED, words=str(error), transient=True)

    async def _send(self, target: Endpoint, body: bytes, *, to_end: bool) -> EndpointAnswer:
        self.requests += 1
        headers = await target.headers()
        request = Outbound(method="POST", url=target.url, headers=headers, body=body)
        async with self._wire.send(request) as inbound:
            if inbound.status != 200:
                return await _refused(inbound)
            types = [value for name, value in inbound.headers if name.lower() == "content-type"]
            reader = target.dialect.reader(
                stream="application/json" not in "".join(types),
                clock=self._clock,
                origin=target.target.origin,
                sent=self._clock.mono(),
            )
            happenings: list[StreamEvent] = []
            async for chunk in inbound.chunks():
                happenings += reader.feed(chunk)
                if not to_end and any(not isinstance(h, _NOTHING_YET) for h in happenings):
                    return EndpointAnswer(observed=Observed.ACCEPTED)
            return _answered([*happenings, *reader.close()])


async def _refused(inbound: Inbound) -> EndpointAnswer:
    body = await read_up_to(inbound, MAX_ERROR_BODY)
    return EndpointAnswer(
        observed=Observed.REFUSED if inbound.status in REFUSALS else Observed.FAILED,
        words=str(ProviderRefusal(status=inbound.status, body=body)),
        transient=inbound.status in TRANSIENT,
    )


_NOTHING_YET = (TurnStarted, Keepalive, TurnEnded)


def _lacking(history: SampleHistory) -> dict[str, str]:
    """What the model did not do, so that some checks could not be made."""
    lacking: dict[str, str] = {}
    if not history.has_thoughts("all"):
        lacking["thoughts"] = "none came; --set what makes the model think"
    if missing := [kind for kind in ("earlier", "plain", "running") if not history.where(kind)]:
        lacking["turns"] = f"the model made none that is {' or '.join(missing)}"
    return lacking


def _answered(happenings: list[StreamEvent]) -> EndpointAnswer:
    for happening in happenings:
        if isinstance(happening, TurnEnded) and happening.outcome is Outcome.FAILED:
            return EndpointAnswer(observed=Observed.REFUSED, words=happening.reason)
    parts = output_parts(happenings)
    thought = any(isinstance(part, Thought) and (part.text or part.sealed) for part in parts)
    thought = thought or any(isinstance(happening, ReasoningDelta) for happening in happenings)
    return EndpointAnswer(observed=Observed.ACCEPTED, output=tuple(parts), thought=thought)


def options(endpoint: Endpoint) -> dict[str, Any]:
    """Request members that make a model think which does not think by itself."""
    policy = endpoint.target.policy
    return {} if policy.thinks else dict(endpoint.dialect.thinking_on)
