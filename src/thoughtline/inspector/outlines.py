"""A session in outline: its turns, their tree and their counts, without what was said.

Enough for a listing, and to know which events a page of turns is folded from. Folded as the log
grows, one event at a time, and kept for as long as it is asked for.
"""

import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.errors import Unreadable
from thoughtline.events import (
    AssistantMessage,
    Event,
    Quarantined,
    SessionForked,
    TurnEnded,
    UserMessage,
)
from thoughtline.inspector.rulings import Ruled, Started, Target, started
from thoughtline.inspector.shapes import Counts
from thoughtline.parts import Part, Text

TITLE = 120
"""Characters of a title."""

ALL = -1
"""In the place of positions: every thought of the turn."""


class Line(Struct):
    """One turn in outline."""

    id: str
    parent: str
    first: int  # seq of its first event, and of its last
    last: int
    provider: str = ""
    model: str = ""
    outcome: str | None = None
    counts: Counts = Counts()
    replay: tuple[Ruled, ...] = ()  # rulings that are new with it
    repeated: int = 0  # and how many of the turn before come first


class Outline:
    """A session, as far as it was read."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.seq = -1
        self.lines: dict[str, Line] = {}
        self.children: dict[str, list[str]] = {}
        self.barred: dict[str, set[int]] = {}  # turn → quarantined thoughts
        self.replayed: dict[str, int] = {}  # turn → requests that carried its thoughts back
        self.origin: SessionForked | None = None
        self.title = ""  # what was asked first; until then, what was answered
        self._asked = False
        self.thoughts = 0
        self._last = ""  # a turn, all its rulings, and how many of the first ones are lost
        self._ruled: tuple[tuple[Ruled, ...], int] = ((), 0)

    def apply(self, event: Event) -> None:
        """Take in the next event."""
        self.seq = event.seq
        if event.type == "turn_started":
            self._start(event)
            return
        if (line := self.lines.get(event.parent)) is not None:
            line.last = event.seq
        if event.type == "reasoning":
            self.thoughts += 1
        elif event.type == "turn_ended" and line is not None:
            if isinstance(body := _body(event), TurnEnded):
                line.outcome = str(body.outcome)
                line.model = body.model or line.model
        elif event.type in ("user_message", "assistant_message") and not self._asked:
            if isinstance(body := _body(event), UserMessage | AssistantMessage):
                self._asked = isinstance(body, UserMessage) and bool(titled(body.parts))
                self.title = titled(body.parts) if self._asked else self.title or titled(body.parts)
        elif event.type == "quarantined":
            if isinstance(body := _body(event), Quarantined):
                self.barred.setdefault(body.turn, set()).update(body.thoughts or (ALL,))
        elif event.type == "session_forked" and isinstance(body := _body(event), SessionForked):
            self.origin = body

    def _start(self, event: Event) -> None:
        if event.id in self.lines:
            return  # a turn starts once
        try:
            body = started(event.data)
        except msgspec.MsgspecError:  # of a newer version, perhaps
            body = Started()
        target = body.target or Target()
        self.lines[event.id] = Line(
            id=event.id,
            parent=event.parent,
            first=event.seq,
            last=event.seq,
            provider=target.provider,
            model=target.model,
            counts=body.counts,
            replay=body.replay,
            repeated=body.repeated,
        )
        self.children.setdefault(event.parent, []).append(event.id)
        self._last, self._ruled = event.id, self._replayed(event.id)
        for memory in {one.memory for one in self._ruled[0] if one.memory and one.carried}:
            self.replayed[memory] = self.replayed.get(memory, 0) + 1

    # -- reading it ------------------------------------------------------------------------------

    def rulings(self, turn: str) -> tuple[Ruled, ...]:
        """All rulings of a turn, also those that stand with the turns before it."""
        return self._replayed(turn)[0]

    def _replayed(self, turn: str) -> tuple[tuple[Ruled, ...], int]:
        """The same, and how many of the first ones stand with a turn that is not here."""
        pieces: list[tuple[Ruled, ...]] = []
        line, wanted = self.lines.get(turn), sys.maxsize
        while line is not None and wanted:
            if line.id == self._last:
                known, lost = self._ruled
                pieces.append(known[: max(0, wanted - lost)])
                wanted = min(wanted, lost)
                break
            pieces.append(line.replay[: max(0, wanted - line.repeated)])
            wanted = min(wanted, line.repeated)
            before = self.lines.get(line.parent)
            line = before if before is not None and before.first < line.first else None
        return tuple(chain.from_iterable(reversed(pieces))), wanted

    def carried(self, lines: Sequence[Line]) -> dict[str, int]:
        """Turns whose thoughts these carried back, and how many requests did so by now."""
        back = {one.memory for line in lines for one in self.rulings(line.id) if one.carried}
        return {id: n for id in back if (n := self.replayed.get(id))}

    @property
    def status(self) -> str | None:
        """How the last turn ended; `running`: it has not; None without turns."""
        last = next(reversed(self.lines.values()), None)
        return None if last is None else last.outcome or "running"

    @property
    def heads(self) -> list[str]:
        """Turns that nothing goes on from, in the order they started."""
        return [id for id in self.lines if id not in self.children]

    @property
    def branches(self) -> dict[str, list[str]]:
        """Turns after which the conversation divides, and what follows them ("": the start)."""
        return {id: list(kids) for id, kids in self.children.items() if len(kids) > 1}

    def path(self, turn: str) -> list[str]:
        """The turns of this session from its beginning to this one."""
        back: list[str] = []
        seen: set[str] = set()
        while turn in self.lines and turn not in seen:
            seen.add(turn)
            back.append(turn)
            turn = self.lines[turn].parent
        return back[::-1]


def titled(parts: Iterable[Part]) -> str:
    """The first words, on one line."""
    words = " ".join(" ".join(p.text.split()) for p in parts if isinstance(p, Text) and p.text)
    return words if len(words) <= TITLE else words[: TITLE - 1].rstrip() + "…"


def _body(event: Event) -> Any:
    try:
        return event.body()
    except Unreadable:
        return None
