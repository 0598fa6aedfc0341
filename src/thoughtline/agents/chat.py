"""A chat: one session, the turn that it goes on from, and the provider that it asks.

The next run goes on from the chat's `head`. Moving the head back and running again makes a branch:
in the same session (`rewind`, `switch`), or in a new one that refers to this one (`fork`). Nothing
is copied and nothing is deleted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.agents.loop import Loop, Setup, WebSocketLine
from thoughtline.agents.provider import Endpoint, Provider, as_provider, resolve
from thoughtline.agents.record import Emit
from thoughtline.agents.run import Answer, Run
from thoughtline.agents.session_writer import SessionWriter
from thoughtline.agents.tools import Permission, Tool, Toolbox
from thoughtline.agents.tools.execute import ToolLimits, encodable_text
from thoughtline.engine.history import history_for, pending_calls
from thoughtline.engine.request_template import RequestTemplate
from thoughtline.errors import ChatBusy, InvalidArgument, ProviderError, TurnNotFound
from thoughtline.log.events import Outcome
from thoughtline.log.parts import Blob, Call, Origin, Text
from thoughtline.log.turns import Turn
from thoughtline.replay.plan import ReplayLimits
from thoughtline.wires.base import Wire

if TYPE_CHECKING:
    from thoughtline.agents.log import Log


class ChatOptions(Struct, frozen=True, kw_only=True):
    """What a chat needs beside its session. The log holds its system prompt only."""

    provider: Provider | None = None
    system: str = ""
    tools: Toolbox = Toolbox()
    permit: Permission | None = None
    max_exchanges: int = 50  # per run
    limits: ToolLimits = ToolLimits()


class Chat:
    """A session with a provider and tools. Made by `Log.create`, `Log.resume` and `Chat.fork`."""

    def __init__(self, log: Log, writer: SessionWriter, options: ChatOptions) -> None:
        self.log = log
        self.options = options
        self._writer = writer
        self._head = writer.head
        self._run: Run | None = None
        self._websocket: WebSocketLine | None = None  # where the provider is asked over one

    def __repr__(self) -> str:
        return f"Chat({self.id!r}, head={self.head!r})"

    # -- the session and its branches ------------------------------------------------------------

    @property
    def id(self) -> str:
        """The session's id, as `Log.resume` takes it."""
        return self._writer.id

    @property
    def head(self) -> str:
        """The turn that the next run goes on from; empty at the beginning."""
        return self._head

    @property
    def turns(self) -> list[Turn]:
        """The turns from the beginning to the head."""
        return self._writer.path(self._head)

    @property
    def tree(self) -> list[Turn]:
        """The turns of all branches, and those before the fork; a parent before its children."""
        session = self._writer.session
        inherited = self._writer.path(session.origin.turn) if session.origin else []
        return [*inherited, *session.turns]

    @property
    def heads(self) -> list[str]:
        """The last turns of all branches of this session, in the order they started."""
        return self._writer.session.heads

    @property
    def branches(self) -> list[str]:
        """The turns after which the session divides."""
        return self._writer.session.branches

    @property
    def interrupted(self) -> list[Call]:
        """Calls of the last turn without a result: the process died, or the fork begins there.

        They are not executed again: the next request says that they have no result.
        """
        return pending_calls(self.turns)

    def rewind(self, turn: str) -> Chat:
        """Move the head back to an earlier turn: the next run goes on from there."""
        if turn and turn not in {earlier.id for earlier in self.turns}:
            raise TurnNotFound(
                f"turn {turn!r} is not on the way to {self._head!r}; `switch` goes to any turn"
            )
        return self.switch(turn)

    def switch(self, turn: str) -> Chat:
        """Move the head to any turn of this session, such as one of its `heads`."""
        self._check_idle()
        if turn:
            self._writer.path(turn)  # raises for an unknown turn
        self._head = turn
        return self

    async def fork(self, at: str = "") -> Chat:
        """Make a new session that goes on from a turn of this one, by reference."""
        id = at or self._head
        turn = next((turn for turn in self._writer.path(id) if turn.id == id), None)
        if turn is None:
            raise TurnNotFound("there is no turn to fork at; run one first")
        chat = await self.log.fork(turn.session, id, options=self.options)
        if self._websocket is not None and id == self._head:
            chat._websocket = self._websocket.fork()  # noqa: SLF001 (same class)
        return chat

    async def refresh(self) -> Chat:
        """Read what other processes wrote to the session, and move the head to its last turn."""
        if await self._writer.refresh():
            self._head = self._writer.head
        return self

    # -- runs ------------------------------------------------------------------------------------

    def use(
        self,
        provider: Provider | str | None = None,
        *,
        system: str | None = None,
        tools: Iterable[Tool | Callable[..., Any]] | None = None,
        permit: Permission | None = None,
    ) -> Chat:
        """Change the provider or model, the system prompt, the tools or the permissions."""
        changes: dict[str, Any] = {
            "provider": as_provider(provider),
            "system": system,
            "permit": permit,
        }
        changes["tools"] = None if tools is None else Toolbox(tools)
        self.options = replace(
            self.options, **{name: value for name, value in changes.items() if value is not None}
        )
        return self

    def run(self, *message: str | Text | Blob) -> Run:
        """Send a message and run turns until there is an answer.

        Without a message the run goes on from the head: after a failure, a cancel or a crash.
        """
        words = [_user_part(part) for part in message]
        loops: list[Loop] = []

        async def work(emit: Emit) -> Answer:
            self._check_idle()
            self._run = run
            setup = self._setup()
            if not words and not history_for(self.turns, Origin())[-1].input:
                raise InvalidArgument("there is nothing to answer: give run() a message")
            wire = self._wire(setup.endpoint)
            loops.append(Loop(self._writer, wire, setup, head=self._head, emit=emit))
            try:
                await loops[0].run(words)
            finally:
                self._head = loops[0].head
            return self._answer(loops[0])

        def cancelled() -> Answer:
            turns = self._answer(loops[0]).turns if loops else ()
            outcome = Outcome.ABORTED
            return Answer(outcome=outcome, session=self.id, turns=turns, reason="cancelled")

        run = Run(work, cancelled)
        self.log.runs.add(run)
        return run

    def _answer(self, loop: Loop) -> Answer:
        session = self._writer.session
        turns = [session.turn(r.id) for r in loop.records if self._writer.has(r.id)]
        return Answer(
            outcome=(turns[-1].outcome if turns else None) or Outcome.FAILED,
            session=self.id,
            turns=tuple(turns),
            reason=turns[-1].reason if turns else "",
        )

    def _setup(self) -> Setup:
        options = self.options
        if options.provider is None:
            raise ProviderError(
                "this chat has no provider to ask; give it one with `chat.use(Provider(…))`"
            )
        endpoint = self.endpoint(options.provider)
        template = RequestTemplate(
            dialect=endpoint.dialect,
            target=endpoint.target,
            model=options.provider.model,
            system=options.system,
            tools=options.tools.declared,
            options=options.provider.options,
            stateful=options.provider.stateful and endpoint.dialect.server_state,
        )
        return Setup(
            endpoint=endpoint,
            engine=self.log.engine,
            template=template,
            tools=options.tools,
            permit=options.permit,
            limits=options.limits,
            replay_limits=ReplayLimits(
                last=options.provider.keep_last, loop_only=options.provider.loop_only
            ),
            max_exchanges=options.max_exchanges,
        )

    def _wire(self, endpoint: Endpoint) -> Wire | WebSocketLine:
        if not endpoint.provider.websockets or not endpoint.dialect.websockets:
            return self.log.wire
        self._websocket = self._websocket or self.log.socket()
        return self._websocket

    def endpoint(self, provider: Provider) -> Endpoint:
        """Where requests to a provider go, with the account that its credential belongs to."""
        return resolve(provider, os.environ, self.log.account)

    def _check_idle(self) -> None:
        if self._run is not None and not self._run.done:
            raise ChatBusy


def _user_part(part: Any) -> Text | Blob:
    """Read one part of a user's message."""
    if isinstance(part, Text | Blob):
        return part
    if not isinstance(part, str):
        kind = type(part).__name__
        raise InvalidArgument(f"run() takes text (str, Text or Blob), not {kind}: {part!r:.80}")
    return Text(text=encodable_text(part))
