"""The Responses API, as OpenAI, the Codex backend, Azure, xAI and DeepSeek serve it.

    sim = simulator("openai")
    sim.answer(Request("POST", "/v1/responses", {"authorization": "Bearer k"}, body))

One engine and a table of rows. `respond` reads and judges a request, lets the script act, and gives
the answer as JSON or as a stream; `responses_ws` runs the same over a WebSocket.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from thoughtline.testing.sims.base import Exchange, Factory, Simulator, credential
from thoughtline.testing.sims.problems import Problem
from thoughtline.testing.sims.responses_answer import (
    Answer,
    envelope,
    numbered,
    shell,
    unauthorised,
)
from thoughtline.testing.sims.responses_events import Stream
from thoughtline.testing.sims.responses_history import echoes, phases, text_of
from thoughtline.testing.sims.responses_input import Create, Item, read
from thoughtline.testing.sims.responses_oddities import EMITS, EVENTS, Event, Out
from thoughtline.testing.sims.responses_output import produce, thought_of
from thoughtline.testing.sims.responses_rows import (
    LITE,
    LITE_HEADER,
    NO_RESPONSE,
    NOT_STORED,
    NOT_STREAMED,
    ROWS,
    Row,
)
from thoughtline.testing.sims.responses_rules import Case, Known, inspect, judge
from thoughtline.testing.sims.spelling import Fragment, plain, write
from thoughtline.testing.sims.values import (
    JSON_TYPE,
    Reply,
    Request,
    decode,
    json_reply,
    stream_reply,
)

if TYPE_CHECKING:
    from thoughtline.testing.sims.responses_ws import ResponsesSocket

_NOT_COUNTED = ("store", "include", "stream", "background", "metadata", "service_tier")
"""Parameters of a request that `/responses/input_tokens` does not know (openai-python's
`InputTokenCountParams`)."""
PHASES_HEADER = "x-sim-phases"
"""How many assistant messages came back with their `phase`, and how many without."""


class ResponsesSimulator(Simulator):
    """A server that speaks the Responses API."""

    dialect = "responses"

    def __init__(
        self, provider: str, row: Row, *, odd: bool = True, lanes: bool | None = None, **kwargs: Any
    ) -> None:
        """Build one.

        Args:
            provider: its name.
            row: what it wants.
            odd: put unknown fields, in an odd spelling, into every third reasoning item.
            lanes: whether its WebSocket knows `stream_id`; None as the row says.
            kwargs: what `Simulator` takes, and fields of the row to change (`late`, `alias`, …).
        """
        changes = {name: kwargs.pop(name) for name in row.__struct_fields__ if name in kwargs}
        super().__init__(provider, **kwargs)
        self.row = msgspec.structs.replace(row, **changes)
        self.base_path = self.row.paths[0].removesuffix("/responses")
        self.summary = self.row.summary
        self.odd = odd
        self.lanes = self.row.sockets == "lanes" if lanes is None else lanes
        self.known: dict[str, Known] = {}
        self.stored: dict[str, tuple[str, tuple[Item, ...], dict[str, Any]]] = {}
        self.phases: dict[str, str] = {}
        self.users: dict[str, Any] = {}
        """Whose end user a thought was made for, by its seal."""

    # The frame's three questions

    def respond(self, exchange: Exchange) -> Reply:
        try:
            return self._route(exchange)
        except Problem as problem:
            return self.refuse(problem)
        except RecursionError:
            return self.error(400, "The request is nested too deeply.")

    def refuse(self, problem: Problem) -> Reply:
        if problem.status == 401:
            body = unauthorised(self.row.shape, self.now.account)
        else:
            body = envelope(self.row.shape, problem)
        return json_reply(problem.status, body)

    def models(self) -> tuple[str, ...]:
        return self.row.models

    def connect(self, request: Request) -> ResponsesSocket | Reply:
        """Accept a WebSocket on the path of the create endpoint."""
        from thoughtline.testing.sims.responses_ws import ResponsesSocket

        self.begin(request)
        if not self.now.account or self.account not in (None, self.now.account):
            return self.error(401, "")
        if request.path not in self.row.paths:
            return self.error(404, f"Invalid URL ({request.method} {request.path})")
        if self.row.sockets == "none":
            # codex-rs falls back to HTTP on this status.
            return self.error(426, "Upgrade Required")
        return ResponsesSocket(self, request)

    # Answering, over HTTP and WebSocket alike

    def serve(self, request: Request, create: Create, memory: tuple[Item, ...]) -> Answer:
        """Start an answer outside of HTTP; the caller says which items it delivered.

        Raises:
            Problem: the server refuses.
        """
        with self._lock:
            exchange = self.begin(request)
            try:
                fault = self._fault(request)
                if fault is not None and fault.status is not None:
                    raise Problem(fault.status, fault.message)
                answer = self.make(exchange, create, memory)
            except Problem as problem:
                self.finish(exchange, self.refuse(problem))
                raise
            except RecursionError:
                self.finish(exchange, self.error(400, "nested"))
                raise Problem(400, "The request is nested too deeply.") from None
            answer.fault = fault
            self.finish(exchange, Reply(status=200, headers={}, chunks=()))
            return answer

    def make(self, exchange: Exchange, create: Create, memory: tuple[Item, ...]) -> Answer:
        """Judge a request and make its answer, nothing of it delivered yet."""
        if not create.model.startswith(self.row.families):
            raise Problem(
                400, f"The requested model '{create.model}' does not exist.", code="model_not_found"
            )
        account = self._account(exchange)
        case = Case(create, self.row, account, self.known, memory, self._claims)
        self._enter(exchange, inspect(case))
        whole = judge(case)
        self._enter(exchange, whole)
        withheld = self._withheld(exchange, create, whole)
        outs = []
        if create.generate:
            outs = produce(
                self,
                exchange,
                create,
                self.play(exchange, create.tools, parallel=self._parallel(exchange, create)),
            )
        name = f"resp_{self.mac('response', exchange.serial).hex()[:48]}"
        prompt = [plain(create.body.get(name)) for name in ("tools", "instructions")]
        canonical = "\n".join([*prompt, *(plain(item.value) for item in whole)])
        return Answer(
            id=name,
            exchange=exchange,
            create=create,
            whole=whole,
            outs=outs,
            shell=shell(name, self.clock(), create) | withheld,
            prompt=self.measure(exchange, canonical.encode("utf-8", "surrogatepass")),
        )

    def deliver(self, answer: Answer, out: Out, outs: Sequence[Out]) -> None:
        """Note that an item reached the client; `outs` is all that was or will be delivered."""
        at = outs.index(out)
        earlier = [one for one in outs[:at] if one.kind == "reasoning"]
        self.known[out.id] = Known(
            account=self._account(answer.exchange),
            kind=out.kind,
            raw=out.raw,
            call=out.value.get("call_id", ""),
            pair=earlier[-1].id if earlier and out.kind != "reasoning" else "",
            follower=outs[at + 1].id if at + 1 < len(outs) else "",
            stored=answer.create.store and not self.row.stateless,
        )
        if out.kind == "reasoning":
            item = Item(out.raw, decode(out.raw))
            value = thought_of(self.row, item)
            self.emit(answer.exchange, "reasoning", value, out.slot)
            seal = item.value.get("encrypted_content") or out.id
            self.users[seal] = answer.create.body.get("safety_identifier")
        elif "phase" in out.value:
            self.phases[out.text.strip()] = out.value["phase"]

    def keep(self, answer: Answer, outs: Sequence[Out], response: dict[str, Any]) -> None:
        """Store the response, if it may be stored."""
        if answer.create.store and not self.row.stateless:
            owner = self._account(answer.exchange)
            self.stored[answer.id] = (owner, answer.remembered(outs), response)

    def recall(self, request: Request, name: str) -> tuple[Item, ...]:
        """The conversation up to a stored response of this account."""
        found = self.stored.get(name)
        if found is None or found[0] != self._digest(credential(request)):
            raise Problem(
                400,
                NO_RESPONSE.format(id=name),
                code="previous_response_not_found",
                param="previous_response_id",
            )
        return found[1]

    def events(self, answer: Answer) -> list[Event]:
        """The stream of a whole answer; not numbered yet."""
        plain = list(self._events(answer))
        return self.add_oddities(answer.exchange, plain, EVENTS, EMITS, answer.create.body)

    def _events(self, answer: Answer) -> Iterator[Event]:
        for name in ("created", "in_progress"):
            response = answer.response("in_progress")
            yield Event({"type": f"response.{name}", "response": response})
        stream = Stream(self.row, self.escaped)
        for index, out in enumerate(answer.outs):
            yield from stream.item(out, index)
        response = answer.response("completed", answer.outs)
        yield Event({"type": "response.completed", "response": response})

    def blob(self, kind: str, name: str, size: int) -> str:
        """A sealed thought of this account."""
        claims = write([kind, self._account(self.now), name], escaped=True).decode()
        return self.seal(claims, self.row.style or "openai", size=400 + size)

    # Routes

    def _route(self, exchange: Exchange) -> Reply:
        method, path, _, body, _ = exchange.request
        if method == "POST" and path in self.row.paths:
            return self._create(exchange, body)
        if method == "GET" and path.endswith("/models"):
            names = [{"id": name, "object": "model", "created": 0} for name in self.row.models]
            return json_reply(200, {"object": "list", "data": names})
        root, _, name = path.rpartition("/")
        if root in self.row.paths and method == "POST" and name == "compact":
            return self._compact(exchange, body)
        if root in self.row.paths and method == "POST" and name == "input_tokens":
            return self._input_tokens(exchange, body)
        if root in self.row.paths and method == "GET":
            self.recall(exchange.request, name)
            return self._json(self.stored[name][2])
        raise Problem(404, f"Invalid URL ({method} {path})")

    def _create(self, exchange: Exchange, body: bytes) -> Reply:
        create = read(body)
        self.demand(exchange.request, create)
        memory = self.recall(exchange.request, create.previous) if create.previous else ()
        answer = self.make(exchange, create, memory)
        events = self.events(answer)
        for out in answer.outs:
            self.deliver(answer, out, answer.outs)
        response = answer.response("completed", answer.outs)
        self.keep(answer, answer.outs, response)
        headers = {PHASES_HEADER: phases(self.phases, answer.whole)}
        if not create.stream:
            sent = [Event(response)]
            [whole] = self.add_oddities(exchange, sent, EVENTS, EMITS, create.body)
            return self._json(whole.data, headers)
        chunks = [
            b"event: %s\ndata: %s\n\n"
            % (event.kind.encode(), write(numbered(event.data, at), escaped=self.escaped))
            for at, event in enumerate(events)
        ]
        return stream_reply(chunks, headers=headers)

    def _input_tokens(self, exchange: Exchange, body: bytes) -> Reply:
        given = decode(body)
        for name in _NOT_COUNTED:
            if name in given:
                raise Problem(400, f"Unknown parameter: '{name}'.", param=name)
        create = read(body)
        memory = self.recall(exchange.request, create.previous) if create.previous else ()
        self.make(exchange, msgspec.structs.replace(create, generate=False), memory)
        return self._json({"object": "response.input_tokens", "input_tokens": len(body) // 4})

    def _compact(self, exchange: Exchange, body: bytes) -> Reply:
        create = read(body)
        answer = self.make(exchange, msgspec.structs.replace(create, generate=False), ())
        name = f"cmp_{self.mac('compaction', exchange.serial).hex()[:48]}"
        blob = {
            "id": name,
            "type": "compaction",
            "encrypted_content": self.blob("compaction", name, 0),
        }
        said = [
            Fragment(item.raw.decode())
            for item in answer.whole
            if item.kind == "message" and not item.assistant
        ]
        response = {**answer.response("completed"), "object": "response.compaction"}
        return self._json({**response, "output": [*said, blob]})

    def _json(self, value: object, headers: dict[str, str] | None = None) -> Reply:
        chunks = (write(value, escaped=self.escaped),)
        return Reply(
            status=200, headers={"content-type": JSON_TYPE, **(headers or {})}, chunks=chunks
        )

    # What this server demands, knows and says

    def demand(self, request: Request, create: Create, *, socket: bool = False) -> None:
        """The rules of the Codex backend, most of which speak in another shape."""
        for name in self.row.unsupported:
            if create.body.get(name) is not None:
                raise Problem(400, f"Unsupported parameter: {name}", kind="detail")
        if self.row.stateless and create.body.get("store") is not False:
            raise Problem(400, NOT_STORED, kind="detail")
        if self.row.streamed and not create.stream and not socket:
            raise Problem(400, NOT_STREAMED, kind="detail")
        if self._lite(request) and create.context != "all_turns":
            raise Problem(400, LITE, code="unsupported_value", param="reasoning.context")

    def _lite(self, request: Request) -> bool:
        asked = request.headers.get(LITE_HEADER, "").lower() == "true"
        return self.row.stateless and asked

    def _parallel(self, exchange: Exchange, create: Create) -> bool:
        return create.parallel and not self._lite(exchange.request)

    def _enter(self, exchange: Exchange, items: Sequence[Item]) -> None:
        asked = (item for item in items if item.value.get("role") == "user")
        first = next(asked, None)
        turns = echoes(self.row, items, self.ledger.serials)
        self.enter(exchange, "" if first is None else text_of(first), turns)

    def _withheld(
        self, exchange: Exchange, create: Create, items: Sequence[Item]
    ) -> dict[str, Any]:
        """What the model does not get: thoughts that were made for another end user.

        openai-python 3.51, types/responses/response.py: `input_transformations`.
        """
        user, told = create.body.get("safety_identifier"), []
        for item in items:
            seal = str(item.value.get("encrypted_content") or item.value.get("id"))
            if item.kind == "reasoning" and self.users.get(seal, user) != user:
                told.append(
                    {
                        "id": item.value.get("id"),
                        "action": "removed",
                        "type": "reasoning",
                        "reason": "end_user_mismatch",
                    }
                )
                hidden = thought_of(self.row, item)
                exchange.read = tuple(one for one in exchange.read if one != hidden)
        return {"input_transformations": told} if told else {}

    def _claims(self, blob: str) -> list[str] | None:
        claims = self.unseal(blob, self.row.style or "openai")
        return None if claims is None else list(decode(claims.encode()))

    def _account(self, exchange: Exchange) -> str:
        return self._digest(exchange.account)

    def _digest(self, account: str) -> str:
        return self.mac("account", account).hex()[:24]


PROVIDERS: dict[str, Factory] = {
    name: partial(ResponsesSimulator, name, row) for name, row in ROWS.items()
}
