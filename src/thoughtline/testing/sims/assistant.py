"""A model that answers like an assistant: it thinks, uses the tools that are there, and talks.

The script for people who try things out; `script.default_script` is the one for tests. It knows
next to nothing and says so, but what it does makes sense: it reads the file that the user speaks
of, looks at what came back, and answers from that. It calls nothing that changes anything.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from thoughtline.testing.sims.assistant_tools import FILE, Wish, follow_up, wishes
from thoughtline.testing.sims.heard import Answered, Heard, listen
from thoughtline.testing.sims.values import Piece, Say, Think

if TYPE_CHECKING:
    from thoughtline.testing.sims.base import Simulator

MOST_ROUNDS = 2
"""How often it calls tools before it answers."""


def assistant_script(turn: int, sim: Simulator) -> tuple[Piece, ...]:
    """What the model does after `turn` assistant turns."""
    heard = listen(sim.now.request.body)
    if heard.schema is not None and not sim.tools:
        return Think(_opening(sim, heard)), Say(_structured(heard))
    wanted = _wanted(heard, sim)
    if wanted:
        plan = " and ".join(wish.purpose for wish in wanted)
        return (Think(_plan(sim, heard, plan)), *(wish.use for wish in wanted))
    if heard.answered:
        return Think(_review(sim, heard)), Say(_report(heard))
    thought, said = _talk(sim, heard, turn)
    return Think(thought), Say(said)


def _wanted(heard: Heard, sim: Simulator) -> list[Wish]:
    """The calls to make now."""
    if not sim.tools or len(heard.answered) >= MOST_ROUNDS:
        return []
    if not heard.answered:
        return wishes(heard.asked, sim.tools, heard.folder)
    last = heard.answered[-1]
    if FILE.search(heard.asked) or not re.search(r"\b(project|repo|about|this)\b", heard.asked):
        return []
    wish = follow_up(last.text, sim.tools, heard.folder)
    return [wish] if wish else []


# -- thoughts ------------------------------------------------------------------------------------


def _vary(sim: Simulator, *choices: str) -> str:
    """One of several ways to put it, so that two conversations do not read alike."""
    return choices[sim.mac("vary", sim.serial, choices[0])[0] % len(choices)]


def _opening(sim: Simulator, heard: Heard) -> str:
    asked = _short(heard.asked) or "nothing in particular"
    return _vary(
        sim,
        f"The user says: “{asked}”. Let me see what is really being asked for here.",
        f"So the question is “{asked}”. Before I answer, what do I have to go by?",
        f"“{asked}”: let me take that one step at a time, and not guess.",
    )


def _plan(sim: Simulator, heard: Heard, plan: str) -> str:
    first = not heard.answered
    then = _vary(
        sim,
        "I could answer from memory, but then I would be making it up.",
        "I have not seen any of this yet, and a guess would help nobody.",
        "The only honest way to find out is to look.",
    )
    if not first:
        then = f"That tells me where to go on: {_gist(heard.answered[-1])}"
    names = ", ".join(f"`{tool.name}`" for tool in sim.tools[:4])
    more = f" and {len(sim.tools) - 4} more" if len(sim.tools) > 4 else ""
    close = _vary(
        sim, "Then I can answer.", "One look should be enough.", "After that I will know."
    )
    return f"{_opening(sim, heard)} {then} The tools here are {names}{more}. I will {plan}. {close}"


def _review(sim: Simulator, heard: Heard) -> str:
    seen = " ".join(_gist(one) for one in heard.answered)
    judged = _vary(
        sim,
        "That is what was asked for, so there is no need to call anything else.",
        "This is enough to answer from; calling more tools would only cost time.",
        "I have what I need. I should say what I saw, and not more than that.",
    )
    return (
        f"The user wanted to know: “{_short(heard.asked)}”. Now I have an answer to look at. {seen}"
        f" {judged} Keep it short, and name the source."
    )


# -- answers -------------------------------------------------------------------------------------


def _talk(sim: Simulator, heard: Heard, turn: int) -> tuple[str, str]:
    """A thought and an answer where no tool is of use."""
    asked = heard.asked
    if found := _sum(asked):
        expression, value = found
        steps = f"{_opening(sim, heard)} It is a sum: {expression}. Piece by piece, then check it "
        return f"{steps}the other way round. Both ways give {value}.", f"{expression} = {value}"
    for words, answers in _ANSWERS.items():
        if re.search(words, asked, re.IGNORECASE):
            weighed = "That is small talk, or close to it: a short and friendly answer will do."
            said = _vary(sim, *answers).format(name=sim.provider, turn=turn + 1)
            return f"{_opening(sim, heard)} {weighed} No tool is needed.", said
    told = _vary(
        sim,
        "I do not have real knowledge, so a long answer would be invented.",
        "I am a simulation without a model behind it; I must not pretend otherwise.",
    )
    said = _vary(
        sim,
        "I am a simulated model, so I cannot tell you much about “{asked}”.",
        "“{asked}” is a question for a real model; I am simulated, and know very little.",
    ).format(asked=_short(asked))
    more = (
        " What you see is real all the same: I thought before I answered, that thought is in the"
        " log, and it goes back to me with your next message."
    )
    return f"{_opening(sim, heard)} {told} I can say what I am, and what happens here.", said + more


_ANSWERS: Mapping[str, tuple[str, ...]] = {
    r"^\W*(hi|hello|hey|good (morning|evening|day)|moin|hallo)\b": (
        "Hello! I am a simulated {name} model on your machine. Ask me for a file or a sum.",
        "Hi there! I am {name}, simulated on this machine. I think before I answer: have a look.",
    ),
    r"\b(thanks|thank you|great|perfect)\b": (
        "You are welcome. Anything else that I should look at?",
        "Glad that it helped. What comes next?",
    ),
    r"\b(who|what) are you\b|\bwhat can you\b|\bhelp\b": (
        "A simulated {name} model. I read files and search, if you give me tools, and I can add.",
        "A simulation of {name}, on your machine. Ask for a file, a search or a sum.",
    ),
    r"\b(haiku|poem)\b": (
        "A thought crossed the wire,\nit was kept, and it came back.\nNothing had been lost.",
        "Between two requests\nmost clients forget the thought.\nThe log remembers.",
    ),
    r"\bjoke\b": (
        "“The usual?” – “I would love to know,” says the model, “but my client threw that away.”",
        "Why did the model answer 400? Nobody had given its thought back.",
    ),
    r"\b(go on|continue|and then|next)\b": (
        "That is answer number {turn} of this conversation, and all earlier thoughts were with me.",
        "Gladly. This is my answer number {turn} here; I still know what I thought before.",
    ),
}
"""What users say, and what a polite model answers."""

_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _sum(asked: str) -> tuple[str, str] | None:
    """A sum in the user's words, and what it comes to."""
    found = re.search(r"(?<![\w/.:-])\d[\d\s.+*/()×x÷-]*[+*/×x÷-][\s(]*\d[\d.)]*", asked[:200])
    if not found or re.match(r"\d+-\d+-\d+|\d+/\d+/\d+", found[0]):  # a date
        return None
    text = re.sub(r"[×x]", "*", found[0]).replace("÷", "/").strip()
    try:
        value = _value(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError):
        return None
    return text, f"{value:.10g}" if isinstance(value, float) else str(value)


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        if abs(node.value) < 1e9:
            return node.value
    elif isinstance(node, ast.BinOp) and (apply := _OPERATORS.get(type(node.op))):
        return apply(_value(node.left), _value(node.right))
    raise ValueError("not a sum")


def _report(heard: Heard) -> str:
    """The answer from what the tools have given back."""
    return "\n\n".join(_told(one) for one in heard.answered)


def _told(one: Answered) -> str:
    lines = _lines(one.text)
    if not lines:
        return f"`{one.name}` came back with nothing at all."
    if _failed(one):
        return f"That did not work: `{one.name}` says “{_short(' '.join(lines), 300)}”."
    if len(lines) == 1:
        return f"`{one.name}` says: {_short(lines[0], 400)}"
    shown = "\n".join(f"    {line[:120]}" for line in lines[:6])
    rest = f"\n    … and {len(lines) - 6} lines more" if len(lines) > 6 else ""
    return f"I looked with `{one.name}`; {len(lines)} lines came back:\n\n{shown}{rest}"


def _gist(one: Answered) -> str:
    lines = _lines(one.text)
    if not lines:
        return f"`{one.name}` gave nothing back."
    if _failed(one):
        return f"`{one.name}` failed: “{_short(lines[0])}”. I should say so, and not hide it."
    return f"`{one.name}` gave {len(lines)} lines; the first is “{_short(lines[0])}”."


def _failed(one: Answered) -> bool:
    return bool(re.match(r"(?i)\W*(error|failed|.*no such file|.*not found)", one.text))


def _lines(text: str) -> list[str]:
    """The lines with something on them, without what tools put before and around them."""
    text = re.split(r"(?m)^Output:\n", text)[-1]
    text = re.sub(r"(?m)^\s*<([a-z_]+)>[^<\n]*</\1>\s*$|^\s*</?[a-z_]+>\s*$", "", text)
    lines = (re.sub(r"^\s*\d+(?:→|\t|:\s)", "", line).rstrip() for line in text.splitlines())
    return [line for line in lines if line.strip()]


def _structured(heard: Heard) -> str:
    """An answer that follows the request's schema: a title for a conversation, most of the time."""
    return json.dumps(_example(heard.schema, heard.asked), ensure_ascii=False)


def _example(schema: Any, asked: str) -> Any:
    schema = schema if isinstance(schema, dict) else {}
    if isinstance(choices := schema.get("enum"), list) and choices:
        return choices[0]
    kind = str(schema.get("type", "string")).lower()
    if kind == "object":
        fields = schema.get("properties")
        fields = fields if isinstance(fields, dict) else {}
        return {name: _example(one, asked) for name, one in fields.items()}
    plain: Mapping[str, Any] = {"boolean": False, "integer": 1, "number": 1.0, "array": []}
    return plain.get(kind, _short(asked, 48))


def _short(text: str, size: int = 120) -> str:
    text = " ".join(text.split())
    return text if len(text) <= size else f"{text[: size - 1]}…"
