"""Asking: hold a short conversation, see that it is accepted as it is, then send each check.

An answer is hung up on as soon as it is known to be one, so a check costs little more than its
prompt. A rate limit or a server's error is tried once more; what still fails is `unknown`, never
taken for a refusal. A key that is not accepted ends everything at once.
"""

import asyncio
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.capture import output
from thoughtline.clock import Clock
from thoughtline.errors import WireError
from thoughtline.events import (
    Happening,
    Keepalive,
    ReasoningDelta,
    TurnEnded,
    TurnStarted,
)
from thoughtline.events import Outcome as Ending
from thoughtline.library.providers import Endpoint
from thoughtline.library.sending import TRANSIENT, Refusal
from thoughtline.parts import Part, Result, Text, Thought
from thoughtline.turns import Turn
from thoughtline.verifying.checks import SETUP, Check, control, plan
from thoughtline.verifying.histories import History, fitted
from thoughtline.verifying.reports import (
    Outcome,
    Report,
    Row,
    judged,
    override,
    pairing,
    untestable,
)
from thoughtline.wires.base import Outbound, Wire, beginning

QUESTIONS = ("What is the value of the key alpha?", "And what is the value of the key beta?")
REFUSALS = frozenset({400, 404, 409, 413, 415, 422})
MOST_WORDS = 1 << 16
PAUSE = 2.0

pause = asyncio.sleep
"""How to wait before trying again; tests do not."""


class Heard(Struct, frozen=True, kw_only=True):
    """One answer."""

    outcome: Outcome
    words: str = ""
    output: tuple[Part, ...] = ()
    thought: bool = False


async def verify(
    endpoint: Endpoint, wire: Wire, clock: Clock, *, elsewhere: Endpoint | None = None
) -> Report:
    """Check every assumption of the endpoint's policy row; `elsewhere` is it with another model."""
    return await _Verifier(endpoint, wire, clock, elsewhere).run()


class _Verifier:
    def __init__(
        self, endpoint: Endpoint, wire: Wire, clock: Clock, elsewhere: Endpoint | None
    ) -> None:
        self.endpoint = endpoint
        self.policy = endpoint.target.policy
        self.elsewhere = elsewhere
        self.requests = 0
        self._wire = wire
        self._clock = clock

    async def run(self) -> Report:
        history, problem = await self._converse()
        if problem:
            return self._report((), problem=problem)
        lacks = _lacks(history)
        history = history.changed("all", lambda turn: fitted(turn, self.policy))
        heard = await self._ask(self.endpoint, control(self.policy, history).body())
        if heard.outcome is not Outcome.ACCEPTED:
            return self._report((), problem=f"the unchanged history: {heard.words}")
        rows: dict[str, Row] = {}
        other = self.elsewhere.provider.model if self.elsewhere else ""
        for check in plan(self.policy, history, other):
            rows[check.name] = await self._check(check)
        for row in self._limits(history):
            rows[row.name] = row
        return self._report(tuple(rows.values()), lacks=lacks)

    async def _converse(self) -> tuple[History, str]:
        """Two questions: one to its answer, the second to its first call."""
        provider = self.endpoint.provider
        history = History(
            dialect=self.endpoint.dialect,
            model=provider.model,
            turns=(),
            options=provider.options,
        )
        said: list[Part] = [Text(text=QUESTIONS[0])]
        second = False
        for _ in range(SETUP):
            history = replace(history, turns=(*history.turns, Turn(input=tuple(said))))
            fit = history.changed("all", lambda turn: fitted(turn, self.policy))
            heard = await self._ask(self.endpoint, control(self.policy, fit).body(), whole=True)
            if heard.outcome is not Outcome.ACCEPTED:
                return history, f"the conversation to test with: {heard.words}"
            last = replace(history.turns[-1], output=heard.output)
            history = replace(history, turns=(*history.turns[:-1], last))
            said = [Result(call=c.id, name=c.name, content="42") for c in last.calls]
            if second:
                break
            if not said:
                second, said = True, [Text(text=QUESTIONS[1])]
        waiting = Turn(input=tuple(said or [Text(text=QUESTIONS[1])]))
        return replace(history, turns=(*history.turns, waiting)), ""

    async def _check(self, check: Check) -> Row:
        target = self.elsewhere if check.other and self.elsewhere else self.endpoint
        heard = await self._ask(target, check.body, whole=check.listens)
        outcome, words = heard.outcome, heard.words
        if check.listens and outcome is Outcome.ACCEPTED and heard.thought:
            outcome, words = Outcome.IGNORED, "accepted, but it still thinks"
        if check.harmless and outcome is Outcome.REFUSED:
            alone = await self._ask(target, check.harmless)
            if alone.outcome is not Outcome.ACCEPTED:
                outcome, words = Outcome.FAILED, alone.words
        return judged(check, outcome, words)

    def _limits(self, history: History) -> list[Row]:
        """What one key and one model cannot show."""
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
        self, rows: tuple[Row, ...], *, problem: str = "", lacks: dict[str, str] | None = None
    ) -> Report:
        named = {row.name: row for row in rows}
        return Report(
            policy=self.policy.name,
            dialect=self.policy.dialect,
            model=self.endpoint.provider.model,
            endpoint=self.endpoint.target.origin.endpoint,
            requests=self.requests,
            rows=rows,
            problem=problem,
            findings={**pairing(named), **(lacks or {})},
            override=override(self.policy, named),
        )

    # -- one request -----------------------------------------------------------------------------

    async def _ask(self, target: Endpoint, body: bytes, *, whole: bool = False) -> Heard:
        """Send, at most twice; with `whole`, read the answer to its end."""
        heard, passing = await self._try(target, body, whole=whole)
        if passing:
            await pause(PAUSE)
            heard, _ = await self._try(target, body, whole=whole)
        return heard

    async def _try(self, target: Endpoint, body: bytes, *, whole: bool) -> tuple[Heard, bool]:
        try:
            return await self._once(target, body, whole=whole)
        except WireError as error:
            return Heard(outcome=Outcome.FAILED, words=str(error)), True

    async def _once(self, target: Endpoint, body: bytes, *, whole: bool) -> tuple[Heard, bool]:
        self.requests += 1
        request = Outbound(method="POST", url=target.url, headers=target.headers, body=body)
        async with self._wire.send(request) as inbound:
            if inbound.status != 200:
                refusal = Refusal(status=inbound.status, body=await beginning(inbound, MOST_WORDS))
                known = inbound.status in REFUSALS
                outcome = Outcome.REFUSED if known else Outcome.FAILED
                return Heard(outcome=outcome, words=str(refusal)), inbound.status in TRANSIENT
            types = [value for name, value in inbound.headers if name.lower() == "content-type"]
            reader = target.dialect.reader(
                stream="application/json" not in "".join(types),
                clock=self._clock,
                origin=target.target.origin,
                sent=self._clock.mono(),
            )
            told: list[Happening] = []
            async for chunk in inbound.chunks():
                told += reader.feed(chunk)
                if not whole and any(not isinstance(h, _NOTHING_YET) for h in told):
                    return Heard(outcome=Outcome.ACCEPTED), False
            return _heard([*told, *reader.close()]), False


_NOTHING_YET = (TurnStarted, Keepalive, TurnEnded)


def _lacks(history: History) -> dict[str, str]:
    """What the model did not do, so that some checks could not be made."""
    made: dict[str, str] = {}
    if not history.thoughtful("all"):
        made["thoughts"] = "none came; --set what makes the model think"
    if missing := [kind for kind in ("earlier", "plain", "running") if not history.where(kind)]:
        made["turns"] = f"the model made none that is {' or '.join(missing)}"
    return made


def _heard(told: list[Happening]) -> Heard:
    for happening in told:
        if isinstance(happening, TurnEnded) and happening.outcome is Ending.FAILED:
            return Heard(outcome=Outcome.REFUSED, words=happening.reason)
    said = output(told)
    thought = any(isinstance(part, Thought) and (part.text or part.sealed) for part in said)
    thought = thought or any(isinstance(happening, ReasoningDelta) for happening in told)
    return Heard(outcome=Outcome.ACCEPTED, output=tuple(said), thought=thought)


def options(endpoint: Endpoint) -> dict[str, Any]:
    """What makes a model think that does not by itself."""
    policy = endpoint.target.policy
    if policy.dialect == "messages" and not policy.thinks:
        return {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    return {}
