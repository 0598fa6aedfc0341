"""A session as UI messages: what a front end shows after a reload, on every branch.

    history(chat.tree, head=chat.head).repository

What a person said and the turns that answer it are two messages. An answer's id is that of its
first turn, as in the stream. Its metadata says how long each thought took, which turn it ended
with (`turn`, to go on from) and how (`outcome`). Turns that answer the same words after the same
turn are alternative answers to one message: regenerating an answer makes them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from thoughtline.agents.ui.message_parts import ToolParts
from thoughtline.errors import TurnNotFound
from thoughtline.log.durations import (
    ThoughtSpan,
    durations_json,
    part_metadata,
    thought_spans,
    total_seconds,
)
from thoughtline.log.parts import Blob, Call, Part, Result, Text, Thought
from thoughtline.log.turns import Turn

Message = dict[str, Any]
"""A `UIMessage` of the AI SDK."""

INTERRUPTED = "interrupted"
"""The outcome of a turn that has no end: its process died."""
_NO_RESULT = "The call has no result."


class UiHistory:
    """A session's messages; a message comes after the one that it follows. Made by `history`."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.head = ""  # the last message of the branch that is shown
        self._parents: dict[str, str] = {}  # message → the one that it follows
        self._turns: dict[str, tuple[str, ...]] = {}  # answer → its turns
        self._questions: dict[tuple[str, tuple[Part, ...]], str] = {}

    @property
    def repository(self) -> dict[str, Any]:
        """All branches, as `messageRepository` of assistant-ui takes them."""
        linked = [{"parentId": self._parents[m["id"]] or None, "message": m} for m in self.messages]
        return {"headId": self.head or None, "messages": linked}

    @property
    def path(self) -> list[Message]:
        """The branch that is shown, as `useChat` takes it for its initial messages."""
        by_id = {message["id"]: message for message in self.messages}
        backwards, id = [], self.head
        while id:
            backwards.append(by_id[id])
            id = self._parents[id]
        return backwards[::-1]

    def turn(self, message: str) -> str:
        """The turn that an answer ended with: where to go on from. Empty for no message."""
        if not message:
            return ""
        if message not in self._turns:
            raise TurnNotFound(f"there is no answer {message!r} here; read the history again")
        return self._turns[message][-1]

    # -- building --------------------------------------------------------------------------------

    def add_question(self, turn: Turn, parent: str) -> str:
        """Add the user message that a turn begins with, if it is new; the id to answer."""
        words = _user_parts(turn)
        if not words:
            return parent
        if (id := self._questions.get((parent, words))) is None:
            id = self._questions[parent, words] = f"{turn.id}-asked"
            parts = [_user_part(part) for part in words]
            self._add({"id": id, "role": "user", "parts": parts}, parent)
        return id

    def add_answer(self, id: str, turns: Sequence[Turn], parent: str) -> str:
        """Add the message that the model made in these turns."""
        self._turns[id] = tuple(turn.id for turn in turns)
        self._add(_answer(id, turns), parent)
        return id

    def show_branch(self, turn: str) -> None:
        """Make the answer with this turn the head."""
        holding = [id for id, turns in self._turns.items() if turn in turns]
        ending = [id for id in holding if self._turns[id][-1] == turn]
        self.head = next(iter(ending or holding), "")

    def _add(self, message: Message, parent: str) -> None:
        self.messages.append(message)
        self._parents[message["id"]] = parent


def history(turns: Iterable[Turn], *, head: str = "", running: bool = False) -> UiHistory:
    """The messages of a session.

    Args:
        turns: of all branches, such as `chat.tree`; a parent comes before its children.
        head: the turn whose branch is shown; the one that started last, if empty.
        running: turns without an end are under way: their message is left out, because the stream
            brings it, and the branch is shown up to what it answers.
    """
    known = list(turns)
    children: dict[str, list[Turn]] = {}
    ids = {turn.id for turn in known}
    for turn in known:
        children.setdefault(turn.parent if turn.parent in ids else "", []).append(turn)
    messages = UiHistory()
    pending = [(turn, "") for turn in reversed(children.get("", []))]
    live = ""
    while pending:
        first, parent = pending.pop()
        question = messages.add_question(first, parent)
        for id, path in _answers(first, children):
            if running and path[-1].outcome is None:
                live = question
                continue
            answer = messages.add_answer(id, path, question)
            following = [turn for turn in children.get(path[-1].id, []) if _user_parts(turn)]
            pending += [(turn, answer) for turn in reversed(following)]
    messages.head = live
    if not live and known:
        messages.show_branch(head or known[-1].id)
    return messages


def _answers(
    first: Turn, children: dict[str, list[Turn]]
) -> Iterator[tuple[str, tuple[Turn, ...]]]:
    """Every path of turns that answers one message: up to its end, or to where a user speaks."""
    paths = [([first], first.id)]
    while paths:
        path, id = paths.pop()
        while True:
            after = children.get(path[-1].id, [])
            unprompted = [turn for turn in after if not _user_parts(turn)]
            if not unprompted:
                yield id, tuple(path)
                break
            if len(unprompted) < len(after):
                yield f"{first.id}~{path[-1].id}", tuple(path)
            others = reversed(unprompted[1:])
            paths += [([*path, turn], f"{first.id}~{turn.id}") for turn in others]
            path.append(unprompted[0])


def _user_parts(turn: Turn) -> tuple[Part, ...]:
    return tuple(part for part in turn.input if isinstance(part, Text | Blob))


def _user_part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    kind = part.kind if isinstance(part, Blob) else ""
    return {"type": "data-attachment", "data": {"kind": kind}}


def _answer(id: str, turns: Sequence[Turn]) -> Message:
    parts: list[dict[str, Any]] = []
    durations: list[ThoughtSpan] = []
    tools = ToolParts()
    for turn in turns:
        _add_results(parts, tools, [part for part in turn.input if isinstance(part, Result)])
        of_turn = thought_spans(turn, first=sum(part["type"] != "step-start" for part in parts))
        durations += of_turn
        parts.append({"type": "step-start"})
        parts += _output(turn, {span.place: span for span in of_turn}, tools)
        tools.next_turn()
    outcome = turns[-1].outcome
    for part in parts:
        if part.get("state") == "input-available" and outcome is not None:
            part |= {"state": "output-error", "errorText": _NO_RESULT}
    metadata = durations_json(durations)
    if (seconds := total_seconds(*turns)) is not None:
        metadata["reasoningTotal"] = seconds
    metadata |= {"turn": turns[-1].id, "outcome": outcome or INTERRUPTED}
    return {"id": id, "role": "assistant", "parts": parts, "metadata": metadata}


def _output(
    turn: Turn, by_place: dict[int, ThoughtSpan], tools: ToolParts
) -> Iterator[dict[str, Any]]:
    for place, part in enumerate(turn.output):
        match part:
            case Text() if part.text:
                yield {"type": "text", "text": part.text, "state": "done"}
            case Thought() if span := by_place.get(place):
                reasoning = {"type": "reasoning", "text": span.summary, "state": "done"}
                duration = {} if span.seconds is None else {"duration": span.seconds}
                metadata = {"thoughtline": part_metadata(span)}
                yield {**reasoning, **duration, "providerMetadata": metadata}
            case Call():
                yield _call_part(tools.call(part)[-1])


def _call_part(chunk: dict[str, Any]) -> dict[str, Any]:
    """A call's part, from the chunk that says that its input is complete."""
    failed = chunk["type"] == "tool-input-error"
    ids = {"type": f"tool-{chunk['toolName']}", "toolCallId": chunk["toolCallId"]}
    state = "output-error" if failed else "input-available"
    error = {"errorText": chunk["errorText"]} if failed else {}
    return {**ids, "state": state, "input": chunk["input"], **error}


def _add_results(parts: list[dict[str, Any]], tools: ToolParts, results: Sequence[Result]) -> None:
    calls = {part["toolCallId"]: part for part in parts if "toolCallId" in part}
    for result in results:
        for chunk in tools.result(result.call, result.content, error=result.error):
            part = calls[chunk["toolCallId"]]
            if "output" in chunk:
                part |= {"state": "output-available", "output": chunk["output"]}
                part.pop("errorText", None)
            else:
                part |= {"state": "output-error", "errorText": chunk["errorText"]}
