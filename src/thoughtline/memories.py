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


def words(turn: Turn) -> str:
    """Digest of an output's text; empty when it has none."""
    return _words([part for part in turn.output if isinstance(part, Text)])


def _words(texts: Sequence[Text]) -> str:
    text = k.spoken("".join([part.text for part in texts])) if texts else ""
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
    thoughts: list[Thought] = []
    texts: list[Text] = []
    calls: list[str] = []
    for part in turn.output:
        item = ""
        if isinstance(part, Thought):
            thoughts.append(part)
            names += [k.sealed(seal) for seal in part.seals]
            item = part.id
        elif isinstance(part, Text):
            texts.append(part)
            item = part.id
        elif isinstance(part, Call):
            calls.append(part.id)
            item = part.item
        elif isinstance(part, Blob) and part.sealed:
            names.append(k.sealed(part.digest))
        if item:
            names.append(k.ref("item", item))
    phases = tuple([text.phase for text in texts])
    origin = turn.target or Origin()
    if turn.response and origin.dialect in CONTINUED:
        names.append(k.ref("response", turn.response))
    return Memory(
        session=turn.session,
        turn=turn.id,
        parent=turn.parent,
        origin=origin,
        outcome=turn.outcome or Outcome.ABORTED,
        at=turn.ended,
        outline=outline(turn.output),
        thoughts=tuple(thoughts),
        calls=tuple(calls),
        words=_words(texts) if calls else "",
        phases=phases if any(phases) else (),
        hints=hints,
        skipped=skipped or {},
        quarantined=turn.quarantined,
        ruled=ruled,
        chars=len(readable(thoughts)),
        names=tuple(dict.fromkeys(names)),
    )
