"""What a translated exchange knows of its client: its dialect, its tools, its names for things."""

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.dialects.answers import AnswerHead, shown_parts
from thoughtline.dialects.base import Dialect
from thoughtline.dialects.params import RequestParams
from thoughtline.dialects.tool_names import ToolNames, client_call
from thoughtline.engine.parted_calls import joined_turns
from thoughtline.engine.turn_ids import client_call_id
from thoughtline.log.events import ClientView
from thoughtline.log.handles import Handles
from thoughtline.log.parts import Call, Part, Text, Thought
from thoughtline.log.turns import Turn


def shown_output(output: Sequence[Part], turn: str, view: ClientView) -> tuple[Part, ...]:
    """An output as its client has it: its own names of tools, and ids that are unique."""
    made: list[Part] = []
    calls = 0
    for part in output:
        if not isinstance(part, Call):
            made.append(part)
            continue
        call = client_call(part, view.tools)
        made.append(replace(call, id=client_call_id(turn, calls), item=""))
        calls += 1
    return tuple(made)


def as_echoed(turn: Turn) -> Turn:
    """A turn as its client echoes it, which may know its tools and calls by other names."""
    if turn.client is None:
        return turn
    return replace(turn, output=shown_output(turn.output, turn.id, turn.client))


_ITEM = re.compile(r"(?:msg|fc|ctc)_(?P<turn>[0-9a-f]{32})(?P<place>\d\d)")


def named_item(id: str) -> tuple[str, int] | None:
    """The turn and the place of an item that a client of another dialect was given, by its id."""
    found = _ITEM.fullmatch(id)
    return (found["turn"], int(found["place"])) if found else None


def item_at(turn: Turn, place: int) -> Part | None:
    """The part of a turn that its client was given at this place."""
    parts = shown_parts([p for p in as_echoed(turn).output if isinstance(p, Thought | Text | Call)])
    return parts[place] if place < len(parts) else None


class Translation(Struct, frozen=True, kw_only=True, eq=False):
    """What a translated exchange needs to know of its client."""

    client: Dialect
    params: RequestParams
    names: ToolNames
    handles: Handles
    tenant: str
    left: tuple[str, ...] = ()  # what the provider cannot be told
    refused: tuple[str, ...] = ()  # of that: what the request must not go without
    unknown_response: str = ""  # what the client goes on from, where the log does not hold it
    array: bool = False  # the client wants its stream as one JSON array

    __repr__ = object.__repr__

    def with_joined(self, turns: Sequence[Turn], groups: Sequence[range]) -> "Translation":
        """The same, with the inputs of a history whose outputs of each group are one."""
        inputs = self.params.inputs
        given = [*inputs, *[turn.input for turn in turns[len(inputs) :]]]
        joined = joined_turns([Turn(input=parts) for parts in given], groups)
        made = replace(self.params, inputs=tuple([turn.input for turn in joined]))
        return replace(self, params=made)

    @property
    def view(self) -> ClientView:
        """How the client knows the turn: kept with it, so that the index can be made again."""
        return ClientView(dialect=self.client.name, tools=self.names.renamed)

    def head(self, turn: str, *, created: float) -> AnswerHead:
        """What the writer of the answer knows."""
        return AnswerHead(
            id=turn,
            model=self.params.model,
            created=int(created),
            stream=self.params.stream,
            handle=lambda nth: self.handles.make(self.tenant, turn, nth),
            wants_thoughts=self.params.wants_thoughts,
            wants_summary=self.params.wants_summary,
            wants_usage=self.params.wants_usage,
            array=self.array,
        )
