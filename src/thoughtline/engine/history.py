"""A path of the log as a history that every provider takes. Pure.

What failed was not said. What was not answered waits for the next answer. Every call has a result
and every result a call. Call ids made by another API are renamed, and what only that API can read
is left out. The agents' loop writes requests from it, and the look-up index is rebuilt by it.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from msgspec.structs import replace

from thoughtline.dialects.base import PlacedThought
from thoughtline.dialects.content import answered_calls
from thoughtline.log.decisions import Action, ReplayDecision
from thoughtline.log.events import Outcome
from thoughtline.log.parts import Blob, Call, Origin, Part, Result, Text, Thought
from thoughtline.log.quirks import Need
from thoughtline.log.turns import SHAPE_LETTERS, Place, Turn

NO_RESULT = "No result: the call was interrupted and has not been run again."
_PLACE_KINDS = {"x": "text", "c": "call", "b": "blob"}
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def history_for(turns: Sequence[Turn], there: Origin) -> list[Turn]:
    """The turns that were answered, then one more with everything that was said since."""
    history: list[Turn] = []
    pending: list[Part] = []
    before: Turn | None = None  # the last answer, as it is logged
    for turn in turns:
        pending += [_for_api(part, turn.target, there) for part in turn.input]
        logged = replace(turn, output=completed_output(turn))
        foreign = not _same_api(turn.target, there)
        now = _renamed(logged) if foreign else logged
        if without_thoughts(now.output):
            history.append(replace(now, input=_renamed_results(before, pending, history)))
            before, pending = logged, []
    history.append(Turn(input=_renamed_results(before, pending, history)))
    return history


def completed_output(turn: Turn) -> tuple[Part, ...]:
    """What of a turn's output counts as said.

    Of a capped one its text, since people have seen it, and none of its calls: their arguments
    may be cut. Of one that failed, was aborted or never ended, nothing.
    """
    if turn.outcome is Outcome.COMPLETED:
        return turn.output
    if turn.outcome is Outcome.CAPPED:
        return tuple(part for part in turn.output if not isinstance(part, Call))
    return ()


def answered_input(before: Turn | None, pending: Sequence[Part]) -> tuple[Part, ...]:
    """What was said after a turn: a result for each of its calls, in their order, then words.

    A call without a result gets one that says so; a result without a call is left out.
    """
    output = before.output if before else ()
    words = tuple(part for part in pending if isinstance(part, Text | Blob))
    results = [part for part in pending if isinstance(part, Result)]
    by_call = dict(zip(answered_calls(output, pending), results, strict=True))
    calls = before.calls if before else ()
    return (*(by_call.get(at) or missing_result(call) for at, call in enumerate(calls)), *words)


def missing_result(call: Call, why: str = NO_RESULT) -> Result:
    """The result of a call that has none."""
    return Result(content=why, call=call.id, name=call.name, error=True)


def pending_calls(turns: Sequence[Turn]) -> list[Call]:
    """The calls at the end of a path that have no result."""
    before: Turn | None = None
    pending: list[Part] = []
    for turn in turns:
        pending += turn.input
        if without_thoughts(output := completed_output(turn)):
            before, pending = replace(turn, output=output), []
    if before is None:
        return []
    done = set(answered_calls(before.output, pending))
    return [call for at, call in enumerate(before.calls) if at not in done]


def _renamed_results(
    before: Turn | None, pending: Sequence[Part], history: Sequence[Turn]
) -> tuple[Part, ...]:
    """What was said after a turn, its results pointing to the calls as they are named now."""
    input = answered_input(before, pending)
    if before is None:
        return input
    results = [
        replace(part, call=now.id, raw="" if now.id != old.id else part.raw)
        for part, now, old in zip(input, history[-1].calls, before.calls, strict=False)
        if isinstance(part, Result)
    ]
    return (*results, *input[len(results) :])


def _same_api(made: Origin | None, there: Origin) -> bool:
    """Whether an output was made by an API like the one that is asked now."""
    return made is not None and (made.dialect, made.provider) == (there.dialect, there.provider)


def _renamed(turn: Turn) -> Turn:
    """A turn of another API, with call ids that every API takes and nothing that only it reads."""
    output: list[Part] = []
    for at, part in enumerate(turn.output):
        if isinstance(part, Call):
            output.append(replace(part, id=_short_id(f"{turn.id}/{at}"), item="", raw=""))
        elif isinstance(part, Text):
            output.append(Text(text=part.text))
        elif not isinstance(part, Blob):
            output.append(part)
    return replace(turn, output=tuple(output))


def _short_id(text: str) -> str:
    """Nine letters and digits made from a text, always the same ones."""
    number = int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
    letters = []
    for _ in range(9):
        number, digit = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[digit])
    return "".join(letters)


def _for_api(part: Part, sent_to: Origin | None, there: Origin) -> Part:
    """A part of an input; what was written for another API cannot be shown here."""
    if isinstance(part, Blob) and sent_to is not None and sent_to.dialect != there.dialect:
        return Text(text=f"[{part.kind} left out: it was attached for another API]")
    return part


def without_thoughts(output: Sequence[Part]) -> tuple[Part, ...]:
    """An output without its thoughts."""
    return tuple(part for part in output if not isinstance(part, Thought))


def with_thoughts(output: Sequence[Part], placed: Sequence[PlacedThought]) -> tuple[Part, ...]:
    """An output with thoughts at their places, as they are to be spelled there."""
    made: list[Part] = []
    waiting: dict[Place, list[Part]] = {}
    for thought in placed:
        back = Thought(carrier=thought.carrier, raw=thought.raw)
        waiting.setdefault(thought.place, []).append(back)
    seen = dict.fromkeys(_PLACE_KINDS.values(), 0)
    for part in output:
        kind = _PLACE_KINDS[SHAPE_LETTERS.get(type(part), "b")]
        made += [*waiting.pop(Place(kind, seen[kind]), ()), part]
        seen[kind] += 1
    return (*made, *(part for parts in waiting.values() for part in parts))


_NOT_LEFT = frozenset({"", "had none", "ignored there", Need.FORBIDDEN.value, Need.NONE.value})
"""Reasons of decisions that left no thought behind."""


def left_behind(turn: Turn, full_keys: Mapping[str, str]) -> dict[str, str]:
    """What a turn's request went out without, as its log says: full key → why."""
    return {full_keys[entry]: reason for entry, reason in _left(turn.replay) if entry in full_keys}


def _left(replay: tuple[ReplayDecision, ...]) -> tuple[tuple[str, str], ...]:
    """Which turns' thoughts a request went out without, and why.

    A long session asks this of each of its turns for every request, and each of them decides
    about all that came before it, so the answer is kept: decisions do not change once logged.
    """
    known = _LEFT.get(id(replay))
    if known is None:
        left = (Action.DROPPED, Action.ABSENT, Action.PLACEHOLDER)
        found = tuple(
            (decision.entry, decision.reason)
            for decision in replay
            if decision.action in left and decision.reason not in _NOT_LEFT and decision.entry
        )
        if len(_LEFT) >= _MAX_KEPT:
            _LEFT.clear()
        known = _LEFT[id(replay)] = (replay, found)  # held, so that no other gets its id
    return known[1]


_LEFT: dict[int, tuple[tuple[ReplayDecision, ...], tuple[tuple[str, str], ...]]] = {}
_MAX_KEPT = 4096
