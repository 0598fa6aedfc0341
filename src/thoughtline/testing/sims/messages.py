"""The Messages API, as older Claude models, prefix-binding Claude models and DeepSeek serve it.

    sim = simulator("claude-bound")
    sim.answer(Request("POST", "/v1/messages", {"x-api-key": "k", ...}, body))

One engine and a table of rows. `respond` reads a request, judges the thoughts in it, lets the
script act, and gives the answer as JSON or as a stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from thoughtline.testing.sims.base import Exchange, Factory, Simulator
from thoughtline.testing.sims.ledger import Carried, Echo
from thoughtline.testing.sims.messages_binding import Claims, clean
from thoughtline.testing.sims.messages_config import Config, configure
from thoughtline.testing.sims.messages_input import THOUGHTS, Block, Call, Message, read, text_of
from thoughtline.testing.sims.messages_oddities import EMITS, EVENTS
from thoughtline.testing.sims.messages_output import Made, events, produce, slot_of, value_of
from thoughtline.testing.sims.messages_rows import ROWS, Row
from thoughtline.testing.sims.messages_rules import Court, Verdict, judge, loop_of
from thoughtline.testing.sims.messages_system import check_system
from thoughtline.testing.sims.problems import Problem
from thoughtline.testing.sims.spelling import plain, write
from thoughtline.testing.sims.values import JSON_TYPE, Reply, decode, json_reply, stream_reply

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class MessagesSimulator(Simulator):
    """A server that speaks the Messages API."""

    dialect = "messages"
    base_path = "/v1"

    def __init__(self, provider: str, row: Row, *, enforced: bool = True, **kwargs: Any) -> None:
        """Build one.

        Args:
            provider: its name.
            row: what it wants.
            enforced: the account is one of those whose prefixes are always checked.
            kwargs: what `Simulator` takes.
        """
        super().__init__(provider, **kwargs)
        self.row = row
        self.summary = row.summary
        self.enforced = enforced
        self._silent: set[str] = set()
        """Calls that were made without a thought, although thinking was on."""

    def respond(self, exchange: Exchange) -> Reply:
        try:
            return self._route(exchange)
        except Problem as problem:
            return self.refuse(problem)
        except RecursionError:
            return self.error(400, "The request body is nested too deeply.")

    def refuse(self, problem: Problem) -> Reply:
        status, message = problem.status, problem.message
        if status == 401:
            message = "invalid x-api-key" if self.now.account else "x-api-key header is required"
        usual = "invalid_request_error" if status < 500 else "api_error"
        kind = problem.kind or _TYPES.get(status, usual)
        if not self.row.anthropic:
            error = {"message": message, "type": kind, "param": None, "code": kind}
            return json_reply(status, {"error": error})
        body = {
            "type": "error",
            "error": {"type": kind, "message": message},
            "request_id": self._request_id(self.now),
        }
        return json_reply(status, body, headers={"request-id": self._request_id(self.now)})

    def models(self) -> tuple[str, ...]:
        return tuple(model.name for model in self.row.models)

    def sign(self, claims: Claims, size: int) -> str:
        """A signature over these claims, or what stands in its place."""
        if self.row.binding == "none":
            # Reported to be a request id: nothing is verified.
            return self.mac("signature", claims.name).hex()[:32]
        return self.seal(msgspec.json.encode(claims).decode(), "claude", size=600 + size)

    def account_of(self, exchange: Exchange) -> str:
        """A digest of the account."""
        return self.mac("account", exchange.account).hex()[:24]

    # Routes

    def _route(self, exchange: Exchange) -> Reply:
        method, path, headers, body, _ = exchange.request
        if self.row.anthropic and not headers.get("anthropic-version"):
            raise Problem(400, "anthropic-version: header is required")
        if method == "GET" and path.endswith("/models"):
            return self._list()
        if method != "POST":
            raise Problem(404, "Not Found")
        if self.row.anthropic and headers["anthropic-version"] >= REMOVED_SINCE:
            _check_removed(body)
        if path in self.row.paths:
            return self._create(exchange, body)
        if path.removesuffix("/count_tokens") in self.row.paths:
            call = read(body, self.row, counting=True)
            self._judge(exchange, call, self._configure(exchange, call))
            return json_reply(200, {"input_tokens": len(self._canonical(call)) // 4})
        raise Problem(404, "Not Found")

    def _list(self) -> Reply:
        names = self.models()
        data = [
            {
                "type": "model",
                "id": name,
                "display_name": name,
                "created_at": "2026-01-01T00:00:00Z",
            }
            for name in names
        ]
        page = {"data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]}
        return json_reply(200, page)

    def _create(self, exchange: Exchange, body: bytes) -> Reply:
        call = read(body, self.row)
        config = self._configure(exchange, call)
        verdict = self._judge(exchange, call, config)
        self._hide(exchange, call, verdict)
        pieces = self.play(exchange, call.tools, parallel=call.parallel)
        made = produce(self, exchange, call, config, pieces, last=verdict.last)
        self._remember(exchange, made, config)
        message = self._message(exchange, call, config, verdict, made)
        headers = {"request-id": self._request_id(exchange)}
        if not call.stream:
            [message] = self.add_oddities(exchange, [message], EVENTS, EMITS, call.body)
            chunks = (write(message, escaped=self.escaped),)
            return Reply(status=200, headers={"content-type": JSON_TYPE, **headers}, chunks=chunks)
        stream = [
            b"event: %s\ndata: %s\n\n"
            % (event["type"].encode(), write(event, escaped=self.escaped))
            for event in self.add_oddities(
                exchange, list(events(message, made, self.escaped)), EVENTS, EMITS, call.body
            )
        ]
        return stream_reply(stream, headers=headers)

    # Steps

    def _configure(self, exchange: Exchange, call: Call) -> Config:
        first = next((one for one in call.messages if one.role == "user"), None)
        echoes = _echoes(self.row, call.messages)
        self.enter(exchange, "" if first is None else text_of(first), echoes)
        if self.row.switched and _told(call.body, "thinking", "clear_thinking") is not False:
            running = len(loop_of(call.messages))
            self.show(exchange, echoes[len(echoes) - running :])
        betas = exchange.request.headers.get("anthropic-beta", "")
        check_system(call, self.row, betas)
        return configure(call, self.row, betas)

    def _judge(self, exchange: Exchange, call: Call, config: Config) -> Verdict:
        court = Court(
            call=call,
            config=config,
            row=self.row,
            account=self.account_of(exchange),
            unseal=self._claims,
            silent=self._was_silent,
            enforced=self.enforced,
        )
        return judge(court)

    def _hide(self, exchange: Exchange, call: Call, verdict: Verdict) -> None:
        """Keep from the model what it does not get to see."""
        for entry in verdict.dropped:
            if entry["type"] == "thinking_dropped":
                _, at, _, index = entry["path"].split(".")
                hidden = value_of(self.row, call.messages[int(at)].blocks[int(index)])
                exchange.read = tuple(one for one in exchange.read if one != hidden)

    def _remember(self, exchange: Exchange, made: Sequence[Made], config: Config) -> None:
        thoughts = [one for one in made if one.block["type"] in THOUGHTS]
        for one in thoughts:
            self.emit(exchange, one.block["type"], value_of(self.row, one.block), one.slot)
        if config.on and not thoughts:
            self._silent |= {one.block["id"] for one in made if "id" in one.block}

    def _message(
        self,
        exchange: Exchange,
        call: Call,
        config: Config,
        verdict: Verdict,
        made: Sequence[Made],
    ) -> dict[str, Any]:
        usage = self.measure(exchange, self._canonical(call))
        new, marked = usage.prompt - usage.cached, b'"cache_control"' in exchange.request.body
        calls = any(one.block["type"] == "tool_use" for one in made)
        content = [one.block for one in made]
        message: dict[str, Any] = {
            "id": f"msg_{self.mac('message', exchange.serial).hex()[:24]}",
            "type": "message",
            "role": "assistant",
            # Claude Code drops its thoughts when another name comes back
            # (musistudio/claude-code-router#1629).
            "model": call.body["model"],
            "content": content,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {  # each token of the prompt is in one of the three
                "input_tokens": 0 if marked else new,
                "cache_creation_input_tokens": new if marked else 0,
                "cache_read_input_tokens": usage.cached,
                "output_tokens": len(write(content)) // 4,
            },
        }
        if config.reported:
            message["input_transformations"] = list(verdict.dropped)
        return message

    def _canonical(self, call: Call) -> bytes:
        parts = [plain(clean(call.body.get(name))) for name in ("tools", "system")]
        for message in call.messages:
            parts.append(f"\n{message.role}")
            parts += [plain(clean(block)) for block in message.blocks]
        return "\n".join(parts).encode("utf-8", "surrogatepass")

    def _claims(self, block: Block) -> Claims | None:
        """What is sealed in a block, if it is a block of this kind."""
        kind = block["type"]
        opened = self.unseal(block["signature" if kind == "thinking" else "data"], "claude")
        if opened is None:
            return None
        claims = msgspec.json.decode(opened.encode(), type=Claims)
        return claims if claims.kind == kind else None

    def _was_silent(self, message: Message) -> bool:
        uses = message.of("tool_use")
        return bool(uses) and all(block["id"] in self._silent for block in uses)

    def _request_id(self, exchange: Exchange) -> str:
        return f"req_{self.mac('request', exchange.serial).hex()[:24]}"


REMOVED_SINCE = "2026-10-21"
REMOVED = ("temperature", "top_p", "top_k")
"""Parameters that this version of the API refuses at any value (platform.claude.com versioning)."""


def _check_removed(body: bytes) -> None:
    try:
        given = decode(body)
    except ValueError:
        return
    for name in REMOVED:
        if isinstance(given, dict) and name in given:
            raise Problem(400, f"{name}: Extra inputs are not permitted")


def _told(body: dict[str, Any], name: str, key: str) -> Any:
    value = body.get(name)
    return value.get(key) if isinstance(value, dict) else None


def _echoes(row: Row, messages: Sequence[Message]) -> list[Echo]:
    """The assistant turns of a conversation; messages in a row are one turn."""
    turns: list[list[Block]] = []
    before = ""
    for message in messages:
        if message.role == "assistant":
            if before != "assistant":
                turns.append([])
            turns[-1] += message.blocks
        before = message.role
    return [_echo(row, blocks) for blocks in turns]


def _echo(row: Row, blocks: Sequence[Block]) -> Echo:
    shown, thoughts = [], []
    for at, block in enumerate(blocks):
        if block["type"] in THOUGHTS:
            thoughts.append(Carried(value_of(row, block), slot_of(blocks[:at])))
        elif block["type"] == "tool_use":
            shown.append(write(block["input"]).decode("utf-8", "replace"))
        elif block["type"] == "text":
            shown.append(block["text"])
    return Echo("\n".join(shown), tuple(thoughts))


PROVIDERS: dict[str, Factory] = {
    name: partial(MessagesSimulator, name, row) for name, row in ROWS.items()
}
