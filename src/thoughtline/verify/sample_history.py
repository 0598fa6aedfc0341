"""The sample conversation of a verification, and the same with one thing changed. Values only.

A history has outputs of three kinds, since contracts differ by them: calls of earlier questions,
plain answers, and calls of the tool loop that is running. Only thoughts are ever changed, never
text, calls or results.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.dialects.base import Dialect
from thoughtline.dialects.params import ToolSpec
from thoughtline.dialects.thoughts import convert
from thoughtline.log.keys import string_digest
from thoughtline.log.parts import RIDING, Call, Carrier, Part, Text, Thought
from thoughtline.log.quirks import Need, Scope
from thoughtline.log.turns import Turn
from thoughtline.providers.policy import Policy

SYSTEM = "Look every value up with the tool, one at a time. Answer in one short sentence."
OTHER_SYSTEM = "Look every value up with the tool, one at a time. Answer in one brief sentence."
TOOLS = (
    ToolSpec(
        name="look_up",
        description="Gives the value of a key.",
        parameters={
            "type": "object",
            "properties": {"key": {"type": "string"}},
            "required": ["key"],
        },
    ),
)
MADE_UP = '"A thought."'

TurnChange = Callable[[Turn], Turn]


class SampleHistory(Struct, frozen=True, kw_only=True):
    """A conversation whose last turn waits for its output."""

    dialect: Dialect
    model: str
    turns: tuple[Turn, ...]
    options: Mapping[str, Any] = {}

    @property
    def loop(self) -> int:
        """The position of the turn in which the running tool loop began."""
        questions = [
            n for n, t in enumerate(self.turns) if any(isinstance(p, Text) for p in t.input)
        ]
        return questions[-1] if questions else 0

    def where(self, kind: str) -> frozenset[int]:
        """The positions of outputs: `all`, `plain`, `earlier` (calls) or `running` (calls)."""
        done = [n for n, turn in enumerate(self.turns) if turn.output]
        kinds = {
            "all": done,
            "plain": [n for n in done if not self.turns[n].calls],
            "earlier": [n for n in done if self.turns[n].calls and n < self.loop],
            "running": [n for n in done if self.turns[n].calls and n >= self.loop],
        }
        return frozenset(kinds[kind])

    def has_thoughts(self, kind: str) -> bool:
        """Whether any output of this kind has a thought."""
        return any(has_thought(self.turns[n]) for n in self.where(kind))

    def changed(self, kind: str, change: TurnChange) -> "SampleHistory":
        """The same history, with the outputs of one kind changed."""
        positions = self.where(kind)
        turns = (change(t) if n in positions else t for n, t in enumerate(self.turns))
        return replace(self, turns=tuple(turns))

    def body(
        self,
        *,
        system: str = SYSTEM,
        tools: Sequence[ToolSpec] = TOOLS,
        options: Mapping[str, Any] | None = None,
        model: str = "",
        item_ids: bool = False,
    ) -> bytes:
        """The request body; with `item_ids`, calls carry the provider's item ids (Responses)."""
        body = self.dialect.write(
            self.turns,
            model=model or self.model,
            system=system,
            tools=tools,
            fields={**self.options, **(options or {})},
        )
        return self._with_item_ids(body) if item_ids else body

    def _with_item_ids(self, body: bytes) -> bytes:
        known = {call.id: call.item for turn in self.turns for call in turn.calls if call.item}
        document = json.loads(body)
        for item in document["input"]:
            if isinstance(item, dict) and item.get("type") == "function_call":
                item["id"] = known.get(str(item.get("call_id")), "fc_unknown")
        return json.dumps(document, ensure_ascii=False).encode()


def has_thought(turn: Turn) -> bool:
    """Whether the turn has a thought that is not empty."""
    return any(t.sealed or t.text.strip() for t in turn.thoughts)


def without_thoughts(turn: Turn) -> Turn:
    """The turn without its thoughts."""
    return replace(turn, output=tuple(p for p in turn.output if not isinstance(p, Thought)))


def replacing_thoughts(raw: str, carrier: Carrier) -> TurnChange:
    """A change: this value in place of the turn's thoughts."""

    def change(turn: Turn) -> Turn:
        output: list[Part] = list(without_thoughts(turn).output)
        calls = [n for n, part in enumerate(output) if isinstance(part, Call)]
        at = calls[0] if calls and carrier in RIDING else 0
        output.insert(at, Thought(carrier=carrier, raw=raw))
        return replace(turn, output=tuple(output))

    return change


def adding_thought(raw: str, carrier: Carrier) -> TurnChange:
    """A change: this value in front of the turn's thoughts."""

    def change(turn: Turn) -> Turn:
        return replace(turn, output=(Thought(carrier=carrier, raw=raw), *turn.output))

    return change


def with_broken_seals(turn: Turn) -> Turn:
    """The turn with one character changed in every seal of its thoughts."""
    return replace(
        turn, output=tuple(_broken(p) if isinstance(p, Thought) else p for p in turn.output)
    )


def _broken(thought: Thought) -> Thought:
    if not thought.seals:
        return thought
    raw = _break_seals(json.loads(thought.raw), thought.seals)
    return replace(thought, raw=json.dumps(raw, ensure_ascii=False))


def _break_seals(value: Any, seals: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_break_seals(element, seals) for element in value]
    if isinstance(value, dict):
        return {key: _break_seals(inner, seals) for key, inner in value.items()}
    if not isinstance(value, str) or not value or string_digest(value) not in seals:
        return value
    middle = len(value) // 2
    return value[:middle] + ("A" if value[middle] != "A" else "B") + value[middle + 1 :]


def as_policy_demands(turn: Turn, policy: Policy) -> Turn:
    """The turn as the row says that the endpoint wants it: under a key it reads, before every call.

    A model does not always think: where a thought is required and missing, the placeholder that the
    row says is accepted goes in its place.
    """
    required = policy.need is Need.REQUIRED and (policy.scope is Scope.ALL or turn.calls)
    if required and policy.lost and policy.reads and not has_thought(turn):
        return replacing_thoughts(policy.lost, policy.reads[0])(turn)
    output: list[Part] = []
    last: Thought | None = None
    for part in turn.output:
        if isinstance(part, Thought):
            last = _under_read_key(part, policy)
            output.append(last)
            continue
        lacks = not output or not isinstance(output[-1], Thought)
        if policy.every_call and last is not None and isinstance(part, Call) and lacks:
            output.append(last)
        output.append(part)
    return replace(turn, output=tuple(output))


def _under_read_key(thought: Thought, policy: Policy) -> Thought:
    if not policy.reads or thought.sealed or thought.carrier in policy.reads:
        return thought
    raw = convert(thought, policy.reads[0])
    return thought if raw is None else Thought(carrier=policy.reads[0], raw=raw, text=thought.text)
