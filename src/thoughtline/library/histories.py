"""A path of the log as a history that every provider takes.

What failed was not said. What was not answered waits for the next answer. Every call has a result
and every result a call. Call ids made by another API are renamed, and what only that API can read
is left out. Pure; `transcripts` makes a request of it.
"""

from collections.abc import Sequence
from hashlib import blake2b

from msgspec.structs import replace

from thoughtline.dialects.pairs import answered
from thoughtline.events import Outcome
from thoughtline.parts import Blob, Call, Origin, Part, Result, Text, Thought
from thoughtline.turns import Turn

NO_RESULT = "No result: the call was interrupted and has not been run again."
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def lived(turns: Sequence[Turn], there: Origin, *, renamed: bool = False) -> list[Turn]:
    """The turns that were answered, then one more with everything that was said since."""
    told: list[Turn] = []
    heard: list[Part] = []
    before: Turn | None = None  # the last answer, as it is logged
    for turn in turns:
        heard += [_shown(part, turn.target, there) for part in turn.input]
        logged = replace(turn, output=spoken(turn))
        foreign = not _own(turn.target, there)
        now = _renamed(logged, foreign=foreign) if foreign or renamed else logged
        if visible(now.output):
            told.append(replace(now, input=_pointed(before, heard, told)))
            before, heard = logged, []
    told.append(Turn(input=_pointed(before, heard, told)))
    return told


def spoken(turn: Turn) -> tuple[Part, ...]:
    """What of a turn's output counts as said.

    Of a capped one its text, since people have seen it, and none of its calls: their arguments
    may be cut. Of one that failed, was aborted or never ended, nothing.
    """
    if turn.outcome is Outcome.COMPLETED:
        return turn.output
    if turn.outcome is Outcome.CAPPED:
        return tuple(part for part in turn.output if not isinstance(part, Call))
    return ()


def fitted(before: Turn | None, heard: Sequence[Part]) -> tuple[Part, ...]:
    """What was said after a turn: a result for each of its calls, in their order, then words.

    A call without a result gets one that says so; a result without a call is left out.
    """
    output = before.output if before else ()
    words = tuple(part for part in heard if isinstance(part, Text | Blob))
    results = [part for part in heard if isinstance(part, Result)]
    by_call = dict(zip(answered(output, heard), results, strict=True))
    calls = before.calls if before else ()
    return (*(by_call.get(at) or unanswered(call) for at, call in enumerate(calls)), *words)


def unanswered(call: Call, why: str = NO_RESULT) -> Result:
    """The result of a call that has none."""
    return Result(content=why, call=call.id, name=call.name, error=True)


def waiting(turns: Sequence[Turn]) -> list[Call]:
    """The calls at the end of a path that have no result."""
    before: Turn | None = None
    heard: list[Part] = []
    for turn in turns:
        heard += turn.input
        if visible(output := spoken(turn)):
            before, heard = replace(turn, output=output), []
    if before is None:
        return []
    done = set(answered(before.output, heard))
    return [call for at, call in enumerate(before.calls) if at not in done]


def _pointed(before: Turn | None, heard: Sequence[Part], told: Sequence[Turn]) -> tuple[Part, ...]:
    """What was said after a turn, its results pointing to the calls as they are named now."""
    input = fitted(before, heard)
    if before is None:
        return input
    results = [
        replace(part, call=now.id, raw="" if now.id != old.id else part.raw)
        for part, now, old in zip(input, told[-1].calls, before.calls, strict=False)
        if isinstance(part, Result)
    ]
    return (*results, *input[len(results) :])


def _own(made: Origin | None, there: Origin) -> bool:
    """Whether an output was made by an API like the one that is asked now."""
    return made is not None and (made.dialect, made.provider) == (there.dialect, there.provider)


def _renamed(turn: Turn, *, foreign: bool) -> Turn:
    """A turn with call ids that every API takes: nine letters and digits, always the same ones."""
    output: list[Part] = []
    for at, part in enumerate(turn.output):
        if isinstance(part, Call):
            made = replace(part, id=_nine(f"{turn.id}/{at}"))
            output.append(replace(made, item="", raw="") if foreign else made)
        elif isinstance(part, Text) and foreign:
            output.append(Text(text=part.text))
        elif not (isinstance(part, Blob) and foreign):
            output.append(part)
    return replace(turn, output=tuple(output))


def _nine(text: str) -> str:
    number = int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
    letters = []
    for _ in range(9):
        number, digit = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[digit])
    return "".join(letters)


def _shown(part: Part, said_to: Origin | None, there: Origin) -> Part:
    """A part of an input; what was written for another API cannot be shown here."""
    if isinstance(part, Blob) and said_to is not None and said_to.dialect != there.dialect:
        return Text(text=f"[{part.kind} left out: it was attached for another API]")
    return part


def visible(output: Sequence[Part]) -> tuple[Part, ...]:
    """An output without its thoughts."""
    return tuple(part for part in output if not isinstance(part, Thought))
