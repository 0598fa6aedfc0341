"""Who may use which tool: a callback is asked, and its answer is a fact of the session.

It answers `allow`, `deny` or `always` (allow, and do not ask again for this tool in this session),
with a reason if it likes. Without a callback everything that was handed to the chat may be used.
"""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.errors import ThoughtlineError
from thoughtline.parts import Call


class Verdict(StrEnum):
    """May the tool be used?"""

    ALLOW = "allow"
    DENY = "deny"
    ALWAYS = "always"


class Ask(Struct, frozen=True, kw_only=True):
    """What a permission callback is asked."""

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


Said = Verdict | str | bool | tuple[Verdict | str | bool, str]
Permission = Callable[[Ask], Said | Awaitable[Said]]
"""Answers an `Ask`, at once or later: a verdict, or a verdict and a reason."""


def understood(said: Any) -> tuple[Verdict, str]:
    """A callback's answer as a verdict and a reason."""
    answer, reason = said if isinstance(said, tuple) and len(said) == 2 else (said, "")
    if isinstance(answer, bool):
        answer = Verdict.ALLOW if answer else Verdict.DENY
    try:
        return Verdict(answer), str(reason)
    except ValueError:
        raise ThoughtlineError(
            f"the permission callback answered {said!r}; expected allow, deny or always"
        ) from None
