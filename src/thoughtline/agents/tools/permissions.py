"""Permissions: a callback decides which tool calls are made, and each answer is written to the log.

The callback answers `allow`, `deny` or `always` (allow, and do not ask again for this tool in this
session), with a reason if it likes. Without a callback every call is made. Calls are asked about
one at a time. `always` is read from the log: a resumed session does not ask again, a fork does.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.agents.record import TurnRecord
from thoughtline.agents.tools.execute import encodable_text
from thoughtline.errors import InvalidArgument
from thoughtline.log.events import PermissionDecision
from thoughtline.log.parts import Call, Decision, Result
from thoughtline.log.sessions import Session

DENIED = "Denied: this call was not allowed."


class Verdict(StrEnum):
    """A permission callback's answer."""

    ALLOW = "allow"
    DENY = "deny"
    ALWAYS = "always"


class Ask(Struct, frozen=True, kw_only=True):
    """A permission callback's question: may this call be made?"""

    call: Call
    session: str

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.call.name

    @property
    def arguments(self) -> Any:
        """The arguments, decoded; the text itself where it is not JSON."""
        try:
            return msgspec.json.decode(self.call.arguments)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return self.call.arguments


Reply = Verdict | str | bool | tuple[Verdict | str | bool, str]
Permission = Callable[[Ask], Reply | Awaitable[Reply]]
"""A permission callback, plain or async: answers with a verdict, or a verdict and a reason."""


class PermissionChecks:
    """Asks the callback about the calls of one run."""

    def __init__(self, permit: Permission | None, session: Session) -> None:
        self._permit = permit
        self._session = session
        self._always = always_allowed(session)
        self._asking = asyncio.Lock()

    async def decide(self, record: TurnRecord, place: int, call: Call) -> Result | None:
        """None when the call may be made, else the result it gets instead."""
        if self._permit is None:
            return None
        async with self._asking:
            verdict, reason = Verdict.ALLOW, "always"
            if call.name not in self._always:
                reply = self._permit(Ask(call=call, session=self._session.id))
                verdict, reason = parse_reply(await reply if inspect.isawaitable(reply) else reply)
            if verdict is Verdict.ALWAYS:
                self._always.add(call.name)
            reason = encodable_text(reason)
            decision = Decision(call=_reference(call, place), verdict=verdict.value, reason=reason)
            await record.note([PermissionDecision(decision=decision)])
        if verdict is not Verdict.DENY:
            return None
        content = f"Denied: {reason}" if reason else DENIED
        return Result(content=content, call=call.id, name=call.name, error=True)


def parse_reply(reply: Any) -> tuple[Verdict, str]:
    """A callback's answer as a verdict and a reason; raises for any other answer."""
    verdict, reason = reply if isinstance(reply, tuple) and len(reply) == 2 else (reply, "")
    if isinstance(verdict, bool):
        verdict = Verdict.ALLOW if verdict else Verdict.DENY
    try:
        return Verdict(verdict), str(reason)
    except ValueError:
        raise InvalidArgument(
            f"the permission callback answered {reply!r}; expected `allow`, `deny` "
            "or `always`, True or False, or a pair of one of these and a reason"
        ) from None


def always_allowed(session: Session) -> set[str]:
    """The tools that the log says are always allowed in this session."""
    turns = {turn.id: turn for turn in session.turns}
    tools: set[str] = set()
    for turn in turns.values():
        parent = turns.get(turn.parent)
        names = {
            _reference(call, place): call.name
            for place, call in enumerate(parent.calls if parent else ())
        }
        tools |= {
            names[part.call]
            for part in turn.input
            if isinstance(part, Decision)
            and part.verdict == Verdict.ALWAYS.value
            and part.call in names
        }
    return tools


def _reference(call: Call, place: int) -> str:
    """How a decision names its call: by id, or by place where the call has none."""
    return call.id or f"#{place}"
