"""Chat Completions: read the request, judge it by the provider's row, let the script answer.

Everything that differs between providers is in `chat_rows`; this engine only knows the dialect:
routes, the whole answer and the same in stream chunks, usage, and where errors go.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from thoughtline.testing.sims.base import (
    Carried,
    Echo,
    Exchange,
    Factory,
    Piece,
    Reply,
    Simulator,
    Think,
    Tool,
    Use,
    deltas,
    encode,
    json_reply,
    sse,
    stream_reply,
)
from thoughtline.testing.sims.chat_carriers import Carrier, Talk
from thoughtline.testing.sims.chat_checks import Case
from thoughtline.testing.sims.chat_errors import Refusal
from thoughtline.testing.sims.chat_oddities import EMITS, ODDITIES, Frame
from thoughtline.testing.sims.chat_rows import ROWS, Row
from thoughtline.testing.sims.chat_view import Flaw, Message, View, calls_of, read
from thoughtline.testing.sims.problems import Problem
from thoughtline.testing.sims.seals import Style

READS_HEADER = "x-sim-reads"
"""Which of the returned thoughts the model gets to see: `all`, `loop` or `none`."""


class ChatSimulator(Simulator):
    """One Chat Completions provider."""

    dialect = "chat"

    def __init__(self, provider: str, row: Row, **options: Any) -> None:
        super().__init__(provider, **options)
        self.row = row
        self.base_path = row.bases[0]
        self.summary = row.summary

    def models(self) -> tuple[str, ...]:
        return self.row.models

    def refuse(self, problem: Problem) -> Reply:
        text = self.row.unauthorized if problem.status == 401 else problem.message
        return self.reject(Refusal(problem.status, text))

    def reject(self, refusal: Refusal, *, prefix: bytes = b"") -> Reply:
        """Answer with an error in the row's shape."""
        body = self.row.shape(refusal)
        reply = json_reply(refusal.status, body, escaped=self.escaped)
        if not prefix:
            return reply
        return Reply(status=reply.status, headers=reply.headers, chunks=(prefix + reply.body,))

    def respond(self, exchange: Exchange) -> Reply:
        method, path = exchange.request.method, exchange.request.path
        bases = {*self.row.bases, "/v1"}
        if path in {f"{base}/models" for base in bases}:
            return json_reply(200, self.listing()) if method == "GET" else self._wrong_method()
        if path not in {f"{base}/chat/completions" for base in bases}:
            return self.error(404, f"Invalid URL ({method} {path})")
        return self.complete(exchange) if method == "POST" else self._wrong_method()

    def listing(self) -> Any:
        """What `/models` answers."""
        models = [
            {"id": name, "object": "model", "created": 1760000000, "owned_by": self.provider}
            for name in self.row.models
        ]
        return {"object": "list", "data": models}

    def complete(self, exchange: Exchange) -> Reply:
        """One exchange: read, judge, answer."""
        view = read(exchange.request.body, self.row.roles)
        if isinstance(view, Flaw):
            return self.reject(self.row.complain(view))
        echoes = self.echoes(view)
        self.enter(exchange, view.first_user_text, echoes)
        self.show(exchange, self.seen(view, echoes))
        genuine = functools.partial(self.genuine, exchange)

        def silent(nth: int) -> bool:
            return self.ledger.silent(exchange.marker, nth, echoes[nth].visible)

        case = Case(view, self.row.thinks(view), genuine, self.ledger.siblings, silent)
        for check in self.row.checks:
            if refusal := check(case):
                return self.reject(refusal, prefix=self.row.error_prefix if view.stream else b"")
        return self.speak(exchange, view, thinking=case.thinking)

    def echoes(self, view: View) -> list[Echo]:
        """What the history holds, for the audit."""
        readers = self.row.readers(view.model)
        return [_echo(message, readers) for _, message in view.assistants()]

    def seen(self, view: View, echoes: list[Echo]) -> list[Echo]:
        """The turns whose thoughts the model gets to see."""
        start = {"all": 0, "loop": view.loop}.get(self.row.reads(view))
        if start is None:
            return []
        turns = zip(view.assistants(), echoes, strict=True)
        return [echo for (at, _), echo in turns if at >= start]

    def speak(self, exchange: Exchange, view: View, *, thinking: bool) -> Reply:
        """Let the script answer."""
        choice, parallel = view.body.get("tool_choice"), view.body.get("parallel_tool_calls")
        tools: tuple[Tool, ...] = () if choice == "none" else view.tools
        pieces = self.play(exchange, tools, parallel=parallel is not False)
        if not thinking:
            pieces = tuple(piece for piece in pieces if not isinstance(piece, Think))
        talk = self.talk(exchange, view, pieces)
        carrier = self.carrier(view) if thinking else Carrier()
        message = carrier.message(talk)
        usage = self.usage(exchange, view, pieces)
        headers = {READS_HEADER: self.row.reads(view)}
        frame = {
            "id": f"chatcmpl-{self.digest(exchange)[:24]}",
            "object": "chat.completion.chunk" if view.stream else "chat.completion",
            "created": int(self.clock()),
            "model": view.model,
            **self.row.stamp(view.model),
        }
        finish = "tool_calls" if talk.ids else "stop"
        if view.stream:
            frames = list(self.frames(view, frame, list(carrier.stream(talk)), finish, usage))
            sent = self.add_oddities(exchange, frames, ODDITIES, EMITS, view.body)
            return stream_reply([self.event(one) for one in sent], headers=headers)
        choices = [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}]
        body = {**frame, "choices": choices, "usage": usage}
        [body] = self.add_oddities(exchange, [body], ODDITIES, EMITS, view.body)
        return json_reply(200, body, headers=headers, escaped=self.escaped)

    def frames(
        self,
        view: View,
        frame: dict[str, Any],
        parts: list[dict[str, Any]],
        finish: str,
        usage: dict[str, Any],
    ) -> Iterator[Frame]:
        """The stream: each delta an event, then why it ended, then usage, then `[DONE]`."""
        if self.row.comment:
            yield f": {self.row.comment}"

        def choice(delta: dict[str, Any], reason: str | None) -> list[dict[str, Any]]:
            return [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]

        for part in parts:
            yield {**frame, "choices": choice(part, None)}
        last = {"usage": usage} if self.row.usage_last else {}
        yield {**frame, "choices": choice({}, finish), **last}
        if view.option("stream_options", "include_usage") is True and not last:
            yield {**frame, "choices": [], "usage": usage}
        yield "[DONE]"

    def event(self, frame: Frame) -> bytes:
        """A chunk, a comment or the end mark as it goes out."""
        if isinstance(frame, str) and frame.startswith(":"):
            return f"{frame}\n\n".encode()
        return sse(frame, escaped=self.escaped)

    def carrier(self, view: View) -> Carrier:
        """How thoughts leave in this request."""
        for name, value, carrier in self.row.switches:
            if view.option(name) == value:
                return carrier
        return self.row.usual(view.model)

    def talk(self, exchange: Exchange, view: View, pieces: tuple[Piece, ...]) -> Talk:
        """The pieces, with everything a carrier needs to write them."""
        before = sum(len(calls_of(message)) for message in view.messages)
        uses = [piece for piece in pieces if isinstance(piece, Use)]
        ids = [
            self.name_call(self.digest(exchange, at), use.name, at, before + at)
            for at, use in enumerate(uses)
        ]
        return Talk(
            pieces,
            tuple(ids),
            exchange.turn,
            functools.partial(self.emit, exchange),
            self.sealer(exchange),
            functools.partial(deltas, surrogates=self.escaped),
            self.row.blank,
        )

    def name_call(self, digest: str, name: str, at: int, total: int) -> str:
        """The id of a tool call, in the form that this provider gives it."""
        number = int(digest[:15], 16)
        return self.row.naming.format(
            digest=digest, number=number, name=name, at=at, nth=at + 1, total=total
        )

    def usage(self, exchange: Exchange, view: View, pieces: tuple[Piece, ...]) -> dict[str, Any]:
        """Tokens, and how many of them the prompt cache has seen."""
        heard = [encode(part, escaped=True) for part in (view.body.get("tools"), *view.messages)]
        prompt, cached = self.measure(exchange, b"\n".join(heard))
        written = sum(len("".join(piece)) for piece in pieces) // 4 + 1
        thought = sum(len(piece.text) for piece in pieces if isinstance(piece, Think)) // 4
        return {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": thought},
            "prompt_cache_hit_tokens": cached,
            "prompt_cache_miss_tokens": prompt - cached,
        }

    def digest(self, exchange: Exchange, index: int = -1) -> str:
        """Hex that is unique to this exchange, and to one call of it."""
        return self.mac(exchange.serial, exchange.marker, str(index)).hex()

    def sealer(self, exchange: Exchange) -> Callable[[str, Style], str]:
        """Seals claims for this account."""
        return lambda claims, style: self.seal(_claims(exchange.account, claims), style)

    def genuine(self, exchange: Exchange, seal: str, style: Style, claims: str | None) -> bool:
        """Was this sealed here for this account, and over these claims if given?"""
        found = self.unseal(seal, style) or ""
        wanted = _claims(exchange.account, claims or "")
        return found == wanted if claims is not None else found[:32] == wanted[:32]

    def _wrong_method(self) -> Reply:
        return self.error(405, "Method Not Allowed")


def _echo(message: Message, readers: tuple[Carrier, ...]) -> Echo:
    """One assistant message: what is visible in it, and the thoughts it carries."""
    found: list[Carried] = []
    for reader in readers:
        found += [carried for carried in reader.read(message) if carried not in found]
    return Echo(min((reader.visible(message) for reader in readers), key=len), tuple(found))


def _claims(account: str, text: str) -> str:
    """Whose, and over what: two hashes."""
    parts = (account.encode(), text.encode())
    return "".join(hashlib.sha256(part).hexdigest()[:32] for part in parts)


PROVIDERS: dict[str, Factory] = {
    name: functools.partial(ChatSimulator, name, row) for name, row in ROWS.items()
}
