"""A session as UI messages: what a front end shows after a reload, on every branch; pure.

    history(chat.tree, head=chat.head).repository

Words of a person and the turns that answer them are two messages. A message of the model is named
after its first turn, as in the stream, and says in its metadata how long each thought took, where
it ended (`turn`, to go on from) and how (`outcome`). Turns that answer the same words after the
same turn are answers to one message: that is what asking again makes.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from thoughtline.durations import Span, described, spans, total
from thoughtline.errors import ThoughtlineError
from thoughtline.fronts.parts import Tools
from thoughtline.parts import Blob, Call, Part, Result, Text, Thought
from thoughtline.turns import Turn

Message = dict[str, Any]
"""A `UIMessage` of the AI SDK."""

INTERRUPTED = "interrupted"
"""The outcome of a turn that has no end: its process died."""
_NO_RESULT = "The call has no result."


class History:
    """Messages in order: each one comes after the one that it follows."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.head = ""  # the last message of the branch that is shown
        self._parents: dict[str, str] = {}
        self._turns: dict[str, tuple[str, ...]] = {}  # of each message of the model
        self._asked: dict[tuple[str, tuple[Part, ...]], str] = {}

    @property
    def repository(self) -> dict[str, Any]:
        """All branches, as `messageRepository` of assistant-ui takes them."""
        tied = [{"parentId": self._parents[m["id"]] or None, "message": m} for m in self.messages]
        return {"headId": self.head or None, "messages": tied}

    @property
    def path(self) -> list[Message]:
        """The branch that is shown, as `useChat` takes it for a start."""
        named = {message["id"]: message for message in self.messages}
        back, at = [], self.head
        while at:
            back.append(named[at])
            at = self._parents[at]
        return back[::-1]

    def turn(self, message: str) -> str:
        """Where a message of the model ended: the turn to go on from. Empty for no message."""
        if not message:
            return ""
        if message not in self._turns:
            raise ThoughtlineError(f"there is no answer {message!r} here; read the history again")
        return self._turns[message][-1]

    # -- making it -------------------------------------------------------------------------------

    def ask(self, turn: Turn, parent: str) -> str:
        """The message of the words that a turn begins with, or of what it goes on from."""
        said = _words(turn)
        if not said:
            return parent
        if (known := self._asked.get((parent, said))) is None:
            known = self._asked[parent, said] = f"{turn.id}-asked"
            self._add({"id": known, "role": "user", "parts": [_said(p) for p in said]}, parent)
        return known

    def answer(self, name: str, turns: Sequence[Turn], parent: str) -> str:
        """A message that the model made in these turns."""
        self._turns[name] = tuple(turn.id for turn in turns)
        self._add(_answer(name, turns), parent)
        return name

    def stand(self, turn: str) -> None:
        """Show the branch of this turn."""
        there = [name for name, turns in self._turns.items() if turn in turns]
        ended = [name for name in there if self._turns[name][-1] == turn]
        self.head = next(iter(ended or there), "")

    def _add(self, message: Message, parent: str) -> None:
        self.messages.append(message)
        self._parents[message["id"]] = parent


def history(turns: Iterable[Turn], *, head: str = "", running: bool = False) -> History:
    """The messages of a session.

    Args:
        turns: of all branches, such as `chat.tree`; a parent comes before its children.
        head: the turn whose branch is shown; the one that started last, if empty.
        running: turns without an end are under way: their message is left out, for the stream
            brings it, and the branch is shown up to what it answers.
    """
    known = list(turns)
    children: dict[str, list[Turn]] = {}
    ids = {turn.id for turn in known}
    for turn in known:
        children.setdefault(turn.parent if turn.parent in ids else "", []).append(turn)
    made = History()
    ready = [(turn, "") for turn in reversed(children.get("", []))]
    live = ""
    while ready:
        first, parent = ready.pop()
        asked = made.ask(first, parent)
        for name, path in _answers(first, children):
            if running and path[-1].outcome is None:
                live = asked
                continue
            answer = made.answer(name, path, asked)
            fresh = [turn for turn in children.get(path[-1].id, []) if _words(turn)]
            ready += [(turn, answer) for turn in reversed(fresh)]
    made.head = live
    if not live and known:
        made.stand(head or known[-1].id)
    return made


def _answers(
    first: Turn, children: dict[str, list[Turn]]
) -> Iterator[tuple[str, tuple[Turn, ...]]]:
    """Every way in which an answer goes on, up to where somebody spoke or it ended."""
    ways = [([first], first.id)]
    while ways:
        path, name = ways.pop()
        while True:
            after = children.get(path[-1].id, [])
            more = [turn for turn in after if not _words(turn)]
            if not more:
                yield name, tuple(path)
                break
            if len(more) < len(after):
                yield f"{first.id}~{path[-1].id}", tuple(path)
            ways += [([*path, turn], f"{first.id}~{turn.id}") for turn in reversed(more[1:])]
            path.append(more[0])


def _words(turn: Turn) -> tuple[Part, ...]:
    return tuple(part for part in turn.input if isinstance(part, Text | Blob))


def _said(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    kind = part.kind if isinstance(part, Blob) else ""
    return {"type": "data-attachment", "data": {"kind": kind}}


def _answer(name: str, turns: Sequence[Turn]) -> Message:
    parts: list[dict[str, Any]] = []
    found: list[Span] = []
    tools = Tools()
    for turn in turns:
        _apply(parts, tools, [part for part in turn.input if isinstance(part, Result)])
        here = spans(turn, first=len(found))
        found += here
        parts.append({"type": "step-start"})
        parts += _output(turn, {span.place: span for span in here}, tools)
        tools.turn()
    outcome = turns[-1].outcome
    for part in parts:
        if part.get("state") == "input-available" and outcome is not None:
            part |= {"state": "output-error", "errorText": _NO_RESULT}
    metadata = described(found)
    if (whole := total(*turns)) is not None:
        metadata["reasoningTotal"] = whole
    metadata |= {"turn": turns[-1].id, "outcome": outcome or INTERRUPTED}
    return {"id": name, "role": "assistant", "parts": parts, "metadata": metadata}


def _output(turn: Turn, places: dict[int, Span], tools: Tools) -> Iterator[dict[str, Any]]:
    for place, part in enumerate(turn.output):
        match part:
            case Text() if part.text:
                yield {"type": "text", "text": part.text, "state": "done"}
            case Thought() if span := places.get(place):
                key = {"thoughtline": {"key": span.key}}
                shown = {"type": "reasoning", "text": span.summary, "state": "done"}
                yield {**shown, "providerMetadata": key}
            case Call():
                yield _called(tools.call(part)[-1])


def _called(chunk: dict[str, Any]) -> dict[str, Any]:
    """A call as a part, from the chunk that says that it is complete."""
    broken = chunk["type"] == "tool-input-error"
    named = {"type": f"tool-{chunk['toolName']}", "toolCallId": chunk["toolCallId"]}
    state = "output-error" if broken else "input-available"
    wrong = {"errorText": chunk["errorText"]} if broken else {}
    return {**named, "state": state, "input": chunk["input"], **wrong}


def _apply(parts: list[dict[str, Any]], tools: Tools, results: Sequence[Result]) -> None:
    calls = {part["toolCallId"]: part for part in parts if "toolCallId" in part}
    for result in results:
        for chunk in tools.result(result.call, result.content, error=result.error):
            part = calls[chunk["toolCallId"]]
            if "output" in chunk:
                part |= {"state": "output-available", "output": chunk["output"]}
                part.pop("errorText", None)
            else:
                part |= {"state": "output-error", "errorText": chunk["errorText"]}
