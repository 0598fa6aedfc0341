"""Conversations of one tenant in an index, to look thoughts up in.

Turns are written as they are thought of: `call("ls")`, `say("Done.")`; every output of a stored
has a thought of its own that names the conversation and the turn it belongs to.
"""

from collections.abc import Collection, Sequence

from hypothesis import strategies as st
from msgspec.structs import replace

from thoughtline.log import keys
from thoughtline.log.canonical import canonical_json
from thoughtline.log.events import Outcome
from thoughtline.log.index import IndexEntry, index_entry
from thoughtline.log.parts import Call, Carrier, Origin, Part, Result, Text, Thought
from thoughtline.log.turns import Turn
from thoughtline.providers.contracts import find_policy
from thoughtline.replay.decide import plan_replay
from thoughtline.replay.guard import Target
from thoughtline.replay.match import RequestPath, request_path, undecided_key
from thoughtline.replay.plan import NO_LIMITS, ReplayLimits, ReplayPlan

CARRIERS = {
    "chat": Carrier.REASONING_CONTENT,
    "responses": Carrier.ITEM,
    "messages": Carrier.BLOCK,
    "gemini": Carrier.SIGNATURE,
}


def call(name: str, id: str = "", **arguments: object) -> Call:
    return Call(name=name, arguments=canonical_json(arguments), id=id or f"functions.{name}:0")


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
        policy=find_policy(name, dialect, model),
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
    from thoughtline.dialects.thoughts import make_thought as make

    made = make(carrier, value, origin=origin)
    return Thought(**{**{f: getattr(made, f) for f in made.__struct_fields__}, **more})


class StoredConversations:
    """An archive of conversations, all of one tenant."""

    def __init__(self) -> None:
        self.archive: dict[bytes, list[IndexEntry]] = {}
        self.index: dict[str, IndexEntry] = {}
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
        silent: Collection[int] = (),
        targets: dict[int, Target] | None = None,
    ) -> list[Turn]:
        """Remember a conversation; gives it back as lived, thoughts included.

        Turns that are `silent` had none.
        """
        first = to or target()
        self.count += 1
        session = session or f"s{self.count}"
        key = keys.RollingKey()
        lived: list[Turn] = []
        for number, (heard, spoken) in enumerate(turns):
            text = f"{session}.{number}"
            to = (targets or {}).get(number, first)
            sealed = to.origin.dialect != "chat"
            had = [p for p in spoken if isinstance(p, Thought)]
            made = (
                []
                if had or number in silent
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
            key.add_input(turn.input)
            entry = index_entry(
                turn,
                key.add_output(turn.output),
                hints=tuple(keys.string_digest(h) for h in hints),
                skipped=(skipped or {}).get(number),
            )
            self.file(entry)
            lived.append(turn)
        return lived

    def file(self, entry: IndexEntry) -> None:
        self.index[entry.turn] = entry
        for name in entry.keys:
            self.archive.setdefault(name, []).append(entry)

    def forget(self, turn: str) -> None:
        for filed in self.archive.values():
            filed[:] = [m for m in filed if m.turn != turn]

    def path(self, turns: Sequence[Turn], **facts: object) -> RequestPath:
        facts.setdefault("tools", True)
        return request_path(turns, **facts)

    def look_up(self, path: RequestPath) -> dict[bytes, list[IndexEntry]]:
        """What is found for a path, as a client's request is looked up."""
        found = {n: self.archive[n] for n in path.lookup_keys() if self.archive.get(n)}
        if key := undecided_key(path, found):
            found[key] = [replace(e, continued=self.continued(e.turn)) for e in found[key]]
        return found

    def continued(self, turn: str, most: int = 2) -> int:
        """How far a turn was continued, as a store says it."""
        after = [entry.turn for entry in self.index.values() if entry.parent == turn and most]
        return max((1 + self.continued(one, most - 1) for one in after), default=0)

    def plan_replay(
        self,
        turns: Sequence[Turn],
        to: Target | None = None,
        limits: ReplayLimits = NO_LIMITS,
        **facts: object,
    ) -> ReplayPlan:
        target_there = to or target()
        path = self.path(turns, target=target_there.origin, **facts)
        return plan_replay(path, self.look_up(path), target_there, limits)


def strip(turns: Sequence[Turn], pending: Sequence[Part] = (Text(text="next"),)) -> list[Turn]:
    """What a careless client sends: visible parts only, no identity, and something new to say."""
    echoed = [
        Turn(input=t.input, output=tuple(p for p in t.output if not isinstance(p, Thought)))
        for t in turns
    ]
    return [*echoed, Turn(input=tuple(pending))]


TALK = [
    ([ask("list the files")], [call("ls", path=".")]),
    ([result("a.txt")], [say("One file."), call("cat", path="a.txt")]),
    ([result("hello")], [say("It says hello.")]),
]


OPENAI = target("openai", "responses", "gpt-5.6")


CLAUDE = target("anthropic", "messages", "claude-sonnet-4-5")


BOUND = target("anthropic", "messages", "claude-opus-5-5")


def actions(replay_plan):
    return [decision.action.value for decision in replay_plan.decisions]


def reasons(replay_plan):
    return [decision.reason for decision in replay_plan.decisions]


def raws(replay_plan):
    return {r.turn: [p.raw for p in r.thoughts] for r in replay_plan.revisions}


_turn = st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["ls", "cat", "Done.", "Yes."]))


def _talk(pairs):
    return [([ask(i)], [call(o) if o.islower() else say(o)]) for i, o in pairs]


_targets = st.sampled_from(
    [OPENAI, CLAUDE, BOUND, target(), target("glm", model="glm-5.2"), target("openai", "responses", "gpt-6"),
     target("gemini", "gemini", "gemini-3-pro"), target("openai", "responses", "gpt-5.6", account="b"), target("kimi", model="kimi-k3")]
)  # fmt: skip
