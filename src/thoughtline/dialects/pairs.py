"""Which call a result answers, where ids are missing: some APIs go by name and order."""

from collections.abc import Sequence

from thoughtline.parts import Call, Part, Result


def answered(output: Sequence[Part], input: Sequence[Part]) -> list[int | None]:
    """For each result of an input the position of its call among the calls of the output before.

    The id decides; without one the first open call of that name, without a name the first open one.
    """
    waiting = dict(enumerate(part for part in output if isinstance(part, Call)))
    found: list[int | None] = []
    for result in (part for part in input if isinstance(part, Result)):
        place = next((i for i, call in waiting.items() if _answers(result, call)), None)
        if place is not None:
            del waiting[place]
        found.append(place)
    return found


def _answers(result: Result, call: Call) -> bool:
    if result.call and call.id:
        return result.call == call.id
    return not result.name or result.name == call.name
