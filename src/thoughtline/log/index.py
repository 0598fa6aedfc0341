"""The index entry of a turn: what a look-up finds, and from which thoughts are put back.

An entry says where the turn stands in the tree, the shape of its output, where its thoughts were
made, and how it ended; `keys` are the look-up keys that a store files it under. Turns without
thoughts and turns that failed have entries too: they are the proof that a thought of another turn
does not belong there.
"""

from collections.abc import Sequence

from msgspec import Struct, field

from thoughtline.log import keys as k
from thoughtline.log.canonical import without_inline_thoughts
from thoughtline.log.durations import group_thoughts
from thoughtline.log.events import Outcome
from thoughtline.log.parts import Blob, Call, Origin, Text, Thought
from thoughtline.log.turns import Turn


class IndexEntry(Struct, frozen=True, gc=False, omit_defaults=True):
    """A finished turn as the look-up index knows it."""

    session: str
    turn: str
    parent: str = ""
    origin: Origin = Origin()
    outcome: Outcome = Outcome.COMPLETED
    at: float = 0.0
    shape: str = field(default="", name="outline")  # of the output, see `turns.output_shape`
    thoughts: tuple[Thought, ...] = ()  # a store keeps these once, in the log's reasoning events
    calls: tuple[str, ...] = ()  # call ids as emitted: they break ties, they prove nothing
    text_digest: str = field(default="", name="words")  # of what stands beside calls or text
    phases: tuple[str, ...] = ()  # what its texts were for, where the provider said so
    hints: tuple[str, ...] = ()  # digests of session ids the client sent along
    skipped: dict[str, str] = {}  # outputs sent without thoughts: full key → why (sticky)
    quarantined: frozenset[int] = frozenset()  # positions among the thoughts
    decisions_mark: str = field(default="", name="ruled")  # see `decisions.mark`
    chars: int = 0  # of the thoughts, as people read them
    keys: tuple[bytes, ...] = field(default=(), name="names")  # look-up keys, strongest first
    unread: int = 0  # thoughts of its request that the model did not get
    question: str = ""  # digest of its input, where that has words of a user
    continued: int | None = None  # how far, see `Store.continued`; None: not asked. Never stored
    forgotten: tuple[str, ...] = ()  # calls whose entries were cleared; "" stands for no call


MAX_CANDIDATES = 32
"""Entries that a look-up gives per key, those that were filed last. A short answer ("Done.") is
filed under the same content key again and again; more would only make a look-up slow."""
QUESTION_BYTES = 8
"""Bytes of the digest of an input."""
MAX_TEXTS = 8
"""Texts of an input whose endings are compared with a question."""

RESPONSE_ID_DIALECTS = ("responses",)
"""Dialects whose requests may name the response that they go on from."""


_EMPTY = frozenset({'""', "null"})
"""Raw values of thoughts that say nothing."""


def client_response_id(turn: str) -> str:
    """Return the id that a client of another dialect is given for the response of a turn."""
    return f"resp_{turn}"


_SEPARATOR = "\n\n"
"""Stands between two thoughts in what people read."""


def text_digest(turn: Turn) -> str:
    """Return the digest of an output's text; empty when it has none."""
    texts = [part.text for part in turn.output if type(part) is Text]
    text = without_inline_thoughts("".join(texts))
    return k.string_digest(text) if text else ""


def beside_digest(turn: Turn) -> str:
    """Return the digest of what stands beside what is visible: text beside calls, else blobs."""
    if turn.calls:
        return text_digest(turn)
    blobs = [part.digest for part in turn.output if type(part) is Blob]
    return k.string_digest(" ".join(blobs)) if blobs else ""


def question_digest(turn: Turn, turn_keys: k.TurnKeys) -> str:
    """Return a digest of a turn's input; empty where no user says anything in it."""
    for part in turn.input:
        if type(part) is Text:
            break
    else:
        return ""
    return turn_keys.input[:QUESTION_BYTES].hex()


def asks(turn: Turn, turn_keys: k.TurnKeys, question: str) -> bool:
    """Whether a turn's input has this digest, or ends with words of a user that have it.

    After a compaction its summary stands in front of them, where nobody has answered it.
    """
    if question_digest(turn, turn_keys) == question:
        return True
    texts = turn.input
    if not 1 < len(texts) <= MAX_TEXTS or any(type(part) is not Text for part in texts):
        return False
    endings = (k.input_hash(texts[start:]) for start in range(1, len(texts)))
    return any(ending[:QUESTION_BYTES].hex() == question for ending in endings)


def readable(thoughts: Sequence[Thought]) -> str:
    """Return what people read of thoughts: their text, or the raw value of those without text.

    What a provider repeats under several keys of a message is one thought, and stands there once.
    """
    if len(thoughts) < 2:  # mostly
        return _readable(thoughts[0]) if thoughts else ""
    units = group_thoughts(thoughts).items()
    message = {id(one): place for place, unit in units for one in unit if not one.id}
    said = [
        (message.get(id(thought), -place), text)
        for place, thought in enumerate(thoughts, 1)
        if (text := _readable(thought))
    ]
    return _SEPARATOR.join([text for _, text in dict.fromkeys(said)])


def _readable(thought: Thought) -> str:
    return thought.text or ("" if thought.raw in _EMPTY else thought.raw)


def index_entry(
    turn: Turn,
    turn_keys: k.TurnKeys,
    *,
    hints: tuple[str, ...] = (),
    skipped: dict[str, str] | None = None,
    decisions_mark: str = "",
    spoken: bool = False,
) -> IndexEntry:
    """Make the entry of a finished turn, with all keys it may be looked up by.

    `spoken`: also by its first thought, where a client writes that as text.
    """
    keys = [turn_keys.full, turn_keys.local, turn_keys.content, *turn_keys.trimmed]
    shape = ""  # as `output_shape` says it
    thoughts: list[Thought] = []
    phases: list[str] = []
    calls: list[str] = []
    for part in turn.output:
        item = ""
        if type(part) is Thought:
            shape += "t"
            thoughts.append(part)
            if spoken and len(part.text) >= k.MIN_SPOKEN:
                keys.append(k.spoken_key(part.text))
                spoken = False
            for seal in part.seals:
                keys.append(k.seal_key(seal))  # noqa: PERF401 (mostly none)
            item = part.id
        elif type(part) is Text:
            shape += "x"
            phases.append(part.phase)
            item = part.id
        elif type(part) is Call:
            shape += "c"
            calls.append(part.id)
            item = part.item
        else:
            shape += "b"
            if type(part) is Blob and part.sealed:
                keys.append(k.seal_key(part.digest))
        if item:
            keys.append(k.reference_key("item", item))
    origin = turn.target or Origin()
    if turn.client is not None:
        response, dialect = client_response_id(turn.id), turn.client.dialect
    else:
        response, dialect = turn.response, origin.dialect
    if response and dialect in RESPONSE_ID_DIALECTS:
        keys.append(k.reference_key("response", response))
    return IndexEntry(
        turn.session,  # positional: Python builds a dict for more than fifteen keywords
        turn.id,
        turn.parent,
        origin,
        outcome=turn.outcome or Outcome.ABORTED,
        at=turn.ended,
        shape=shape,
        thoughts=tuple(thoughts),
        calls=tuple(calls),
        text_digest=beside_digest(turn) if calls or "b" in shape else "",
        phases=tuple(phases) if any(phases) else (),
        hints=hints,
        skipped=skipped or {},
        quarantined=turn.quarantined,
        decisions_mark=decisions_mark,
        chars=len(readable(thoughts)),
        keys=tuple(dict.fromkeys(keys)),
        unread=len(turn.unread),
        question=question_digest(turn, turn_keys),
    )
