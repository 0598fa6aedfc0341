"""One held conversation, and the same with one thing changed: values only.

A history has outputs of three kinds, since needs differ by them: calls of earlier questions, plain
answers, and calls of the tool loop that is running. What is changed is always the thoughts, never
what was said aloud.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.dialects.base import Dialect, Tool
from thoughtline.dialects.thoughts import recast
from thoughtline.keys import seal
from thoughtline.parts import RIDING, Call, Carrier, Part, Text, Thought
from thoughtline.policies import Need, Policy, Scope
from thoughtline.turns import Turn

SYSTEM = "Look every value up with the tool, one at a time. Answer in one short sentence."
OTHER_SYSTEM = "Look every value up with the tool, one at a time. Answer in one brief sentence."
TOOLS = (
    Tool(
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

Change = Callable[[Turn], Turn]


class History(Struct, frozen=True, kw_only=True):
    """A conversation whose last turn waits for its output."""

    dialect: Dialect
    model: str
    turns: tuple[Turn, ...]
    options: Mapping[str, Any] = {}

    @property
    def loop(self) -> int:
        """Where the running tool loop began."""
        asked = [n for n, t in enumerate(self.turns) if any(isinstance(p, Text) for p in t.input)]
        return asked[-1] if asked else 0

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

    def thoughtful(self, kind: str) -> bool:
        """Whether any output of this kind has a thought."""
        return any(thinks(self.turns[n]) for n in self.where(kind))

    def changed(self, kind: str, change: Change) -> "History":
        """The same, with the outputs of one kind changed."""
        at = self.where(kind)
        turns = (change(t) if n in at else t for n, t in enumerate(self.turns))
        return replace(self, turns=tuple(turns))

    def body(
        self,
        *,
        system: str = SYSTEM,
        tools: Sequence[Tool] = TOOLS,
        options: Mapping[str, Any] | None = None,
        model: str = "",
        ids: bool = False,
    ) -> bytes:
        """The request; with `ids`, calls carry the provider's item ids (Responses)."""
        body = self.dialect.write(
            self.turns,
            model=model or self.model,
            system=system,
            tools=tools,
            fields={**self.options, **(options or {})},
        )
        return self._named(body) if ids else body

    def _named(self, body: bytes) -> bytes:
        known = {call.id: call.item for turn in self.turns for call in turn.calls if call.item}
        document = json.loads(body)
        for item in document["input"]:
            if isinstance(item, dict) and item.get("type") == "function_call":
                item["id"] = known.get(str(item.get("call_id")), "fc_unknown")
        return json.dumps(document, ensure_ascii=False).encode()


def thinks(turn: Turn) -> bool:
    """Whether it has a thought that says something."""
    return any(t.sealed or t.text.strip() for t in turn.thoughts)


def bare(turn: Turn) -> Turn:
    """Without its thoughts."""
    return replace(turn, output=tuple(p for p in turn.output if not isinstance(p, Thought)))


def holding(raw: str, carrier: Carrier) -> Change:
    """With this in place of its thoughts."""

    def change(turn: Turn) -> Turn:
        output: list[Part] = list(bare(turn).output)
        calls = [n for n, part in enumerate(output) if isinstance(part, Call)]
        at = calls[0] if calls and carrier in RIDING else 0
        output.insert(at, Thought(carrier=carrier, raw=raw))
        return replace(turn, output=tuple(output))

    return change


def beside(raw: str, carrier: Carrier) -> Change:
    """With this beside its thoughts."""

    def change(turn: Turn) -> Turn:
        return replace(turn, output=(Thought(carrier=carrier, raw=raw), *turn.output))

    return change


def altered(turn: Turn) -> Turn:
    """With one character changed in every seal."""
    return replace(
        turn, output=tuple(_broken(p) if isinstance(p, Thought) else p for p in turn.output)
    )


def _broken(thought: Thought) -> Thought:
    if not thought.seals:
        return thought
    spoilt = _spoil(json.loads(thought.raw), thought.seals)
    return replace(thought, raw=json.dumps(spoilt, ensure_ascii=False))


def _spoil(value: Any, seals: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_spoil(element, seals) for element in value]
    if isinstance(value, dict):
        return {key: _spoil(inner, seals) for key, inner in value.items()}
    if not isinstance(value, str) or not value or seal(value) not in seals:
        return value
    at = len(value) // 2
    return value[:at] + ("A" if value[at] != "A" else "B") + value[at + 1 :]


def fitted(turn: Turn, policy: Policy) -> Turn:
    """As the row says that the endpoint wants it: under a key it reads, before every call.

    A model does not always think: where a thought is demanded, its accepted stand-in goes.
    """
    demanded = policy.need is Need.REQUIRED and (policy.scope is Scope.ALL or turn.calls)
    if demanded and policy.lost and policy.reads and not thinks(turn):
        return holding(policy.lost, policy.reads[0])(turn)
    output: list[Part] = []
    last: Thought | None = None
    for part in turn.output:
        if isinstance(part, Thought):
            last = _fit(part, policy)
            output.append(last)
            continue
        bereft = not output or not isinstance(output[-1], Thought)
        if policy.every_call and last is not None and isinstance(part, Call) and bereft:
            output.append(last)
        output.append(part)
    return replace(turn, output=tuple(output))


def _fit(thought: Thought, policy: Policy) -> Thought:
    if not policy.reads or thought.sealed or thought.carrier in policy.reads:
        return thought
    raw = recast(thought, policy.reads[0])
    return thought if raw is None else Thought(carrier=policy.reads[0], raw=raw, text=thought.text)
