"""Small worlds of remembered conversations, to look thoughts up in.

Turns are written as they are thought of: `call("ls")`, `say("Done.")`; every output of a world
has a thought of its own that names the conversation and the turn it belongs to.
"""

from collections.abc import Sequence

from thoughtline import keys
from thoughtline.events import Outcome
from thoughtline.guards import Target
from thoughtline.matching import Path, survey
from thoughtline.memories import Memory, remember
from thoughtline.parts import Call, Carrier, Origin, Part, Result, Text, Thought
from thoughtline.policies import lookup
from thoughtline.replay import NOTHING, Limits, Restoration, restore
from thoughtline.turns import Turn

CARRIERS = {
    "chat": Carrier.REASONING_CONTENT,
    "responses": Carrier.ITEM,
    "messages": Carrier.BLOCK,
    "gemini": Carrier.SIGNATURE,
}


def call(name: str, id: str = "", **arguments: object) -> Call:
    return Call(name=name, arguments=keys.canonical(arguments), id=id or f"functions.{name}:0")


def say(text: str) -> Text:
    return Text(text=text)


def ask(text: str) -> Text:
    return Text(text=text)


def result(text: str) -> Result:
    return Result(content=text)


def target(
    name: str = "deepseek", dialect: str = "chat", model: str = "deepseek-v4-pro", **origin: str
) -> Target:
    made = {"endpoint": f"https://{name}", "account": "acct", **origin}
    return Target(
        policy=lookup(name, dialect, model),
        origin=Origin(dialect=dialect, provider=name, model=model, asked=model, **made),
    )


def thought(
    text: str, origin: Origin, *, seal: str = "", carrier: Carrier | None = None, **more: object
) -> Thought:
    """A thought as its provider would have made it; with a seal, a sealed one."""
    carrier = carrier or CARRIERS[origin.dialect]
    value: object = text
    if carrier is Carrier.ITEM:
        value = {"type": "reasoning", "id": f"rs_{text}", "summary": [], "encrypted_content": seal}
    elif carrier is Carrier.BLOCK:
        value = {"type": "thinking", "thinking": text, "signature": seal}
    elif carrier is Carrier.SIGNATURE:
        value = seal
    from thoughtline.dialects.thoughts import thought as make

    made = make(carrier, value, origin=origin)
    return Thought(**{**{f: getattr(made, f) for f in made.__struct_fields__}, **more})


class World:
    """An archive of conversations, all of one tenant."""

    def __init__(self) -> None:
        self.archive: dict[bytes, list[Memory]] = {}
        self.memories: dict[str, Memory] = {}
        self.count = 0

    def converse(
        self,
        turns: Sequence[tuple[Sequence[Part], Sequence[Part]]],
        *,
        to: Target | None = None,
        session: str = "",
        hints: tuple[str, ...] = (),
        outcomes: dict[int, Outcome] | None = None,
        skipped: dict[int, dict[str, str]] | None = None,
        think: bool = True,
        targets: dict[int, Target] | None = None,
    ) -> list[Turn]:
        """Remember a conversation; gives it back as lived, thoughts included."""
        first = to or target()
        self.count += 1
        session = session or f"s{self.count}"
        trail = keys.Trail()
        lived: list[Turn] = []
        for number, (heard, spoken) in enumerate(turns):
            text = f"{session}.{number}"
            to = (targets or {}).get(number, first)
            sealed = to.origin.dialect != "chat"
            had = [p for p in spoken if isinstance(p, Thought)]
            made = (
                []
                if had or not think
                else [thought(text, to.origin, seal=f"seal-{text}" if sealed else "")]
            )
            turn = Turn(
                input=tuple(heard),
                output=(*made, *spoken),
                id=text,
                parent=lived[-1].id if lived else "",
                session=session,
                target=to.origin,
                outcome=(outcomes or {}).get(number, Outcome.COMPLETED),
                ended=float(self.count),
            )
            trail.hear(turn.input)
            memory = remember(
                turn,
                trail.speak(turn.output),
                hints=tuple(keys.seal(h) for h in hints),
                skipped=(skipped or {}).get(number),
            )
            self.file(memory)
            lived.append(turn)
        return lived

    def file(self, memory: Memory) -> None:
        self.memories[memory.turn] = memory
        for name in memory.names:
            self.archive.setdefault(name, []).append(memory)

    def forget(self, turn: str) -> None:
        for filed in self.archive.values():
            filed[:] = [m for m in filed if m.turn != turn]

    def path(self, turns: Sequence[Turn], **facts: object) -> Path:
        facts.setdefault("tools", True)
        return survey(turns, **facts)

    def restore(
        self,
        turns: Sequence[Turn],
        to: Target | None = None,
        limits: Limits = NOTHING,
        **facts: object,
    ) -> Restoration:
        path = self.path(turns, **facts)
        found = {n: self.archive[n] for n in path.names() if self.archive.get(n)}
        return restore(path, found, to or target(), limits)


def strip(turns: Sequence[Turn], pending: Sequence[Part] = (Text(text="next"),)) -> list[Turn]:
    """What a careless client sends: visible parts only, no identity, and something new to say."""
    echoed = [
        Turn(input=t.input, output=tuple(p for p in t.output if not isinstance(p, Thought)))
        for t in turns
    ]
    return [*echoed, Turn(input=tuple(pending))]
