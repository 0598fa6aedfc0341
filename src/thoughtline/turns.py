"""One exchange: what went in, what came out, and how it ended.

A turn is folded from events, or read from a client's request body, where it has no identity yet:
a request's history is a path of such turns. Inputs are what people and tools said; outputs are
what the model said, thoughts among them in arrival order. System prompts are no part of a turn:
they change from request to request.
The rooms above are `keys` (how a turn is recognised) and `sessions` (how turns form a tree).
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct

from thoughtline.events import Outcome, Usage
from thoughtline.parts import Blob, Call, Origin, Part, Text, Thought


class Turn(Struct, frozen=True, gc=False, kw_only=True):
    """One exchange with one parent."""

    input: tuple[Part, ...] = ()
    output: tuple[Part, ...] = ()
    id: str = ""
    parent: str = ""
    session: str = ""
    target: Origin | None = None
    outcome: Outcome | None = None  # None: still running, or a client's echo
    reason: str = ""  # why it is not completed
    usage: Usage | None = None
    response: str = ""
    started: float = 0.0
    ended: float = 0.0
    quarantined: frozenset[int] = frozenset()  # positions among its thoughts
    replay: tuple[Any, ...] = ()  # what its request put back or left behind (see replay.Ruling)

    @property
    def thoughts(self) -> tuple[Thought, ...]:
        """The thoughts of the output, in order."""
        return tuple([p for p in self.output if type(p) is Thought])  # often asked for

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tool calls of the output, in order."""
        return tuple([p for p in self.output if type(p) is Call])


class Place(NamedTuple):
    """Where a thought stands: right before the nth text, call or blob of its output, or last."""

    kind: str  # "text", "call", "blob" or "end"
    nth: int


_KINDS = {"x": "text", "c": "call", "b": "blob"}
OUTLINE = {Thought: "t", Text: "x", Call: "c", Blob: "b"}


def outline(parts: Iterable[Part]) -> str:
    """The shape of an output, one letter a part: t thought, x text, c call, b anything else."""
    shape = ""
    for part in parts:
        shape += OUTLINE.get(type(part), "b")
    return shape


@lru_cache(maxsize=1024)
def places(shape: str) -> tuple[Place, ...]:
    """For every thought of an outline, what it led to."""
    found: list[Place] = []
    waiting = 0
    seen = dict.fromkeys(_KINDS, 0)
    for letter in shape:
        if letter == "t":
            waiting += 1
            continue
        found += [Place(_KINDS[letter], seen[letter])] * waiting
        seen[letter] += 1
        waiting = 0
    return (*found, *[Place("end", 0)] * waiting)
