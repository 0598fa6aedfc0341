"""A turn: one exchange, with its input, its output and how it ended.

A turn is folded from events, or read from a client's request body, where it has no id yet: a
request's history is a path of such turns. The input is what people and tools said; the output is
what the model said, thoughts among it in arrival order. System prompts are no part of a turn,
because they change from request to request; an agent's is noted where it changes.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from thoughtline.log.decisions import ReplayDecision
from thoughtline.log.events import ClientView, Outcome, Unread
from thoughtline.log.parts import Blob, Call, Origin, Part, Text, Thought
from thoughtline.log.usage import Usage


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
    replay: tuple[ReplayDecision, ...] = ()  # about the thoughts of the outputs before it
    thinking_off: bool = False  # switched off for this exchange: a demanded thought was lost
    system: str | None = None  # an agent's system prompt, where it changed; None: as before
    client: ClientView | None = None  # how a client of another dialect knows it
    first_output: float | None = None  # seconds from the request to the first token
    unread: tuple[Unread, ...] = ()  # thoughts of its request that the model did not get
    tools: bool = False  # a conversation begins with it, and the request declared tools

    @property
    def thoughts(self) -> tuple[Thought, ...]:
        """The thoughts of the output, in order."""
        if Thought not in map(type, self.output):
            return ()  # the usual case of what a client echoes: this is called often
        return tuple([p for p in self.output if type(p) is Thought])

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tool calls of the output, in order."""
        return tuple([p for p in self.output if type(p) is Call])


def system_prompt(turns: Sequence[Turn]) -> str:
    """Return the system prompt at the end of a path, as an agent's log has it; empty for none."""
    return next((turn.system for turn in reversed(turns) if turn.system is not None), "")


class Place(NamedTuple):
    """The place of a thought: before the nth text, call or blob of its output, or at the end."""

    kind: str  # "text", "call", "blob" or "end"
    nth: int


_KINDS = {"x": "text", "c": "call", "b": "blob"}
SHAPE_LETTERS = {Thought: "t", Text: "x", Call: "c", Blob: "b"}


def output_shape(parts: Iterable[Part]) -> str:
    """Return the shape of an output, a letter per part: t thought, x text, c call, b other."""
    shape = ""
    for part in parts:
        shape += SHAPE_LETTERS.get(type(part), "b")
    return shape


@lru_cache(maxsize=1024)
def places(shape: str) -> tuple[Place, ...]:
    """Return for every thought of an output's shape the place where it stands."""
    found: list[Place] = []
    pending = 0
    seen = dict.fromkeys(_KINDS, 0)
    for letter in shape:
        if letter == "t":
            pending += 1
            continue
        found += [Place(_KINDS[letter], seen[letter])] * pending
        seen[letter] += 1
        pending = 0
    return (*found, *[Place("end", 0)] * pending)
