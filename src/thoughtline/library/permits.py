"""May this call be made? Asked one call at a time, and every answer is written down.

`always` is remembered for the tool and the session, by the log: a resumed session does not ask
again, a fork does.
"""

import asyncio
import inspect

from thoughtline.events import PermissionDecision
from thoughtline.library.records import Record
from thoughtline.parts import Call, Decision, Result
from thoughtline.sessions import Session
from thoughtline.tools import Ask, Permission, Verdict
from thoughtline.tools.permissions import understood
from thoughtline.tools.running import sendable

DENIED = "Denied: this call was not allowed."


class Permits:
    """Decides about the calls of one run."""

    def __init__(self, permit: Permission | None, session: Session) -> None:
        self._permit = permit
        self._session = session
        self._always = granted(session)
        self._asking = asyncio.Lock()

    async def decide(self, record: Record, place: int, call: Call) -> Result | None:
        """None when the call may be made, else the result it gets instead."""
        if self._permit is None:
            return None
        async with self._asking:
            verdict, reason = Verdict.ALLOW, "always"
            if call.name not in self._always:
                said = self._permit(Ask(call=call, session=self._session.id))
                verdict, reason = understood(await said if inspect.isawaitable(said) else said)
            if verdict is Verdict.ALWAYS:
                self._always.add(call.name)
            reason = sendable(reason)
            decision = Decision(call=_name(call, place), verdict=verdict.value, reason=reason)
            await record.note(PermissionDecision(decision=decision))
        if verdict is not Verdict.DENY:
            return None
        content = f"Denied: {reason}" if reason else DENIED
        return Result(content=content, call=call.id, name=call.name, error=True)


def _name(call: Call, place: int) -> str:
    """What a decision refers to: the call's id, or its place where it has none."""
    return call.id or f"#{place}"


def granted(session: Session) -> set[str]:
    """The tools that were allowed for good."""
    turns = {turn.id: turn for turn in session.turns}
    found: set[str] = set()
    for turn in turns.values():
        before = turns.get(turn.parent)
        names = {
            _name(call, place): call.name
            for place, call in enumerate(before.calls if before else ())
        }
        found |= {
            names[part.call]
            for part in turn.input
            if isinstance(part, Decision)
            and part.verdict == Verdict.ALWAYS.value
            and part.call in names
        }
    return found
