"""How thoughts travel in Chat Completions: one carrier per way, shared by the providers' rows.

A carrier writes the pieces of one exchange as a whole message and as the deltas of a stream (the
same content, cut up), enters each thought into the ledger as it goes out, and finds the thoughts
again in a message that a client sends back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from thoughtline.testing.sims.chat_view import Message, calls_of, text_of
from thoughtline.testing.sims.ledger import Carried
from thoughtline.testing.sims.seals import Style
from thoughtline.testing.sims.values import Piece, Say, Think, Use

Delta = dict[str, Any]
_INLINE = re.compile(r"<think>(.*?)</think>", re.DOTALL)


class Talk(NamedTuple):
    """One exchange, to be written down."""

    pieces: tuple[Piece, ...]
    ids: tuple[str, ...]
    """One tool-call id per `Use`."""
    turn: int
    emit: Callable[[str, str, str], str]
    """Carrier, value, slot → the ledger."""
    seal: Callable[[str, Style], str]
    cut: Callable[[str], list[str]]
    """A text → its stream deltas."""
    blank: str | None = None
    """The content of a message that says nothing."""

    @property
    def thoughts(self) -> list[str]:
        """What was thought, in order."""
        return [piece.text for piece in self.pieces if isinstance(piece, Think)]

    @property
    def said(self) -> str | None:
        """What was said, in one string."""
        text = "".join(piece.text for piece in self.pieces if isinstance(piece, Say))
        return text or self.blank

    def calls(self) -> list[dict[str, Any]]:
        """The tool calls, whole."""
        uses = [piece for piece in self.pieces if isinstance(piece, Use)]
        return [
            {"id": id, "type": "function", "function": {"name": u.name, "arguments": u.arguments}}
            for id, u in zip(self.ids, uses, strict=True)
        ]


class Carrier:
    """No carrier at all: what a provider without thoughts does, and the frame of the others."""

    interleaves = False
    """Thoughts may stand between text and calls; otherwise they all come first."""

    def message(self, talk: Talk) -> Message:
        """The whole assistant message."""
        message: Message = {"role": "assistant", "content": talk.said}
        self.attach(message, talk)
        if calls := self.calls(talk):
            message["tool_calls"] = calls
        return message

    def stream(self, talk: Talk) -> Iterator[Delta]:
        """The same message in deltas; call it after `message`, which fills the ledger."""
        yield self.opening(talk)
        thought = 0
        for piece in self.order(talk.pieces):
            if isinstance(piece, Think):
                yield from self.think(talk, thought, piece.text)
                thought += 1
            elif isinstance(piece, Say):
                yield from self.say(talk, piece.text)
        yield from self.closing(talk)
        yield from self.uses(talk)

    def order(self, pieces: tuple[Piece, ...]) -> list[Piece]:
        """The order in which the pieces are streamed."""
        if self.interleaves:
            return list(pieces)
        return sorted(pieces, key=lambda piece: not isinstance(piece, Think))

    def attach(self, message: Message, talk: Talk) -> None:
        """Put the thoughts into the whole message, and into the ledger."""

    def calls(self, talk: Talk) -> list[dict[str, Any]]:
        """The tool calls, with whatever they carry."""
        return talk.calls()

    def opening(self, talk: Talk) -> Delta:
        """The first delta."""
        return {"role": "assistant", "content": talk.blank}

    def closing(self, talk: Talk) -> Iterator[Delta]:
        """What comes after thoughts and text, before the calls."""
        yield from ()

    def think(self, talk: Talk, index: int, text: str) -> Iterator[Delta]:
        """The deltas of one thought."""
        yield from ()

    def say(self, talk: Talk, text: str) -> Iterator[Delta]:
        """The deltas of visible text."""
        return ({"content": part} for part in talk.cut(text))

    def uses(self, talk: Talk) -> Iterator[Delta]:
        """The deltas of all calls."""
        for at, call in enumerate(self.calls(talk)):
            yield from self.use(talk, at, call)

    def use(self, talk: Talk, at: int, call: dict[str, Any]) -> Iterator[Delta]:
        """The deltas of one call: its name first, then its arguments piece by piece."""
        function = call["function"]
        head = {**call, "function": {**function, "arguments": ""}}
        yield {"tool_calls": [{"index": at, **head}]}
        for part in talk.cut(function["arguments"]):
            yield {"tool_calls": [{"index": at, "function": {"arguments": part}}]}

    def read(self, message: Message) -> tuple[Carried, ...]:
        """The thoughts that an assistant message carries."""
        return ()

    def visible(self, message: Message) -> str:
        """Its text and arguments, without any thought."""
        arguments = [call["function"]["arguments"] for call in calls_of(message)]
        return "\n".join([text_of(message), *arguments])


class Field(Carrier):
    """Plain text in a field of its own: `reasoning_content`, `reasoning`."""

    def __init__(
        self, name: str, *, reads: tuple[str, ...] = (), always: bool = False, nulls: bool = False
    ) -> None:
        self.name = name
        self.reads = reads or (name,)
        self.always = always
        """The key is there even when nothing was thought (llm-rosetta#356)."""
        self.nulls = nulls
        """Each delta names both fields, one of them null (api-docs.deepseek.com)."""

    def attach(self, message: Message, talk: Talk) -> None:
        if talk.thoughts or self.always:
            message[self.name] = talk.emit(self.name, "".join(talk.thoughts), "")

    def opening(self, talk: Talk) -> Delta:
        first = super().opening(talk)
        return {**first, self.name: ""} if self.always else first

    def think(self, talk: Talk, index: int, text: str) -> Iterator[Delta]:
        other = {"content": None} if self.nulls else {}
        return ({**other, self.name: part} for part in talk.cut(text))

    def say(self, talk: Talk, text: str) -> Iterator[Delta]:
        other = {self.name: None} if self.nulls else {}
        return ({"content": part, **other} for part in talk.cut(text))

    def read(self, message: Message) -> tuple[Carried, ...]:
        values = [v for name in self.reads if isinstance(v := message.get(name), str)]
        # The same text under two names is one thought.
        return tuple(Carried(value) for value in dict.fromkeys(values))


class Inline(Carrier):
    """In the content itself, between `<think>` tags (platform.minimax.io text-openai-api)."""

    interleaves = True

    def attach(self, message: Message, talk: Talk) -> None:
        shown = [p for p in talk.pieces if not isinstance(p, Use)]
        for thought in talk.thoughts:
            talk.emit("content", thought, "")
        text = "".join(_tagged(p.text) if isinstance(p, Think) else p.text for p in shown)
        message["content"] = text or talk.blank

    def think(self, talk: Talk, index: int, text: str) -> Iterator[Delta]:
        return ({"content": part} for part in talk.cut(_tagged(text)))

    def read(self, message: Message) -> tuple[Carried, ...]:
        return tuple(Carried(text) for text in _INLINE.findall(text_of(message)))

    def visible(self, message: Message) -> str:
        return _INLINE.sub("", super().visible(message))


def _tagged(text: str) -> str:
    return f"<think>{text}</think>\n\n"


class Chunks(Carrier):
    """Typed chunks in a content list (docs.mistral.ai/capabilities/reasoning)."""

    interleaves = True

    def attach(self, message: Message, talk: Talk) -> None:
        if not talk.thoughts:
            return
        for thought in talk.thoughts:
            talk.emit("content", thought, "")
        shown = [p for p in talk.pieces if not isinstance(p, Use)]
        message["content"] = [_chunk(p.text, thinking=isinstance(p, Think)) for p in shown]

    def think(self, talk: Talk, index: int, text: str) -> Iterator[Delta]:
        return ({"content": [_chunk(part, thinking=True)]} for part in talk.cut(text))

    def uses(self, talk: Talk) -> Iterator[Delta]:
        # All of them at once, each whole: comet-ml/opik#7385, microsoft/semantic-kernel#6316.
        if calls := self.calls(talk):
            yield {"tool_calls": [{"index": at, **call} for at, call in enumerate(calls)]}

    def read(self, message: Message) -> tuple[Carried, ...]:
        content = message.get("content")
        runs: list[str] = []
        before = ""
        for part in content if isinstance(content, list) else []:
            if part.get("type") == "thinking":
                text = _thinking_text(part.get("thinking"))
                # Neighbours are one thought: a stream gives it in many chunks.
                runs = [*runs[:-1], runs[-1] + text] if before == "thinking" else [*runs, text]
            before = str(part.get("type"))
        return tuple(Carried(text) for text in runs)


def _chunk(text: str, *, thinking: bool) -> dict[str, Any]:
    inner = {"type": "text", "text": text}
    return {"type": "thinking", "thinking": [inner]} if thinking else inner


def _thinking_text(value: Any) -> str:
    parts = value if isinstance(value, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))
