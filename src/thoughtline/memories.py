"""What the archive remembers of a turn, so that its thoughts can be found again.

A memory is an index entry over the log: where the turn stands in the tree, the shape of its
output, where its thoughts were made, and how it ended. Its `names` are the look-up keys under
which a store files it. Turns without thoughts and turns that failed are remembered too: they are
the proof that a thought of another turn does not belong here.
The rooms above are `stores` (which file memories) and `replay` (which chooses among them).
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from thoughtline import keys as k
from thoughtline.events import Outcome
from thoughtline.parts import Blob, Call, Origin, Text, Thought
from thoughtline.turns import Turn, outline


class Memory(Struct, frozen=True, gc=False, omit_defaults=True):
    """One remembered turn."""

    session: str
    turn: str
    parent: str = ""
    origin: Origin = Origin()
    outcome: Outcome = Outcome.COMPLETED
    at: float = 0.0
    outline: str = ""  # the shape of the output, see turns.outline
    thoughts: tuple[Thought, ...] = ()  # a store keeps these once, in the log's reasoning events
    calls: tuple[str, ...] = ()  # call ids as emitted: they break ties, they prove nothing
    words: str = ""  # digest of the text beside the calls, where there are any: breaks ties
    phases: tuple[str, ...] = ()  # what its texts were for, where the provider said so
    hints: tuple[str, ...] = ()  # digests of session ids the client sent along
    skipped: dict[str, str] = {}  # what the request went out without: chain key → why (sticky)
    quarantined: frozenset[int] = frozenset()  # positions among the thoughts
    ruled: str = ""  # mark of the rulings its request went out with (see repeats)
    chars: int = 0  # of the thoughts, as people read them
    names: tuple[bytes, ...] = ()  # look-up keys, strongest first


CONTINUED = ("responses",)
"""Dialects whose requests may name the response that they go on from."""


_GAP = "\n\n"
"""What stands between two thoughts for people to read."""


def words(turn: Turn) -> str:
    """Digest of an output's text; empty when it has none."""
    text = k.spoken("".join([part.text for part in turn.output if type(part) is Text]))
    return k.seal(text) if text else ""


def readable(thoughts: Iterable[Thought]) -> str:
    """What people see of thoughts: their text, or what is there of one that is sealed."""
    return _GAP.join([thought.text or thought.raw for thought in thoughts])


def _length(thoughts: Sequence[Thought]) -> int:
    """How many characters are `readable`, without making them."""
    length = len(_GAP) * (len(thoughts) - 1) if thoughts else 0
    for thought in thoughts:
        length += len(thought.text or thought.raw)
    return length


def remember(
    turn: Turn,
    keys: k.Keys,
    *,
    hints: tuple[str, ...] = (),
    skipped: dict[str, str] | None = None,
    ruled: str = "",
) -> Memory:
    """The memory of a finished turn under all the names it may be asked for by."""
    names = {keys.chain: None, keys.near: None, keys.alone: None}
    thoughts: list[Thought] = []
    phases: list[str] = []
    calls: list[str] = []
    for part in turn.output:
        item = ""
        if type(part) is Thought:
            thoughts.append(part)
            for seal in part.seals:
                names[k.sealed(seal)] = None
            item = part.id
        elif type(part) is Text:
            phases.append(part.phase)
            item = part.id
        elif type(part) is Call:
            calls.append(part.id)
            item = part.item
        elif type(part) is Blob and part.sealed:
            names[k.sealed(part.digest)] = None
        if item:
            names[k.ref("item", item)] = None
    origin = turn.target or Origin()
    if turn.response and origin.dialect in CONTINUED:
        names[k.ref("response", turn.response)] = None
    return Memory(
        turn.session,  # Python makes a dict of more than fifteen keywords, at the cost of all this
        turn.id,
        turn.parent,
        origin,
        outcome=turn.outcome or Outcome.ABORTED,
        at=turn.ended,
        outline=outline(turn.output),
        thoughts=tuple(thoughts),
        calls=tuple(calls),
        words=words(turn) if calls else "",
        phases=tuple(phases) if any(phases) else (),
        hints=hints,
        skipped=skipped or {},
        quarantined=turn.quarantined,
        ruled=ruled,
        chars=_length(thoughts),
        names=tuple(names),
    )
