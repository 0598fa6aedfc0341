r"""The default model: six turns that show everything a client can get wrong, then again.

Two calls at once, text beside a call, a plain final turn, a lone call, thoughts between text and
calls, and another plain turn. Thoughts are never the same twice and are awkward on purpose: outer
whitespace, quotes, backslashes, U+2028, an emoji. Arguments are JSON that no serialiser writes. A
script of your own is any function of the turn's number and the simulator:

    def script(turn: int, sim: Simulator) -> tuple[Piece, ...]:
        return Think(f"hm {sim.serial}"), Say(f"Hello {sim.mark}")
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from thoughtline.testing.sims.values import Piece, Say, Think, Tool, Use

if TYPE_CHECKING:
    from thoughtline.testing.sims.base import Simulator

PERIOD = 6
TOOLS = ("read_file", "run", "search")

# JSON as no serialiser writes it; the mark goes where the @ is.
_ARGUMENTS = {
    "read_file": '{"path": "a@.txt" , "n":5.0}',
    "run": '{ "command":"make \\"test\\" # \\u00e9t\u00e9@", "cwd" : "."}',
    "search": '{"query":  "\u03c0 \U0001f50e@","limit":10, "all":false }',
}


def default_script(turn: int, sim: Simulator) -> tuple[Piece, ...]:
    """What the model does after `turn` assistant turns."""
    step = turn % PERIOD
    if step == 0:
        return think(sim), use(sim, "read_file"), use(sim, "search", 1)
    if step == 1:
        return think(sim), say(sim, "Both are there; now I run `run`."), use(sim, "run")
    if step == 2:
        return think(sim), say(sim, "All \u201cgreen\u201d: the tests pass. \u2705")
    if step == 3:
        return think(sim), use(sim, "search")
    if step == 4:
        first, second = think(sim, "a"), think(sim, "b")
        told = say(sim, "I compare `read_file` with `run`.")
        return first, told, second, use(sim, "read_file"), use(sim, "run", 1)
    return think(sim), say(sim, "That is everything.")


def remembering_script(turn: int, sim: Simulator) -> tuple[Piece, ...]:
    """A model that says how many of its thoughts it sees, whatever came back to its server."""
    told = say(sim, f"I remember {sim.remembered} of my thoughts.")
    if turn % 2:
        return think(sim), told
    return think(sim), told, use(sim, TOOLS[turn % len(TOOLS)])


def think(sim: Simulator, part: str = "") -> Think:
    """A thought like no other."""
    return Think(
        f'\n  Thought {sim.serial}{part}: the user said "go", so C:\\temp\\new\u2028comes first'
        " \U0001f600 \u2014 weigh it, na\u00efvely, twice.\t \n"
    )


def say(sim: Simulator, text: str) -> Say:
    """Visible text, with whitespace around it that some clients trim."""
    mark = f" [{sim.mark}]" if sim.mark else ""
    return Say(f"  {text}{mark}\n")


def use(sim: Simulator, name: str, index: int = 0) -> Use:
    """A call of this tool; if the request does not declare it, of one that it does declare."""
    declared = {tool.name: tool for tool in sim.tools}
    if name not in declared and declared:
        tools = list(declared.values())
        return _other(sim, tools[index % len(tools)])
    return Use(name, _ARGUMENTS.get(name, "{}").replace("@", f"-{sim.mark}" if sim.mark else ""))


def _other(sim: Simulator, tool: Tool) -> Use:
    """Call a tool we know nothing of but its schema: give it what it requires."""
    schema = tool.schema if isinstance(tool.schema, dict) else {}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    names = [n for n in required if isinstance(n, str)] if isinstance(required, list) else []
    values = {name: _value(sim, properties.get(name)) for name in names}
    return Use(tool.name, json.dumps(values, ensure_ascii=False, separators=(" ,", ":  ")))


def _value(sim: Simulator, schema: Any) -> Any:
    if not isinstance(schema, dict):
        return f"a{sim.mark}"
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    kinds: dict[Any, Any] = {"integer": 5, "number": 5.0, "boolean": True, "null": None}
    kind = schema.get("type")
    if kind == "array":
        return []
    if kind == "object":
        return {}
    return kinds.get(kind, f"a-{sim.mark}.txt") if isinstance(kind, str) else f"a-{sim.mark}.txt"
