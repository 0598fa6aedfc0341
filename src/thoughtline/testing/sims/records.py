"""One request on its way through a simulator, and what is kept of it afterwards.

An `Exchange` is filled in step by step while a request is answered; a `Record` is what a test finds
in `Simulator.requests`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from thoughtline.testing.sims.ledger import Audit
from thoughtline.testing.sims.values import Reply, Request, Tool, decode


class Usage(NamedTuple):
    """Prompt tokens, counted as a quarter of the bytes."""

    prompt: int
    cached: int
    """Of these, how many are the same leading bytes as in an earlier request."""


class Exchange(msgspec.Struct, kw_only=True):
    """One request while it is being answered; filled in step by step."""

    request: Request
    account: str = ""
    serial: str = ""
    marker: str = ""
    turn: int = 0
    audit: Audit = msgspec.field(default_factory=Audit)
    tools: tuple[Tool, ...] = ()
    read: tuple[str, ...] = ()
    """The thoughts of its own that the model gets to see again."""
    marked: bool = False
    """The visible output carries the serial."""


class Record(NamedTuple):
    """One request that was received, and what came of it."""

    request: Request
    account: str
    marker: str
    audit: Audit
    reply: Reply
    read: tuple[str, ...] = ()
    """The thoughts of its own that the model got to see again: what came back, and was not ignored
    for want of a switch, or withheld."""

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return decode(self.request.body)
