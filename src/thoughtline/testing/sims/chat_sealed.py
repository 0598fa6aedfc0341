"""Carriers of thoughts that are typed, signed or encrypted, in Chat Completions.

As in `chat_carriers`, each writes the pieces of an exchange, whole and in deltas, and finds the
thoughts again. What they seal is opaque to a client and bound to its account; `chat_checks` looks
whether it comes back unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thoughtline.testing.sims.chat_carriers import Carrier, Delta, Talk
from thoughtline.testing.sims.chat_view import Message, calls_of
from thoughtline.testing.sims.ledger import Carried
from thoughtline.testing.sims.values import encode

BYPASS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""What may stand for a lost Gemini signature: ai.google.dev/gemini-api/docs/thought-signatures."""


class Details(Carrier):
    """A list of typed details; signed ones are opaque (openrouter.ai/docs reasoning-tokens)."""

    def __init__(self, style: str, *, signed: bool, plain: str | None = None) -> None:
        self.style = style
        self.signed = signed
        self.plain = plain
        """A field that repeats the text of all details."""

    def details(self, talk: Talk) -> list[dict[str, Any]]:
        """The details of this exchange: one per thought, and now and then an encrypted one."""
        base = {"format": self.style}
        out: list[dict[str, Any]] = []
        for text in talk.thoughts:
            signature = {"signature": talk.seal(f"{text}", "claude")} if self.signed else {}
            out.append({"type": "reasoning.text", "text": text, **signature, **base})
        if self.signed and talk.thoughts and talk.turn % 3 == 0:
            data = talk.seal(f"{talk.thoughts[0]}!", "claude")
            out.append({"type": "reasoning.encrypted", "data": data, "id": "rd_1", **base})
        return [{**detail, "index": at} for at, detail in enumerate(out)]

    def attach(self, message: Message, talk: Talk) -> None:
        details = self.details(talk)
        if not details:
            return
        for detail in details:
            talk.emit("reasoning_details", self.value(detail), "")
        if self.plain:
            message[self.plain] = "".join(talk.thoughts)
        message["reasoning_details"] = details

    def value(self, detail: dict[str, Any]) -> str:
        """What of a detail must come back: all of a signed one, the text of another."""
        if self.signed:
            return canonical(detail)
        text = detail.get("text")
        return text if isinstance(text, str) else ""

    def think(self, talk: Talk, index: int, text: str) -> Iterator[Delta]:
        detail = self.details(talk)[index]
        fixed = {key: detail[key] for key in ("type", "format", "index")}
        for part in talk.cut(text):
            plain = {self.plain: part} if self.plain else {}
            yield {"content": "", **plain, "reasoning_details": [{**fixed, "text": part}]}
        if self.signed:  # the signature comes last, as a fragment of the same index
            last = {**fixed, "signature": detail["signature"]}
            yield {"content": "", "reasoning_details": [last]}

    def closing(self, talk: Talk) -> Iterator[Delta]:
        for detail in self.details(talk)[len(talk.thoughts) :]:
            yield {"content": "", "reasoning_details": [detail]}

    def read(self, message: Message) -> tuple[Carried, ...]:
        details = message.get("reasoning_details")
        found = [d for d in details if isinstance(d, dict)] if isinstance(details, list) else []
        return tuple(Carried(self.value(detail)) for detail in found)


class PlainDetails(Details):
    """Unsigned details whose text must come back as a plain field (inspect_ai#4079)."""

    def read(self, message: Message) -> tuple[Carried, ...]:
        names = ("reasoning_content", "reasoning")
        plain = [v for name in names if isinstance(v := message.get(name), str)]
        joined = "".join(carried.value for carried in super().read(message))
        return tuple(Carried(v) for v in dict.fromkeys(plain or ([joined] if joined else [])))

    def attach(self, message: Message, talk: Talk) -> None:
        if talk.thoughts:
            message["reasoning"] = talk.emit("reasoning", "".join(talk.thoughts), "")
            message["reasoning_details"] = self.details(talk)


class Opaque(Carrier):
    """Readable text and a sealed twin, side by side: GitHub Copilot (opencode#8900)."""

    def attach(self, message: Message, talk: Talk) -> None:
        if talk.thoughts:
            text = "".join(talk.thoughts)
            message["reasoning_text"] = talk.emit("reasoning_text", text, "text")
            message["reasoning_opaque"] = talk.emit("reasoning_opaque", self.twin(talk), "opaque")

    def twin(self, talk: Talk) -> str:
        """The sealed value."""
        return talk.seal("".join(talk.thoughts), "claude")

    def think(self, talk: Talk, index: int, text: str) -> Iterator[Delta]:
        return ({"content": None, "reasoning_text": part} for part in talk.cut(text))

    def closing(self, talk: Talk) -> Iterator[Delta]:
        if talk.thoughts:
            yield {"content": None, "reasoning_opaque": self.twin(talk)}

    def read(self, message: Message) -> tuple[Carried, ...]:
        slots = (("reasoning_text", "text"), ("reasoning_opaque", "opaque"))
        found = [(message.get(name), slot) for name, slot in slots]
        return tuple(Carried(value, slot) for value, slot in found if isinstance(value, str))


class Signed(Carrier):
    """A signature on the first call of a step, and no readable thought (continue#8865)."""

    def calls(self, talk: Talk) -> list[dict[str, Any]]:
        calls = talk.calls()
        if calls:
            claims = f"{talk.turn}:{calls[0]['function']['name']}:{''.join(talk.thoughts)}"
            google = {"google": {"thought_signature": talk.seal(claims, "gemini")}}
            calls[0] = {"extra_content": google, **calls[0]}
        return calls

    def attach(self, message: Message, talk: Talk) -> None:
        for call in self.calls(talk)[:1]:
            talk.emit("thought_signature", signature_of(call) or "", "call:0")

    def use(self, talk: Talk, at: int, call: dict[str, Any]) -> Iterator[Delta]:
        yield {"tool_calls": [{"index": at, **call}]}  # Gemini does not stream arguments

    def read(self, message: Message) -> tuple[Carried, ...]:
        found = [(signature_of(call), at) for at, call in enumerate(calls_of(message))]
        return tuple(Carried(v, f"call:{at}") for v, at in found if v and v not in BYPASS)


def canonical(detail: dict[str, Any]) -> str:
    """A detail as text, whatever the order of its keys."""
    return encode(dict(sorted(detail.items()))).decode()


def signature_of(call: dict[str, Any]) -> str | None:
    """The thought signature of a tool call."""
    value: Any = call.get("extra_content")
    for name in ("google", "thought_signature"):
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None
