"""What the archive remembers of a turn, so that its thoughts can be found again.

A memory is an index entry over the log: where the turn stands in the tree, the shape of its
output, where its thoughts were made, and how it ended. Its `names` are the look-up keys under
which a store files it. Turns without thoughts and turns that failed are remembered too: they are
the proof that a thought of another turn does not belong here.
The rooms above are `stores` (which file memories) and `replay` (which chooses among them).
"""

from collections.abc import Iterable

from msgspec import Struct

from thoughtline import keys as k
from thoughtline.events import Outcome
from thoughtline.parts import Blob, Call, Origin, Text, Thought
from thoughtline.turns import Turn, outline


class Memory(Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    words: str = ""  # digest of the text beside the calls: breaks ties
    phases: tuple[str, ...] = ()  # what its texts were for, where the provider said so
    hints: tuple[str, ...] = ()  # digests of session ids the client sent along
    skipped: dict[str, str] = {}  # what the request went out without: chain key → why (sticky)
    quarantined: frozenset[int] = frozenset()  # positions among the thoughts
    ruled: str = ""  # mark of the rulings its request went out with (see repeats)
    chars: int = 0  # of the thoughts, as people read them
    names: tuple[bytes, ...] = ()  # look-up keys, strongest first


def words(turn: Turn) -> str:
    """Digest of an output's text; empty when it has none."""
    text = k.spoken("".join(p.text for p in turn.output if isinstance(p, Text)))
    return k.seal(text) if text else ""


def readable(thoughts: Iterable[Thought]) -> str:
    """What people see of thoughts: their text, or what is there of one that is sealed."""
    return "\n\n".join(thought.text or thought.raw for thought in thoughts)


def remember(
    turn: Turn,
    keys: k.Keys,
    *,
    hints: tuple[str, ...] = (),
    skipped: dict[str, str] | None = None,
    ruled: str = "",
) -> Memory:
    """The memory of a finished turn under all the names it may be asked for by."""
    names = [keys.chain, keys.near, keys.alone]
    thoughts = turn.thoughts
    for part in turn.output:
        if isinstance(part, Thought):
            names += [k.sealed(seal) for seal in part.seals]
        elif isinstance(part, Blob) and part.sealed:
            names.append(k.sealed(part.digest))
        item = part.item if isinstance(part, Call) else getattr(part, "id", "")
        if item:
            names.append(k.ref("item", item))
    phases = tuple(part.phase for part in turn.output if isinstance(part, Text))
    if turn.response:
        names.append(k.ref("response", turn.response))
    return Memory(
        session=turn.session,
        turn=turn.id,
        parent=turn.parent,
        origin=turn.target or Origin(),
        outcome=turn.outcome or Outcome.ABORTED,
        at=turn.ended,
        outline=outline(turn.output),
        thoughts=thoughts,
        calls=tuple(call.id for call in turn.calls),
        words=words(turn),
        phases=phases if any(phases) else (),
        hints=hints,
        skipped=skipped or {},
        quarantined=turn.quarantined,
        ruled=ruled,
        chars=len(readable(thoughts)),
        names=tuple(dict.fromkeys(names)),
    )
