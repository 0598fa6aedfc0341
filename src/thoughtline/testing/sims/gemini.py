"""Gemini's own API, `generateContent` and its stream, as AI Studio and Vertex serve it.

    sim = simulator("gemini")
    sim.answer(Request("POST", "/v1beta/models/gemini-3-pro-preview:generateContent", ...))

One engine and two rows. `respond` reads a request, judges the signatures in it, lets the script
act, and gives the answer as JSON, as server-sent events (`alt=sse`), or as an array that grows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from thoughtline.testing.sims.base import Exchange, Factory, Simulator, Usage
from thoughtline.testing.sims.gemini_input import Call, Content, normal, read
from thoughtline.testing.sims.gemini_oddities import CHUNKS, EMITS, QUERY, Made
from thoughtline.testing.sims.gemini_output import pieces, produce, whole
from thoughtline.testing.sims.gemini_rows import (
    MODELS,
    NO_CREDENTIAL,
    NO_MODEL,
    ROWS,
    STATUSES,
    Model,
    Row,
)
from thoughtline.testing.sims.gemini_rules import Court, bypasses, judge
from thoughtline.testing.sims.ledger import Carried, Echo
from thoughtline.testing.sims.problems import Problem
from thoughtline.testing.sims.spelling import plain, write
from thoughtline.testing.sims.values import JSON_TYPE, Reply, decode, json_reply, stream_reply

_PATH = re.compile(
    r"/(?P<version>v1|v1beta|v1alpha|v1beta1)"
    r"(/projects/[^/]+/locations/[^/]+/publishers/google)?"
    r"/models(/(?P<model>[^/:]+):(?P<method>[A-Za-z]+))?"
)
_METHODS = ("generateContent", "streamGenerateContent", "countTokens")


class GeminiSimulator(Simulator):
    """A server that speaks Gemini's own API."""

    dialect = "gemini"
    base_path = "/v1beta"

    def __init__(self, provider: str, row: Row, *, ids: bool = False, **kwargs: Any) -> None:
        """Build one.

        Args:
            provider: its name.
            row: what it says.
            ids: give function calls an id, as some answers have.
            kwargs: what `Simulator` takes.
        """
        super().__init__(provider, **kwargs)
        self.row = row
        self.summary = row.summary
        self.ids = ids

    def respond(self, exchange: Exchange) -> Reply:
        request = exchange.request
        try:
            return self._route(exchange)
        except Problem as problem:
            reply = self.refuse(problem)
        except RecursionError:
            reply = self.error(400, "Invalid JSON payload received. Message too deep.")
        if ":stream" in request.path and not _sse(request.query):
            chunk = b"[" + reply.body + b"]"  # nearai/ironclaw#1521
            return Reply(status=reply.status, headers=reply.headers, chunks=(chunk,))
        return reply

    def refuse(self, problem: Problem) -> Reply:
        status = problem.status
        message = NO_CREDENTIAL if status == 401 else problem.message
        error: dict[str, Any] = {
            "code": status,
            "message": message,
            "status": STATUSES.get(status, "UNKNOWN"),
        }
        if problem.param is not None:
            violation = {"field": problem.param, "description": message}
            error["details"] = [
                {
                    "@type": "type.googleapis.com/google.rpc.BadRequest",
                    "fieldViolations": [violation],
                }
            ]
        return json_reply(status, {"error": error})

    def models(self) -> tuple[str, ...]:
        return tuple(model.name for model in MODELS)

    def sign(self, exchange: Exchange, at: int) -> str:
        """The signature of one thought."""
        claims = [self._account(exchange), exchange_model(exchange), exchange.serial, str(at)]
        return self.seal(write(claims, escaped=True).decode(), "gemini", size=360)

    # Steps

    def _route(self, exchange: Exchange) -> Reply:
        request = exchange.request
        path = _PATH.fullmatch(request.path)
        if path is None:
            raise Problem(404, "Requested entity was not found.")
        if path["method"] is None:
            if request.method != "GET":
                raise Problem(404, "Requested entity was not found.")
            listed = [
                {"name": f"models/{name}", "supportedGenerationMethods": list(_METHODS)}
                for name in self.models()
            ]
            return json_reply(200, {"models": listed})
        name, method, version = path["model"], path["method"], path["version"]
        model = next((one for one in MODELS if one.name == name), None)
        if model is None or method not in _METHODS or request.method != "POST":
            text = NO_MODEL.format(name=name, version=version, method=method)
            raise Problem(404, text)
        return self._generate(exchange, model, method)

    def _generate(self, exchange: Exchange, model: Model, method: str) -> Reply:
        counts = method == "countTokens"
        call = read(_counted(exchange.request.body) if counts else exchange.request.body)
        first = next((one for one in call.contents if one.role != "model"), None)
        self.enter(exchange, first.text if first else "", _echoes(self.row, call.contents))
        judge(Court(call, self.row, model, self._account(exchange), self._claims))
        canonical = _canonical(call)
        if counts:
            return json_reply(200, {"totalTokens": len(canonical) // 4})
        usage = self.measure(exchange, canonical)
        made = produce(self, exchange, self.play(exchange, call.tools), call)
        for one in made:
            if one.signature:
                self.emit(exchange, "thoughtSignature", one.signature, one.slot)
        streamed = method != "generateContent"
        parts = [[part] for part in pieces(made, self.escaped)] if streamed else [whole(made)]
        answers = [
            self._answer_of(exchange, model, one, usage, made, last=at == len(parts) - 1)
            for at, one in enumerate(parts)
        ]
        asked = {**call.body, QUERY: exchange.request.query}
        sent = self.add_oddities(exchange, answers, CHUNKS, EMITS, asked)
        chunks = [write(one, escaped=self.escaped) for one in sent]
        if streamed:
            return self._stream(exchange, chunks)
        return Reply(status=200, headers={"content-type": JSON_TYPE}, chunks=tuple(chunks))

    def _stream(self, exchange: Exchange, chunks: Sequence[bytes]) -> Reply:
        if _sse(exchange.request.query):
            return stream_reply([b"data: " + chunk + b"\r\n\r\n" for chunk in chunks])
        listed = [(b"[" if at == 0 else b",\r\n") + chunk for at, chunk in enumerate(chunks)]
        headers = {"content-type": JSON_TYPE}
        return Reply(status=200, headers=headers, chunks=(*listed, b"]"))

    def _answer_of(
        self,
        exchange: Exchange,
        model: Model,
        parts: list[dict[str, Any]],
        usage: Usage,
        made: Sequence[Made],
        *,
        last: bool,
    ) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
        if last:
            candidate["finishReason"] = "STOP"
        size = len(write(whole(made))) // 4
        thoughts = 20 * sum(bool(one.signature) for one in made)
        return {
            "candidates": [candidate],
            "usageMetadata": {
                "promptTokenCount": usage.prompt,
                "cachedContentTokenCount": usage.cached,
                "candidatesTokenCount": size,
                "thoughtsTokenCount": thoughts,
                "totalTokenCount": usage.prompt + size + thoughts,
            },
            "modelVersion": model.name,
            "responseId": self.mac("response", exchange.serial).hex()[:22],
        }

    def _claims(self, signature: str) -> list[str] | None:
        claims = self.unseal(signature, "gemini")
        return None if claims is None else list(decode(claims.encode()))

    def _account(self, exchange: Exchange) -> str:
        return self.mac("account", exchange.account).hex()[:24]


def exchange_model(exchange: Exchange) -> str:
    """The model that a request's path names."""
    path = _PATH.fullmatch(exchange.request.path)
    return "" if path is None else path["model"] or ""


def _sse(query: str) -> bool:
    return "alt=sse" in query.split("&")


def _canonical(call: Call) -> bytes:
    parts = [plain(call.body.get(name)) for name in ("tools", "systemInstruction")]
    for content in call.contents:
        parts += [content.role, *(plain(part) for part in content.parts)]
    return "\n".join(parts).encode("utf-8", "surrogatepass")


def _echoes(row: Row, contents: Sequence[Content]) -> list[Echo]:
    """The model's turns; contents in a row are one."""
    turns: list[list[dict[str, Any]]] = []
    before = ""
    for content in contents:
        if content.role == "model":
            if before != "model":
                turns.append([])
            turns[-1] += content.parts
        before = content.role
    return [_echo(row, parts) for parts in turns]


def _counted(body: bytes) -> bytes:
    """What is to be counted: contents, or a whole request (ai.google.dev/api/tokens)."""
    try:
        document = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body
    whole = document.get("generateContentRequest") if isinstance(document, dict) else None
    return msgspec.json.encode(whole) if isinstance(whole, dict) else body


def _echo(row: Row, parts: Sequence[dict[str, Any]]) -> Echo:
    said, used, thoughts, calls = "", [], [], 0
    for part in parts:
        slot = "text"
        if "functionCall" in part:
            slot, calls = f"call:{calls}", calls + 1
            used.append(plain(part["functionCall"].get("args")))
        elif "text" in part and not part["hidden"]:
            said += part["text"]  # a streamed text is many parts
        signature = part.get("thoughtSignature")
        if signature and not bypasses(row, signature):
            thoughts.append(Carried(normal(signature), slot))
    return Echo("\n".join([said, *used]), tuple(thoughts))


PROVIDERS: dict[str, Factory] = {
    name: partial(GeminiSimulator, name, row) for name, row in ROWS.items()
}
