"""A chat: one session, where in its tree we stand, and with whom we talk.

Standing somewhere is all there is to branches: the next run goes on from the turn where the chat
stands (`head`), so going back and going on makes a branch, in the same session (`rewind`,
`switch`) or in a new one that refers to this one (`fork`). Nothing is copied and nothing deleted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.errors import ThoughtlineError
from thoughtline.events import Outcome
from thoughtline.library.histories import lived, waiting
from thoughtline.library.ledgers import Ledger
from thoughtline.library.loop import Line, Loop, Setup
from thoughtline.library.providers import Endpoint, Provider, endpoint
from thoughtline.library.records import Emit
from thoughtline.library.runs import Answer, Run
from thoughtline.library.transcripts import Terms
from thoughtline.parts import Blob, Call, Origin, Text
from thoughtline.tools import Permission, Tool, Toolbox
from thoughtline.tools.running import Limits, sendable
from thoughtline.turns import Turn
from thoughtline.wires.base import Wire

if TYPE_CHECKING:
    from thoughtline.library.logs import Log


class Options(Struct, frozen=True, kw_only=True):
    """How a chat talks; the log does not know it."""

    provider: Provider | None = None
    system: str = ""
    tools: Toolbox = Toolbox()
    permit: Permission | None = None
    most: int = 50  # exchanges in one run
    limits: Limits = Limits()  # of every tool


class Chat:
    """One session, ready to go on. Made by `Log.create`, `Log.resume` and `Chat.fork`."""

    def __init__(self, log: Log, ledger: Ledger, options: Options, head: str = "") -> None:
        self.log = log
        self.options = options
        self._ledger = ledger
        self._head = head or ledger.head
        self._run: Run | None = None
        self._line: Line | None = None  # where the provider is asked over a WebSocket

    def __repr__(self) -> str:
        return f"Chat({self.id!r}, head={self.head!r})"

    # -- where we stand --------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The session's id: what `Log.resume` takes."""
        return self._ledger.id

    @property
    def head(self) -> str:
        """The turn that the next run goes on from; empty at the beginning."""
        return self._head

    @property
    def turns(self) -> list[Turn]:
        """The turns from the beginning to where we stand."""
        return self._ledger.path(self._head)

    @property
    def tree(self) -> list[Turn]:
        """The turns of all branches, and those before the fork; a parent before its children."""
        session = self._ledger.session
        before = self._ledger.path(session.origin.turn) if session.origin else []
        return [*before, *session.turns]

    @property
    def heads(self) -> list[str]:
        """The last turns of all branches of this session, in the order they started."""
        return self._ledger.session.heads

    @property
    def branches(self) -> list[str]:
        """The turns after which the session divides."""
        return self._ledger.session.branches

    @property
    def interrupted(self) -> list[Call]:
        """Calls at the end that have no result: a process died, or the fork begins there.

        They are not run again: the next request says that they have no result.
        """
        return waiting(self.turns)

    def rewind(self, turn: str) -> Chat:
        """Go back to a turn on the way here: the next run goes on from there."""
        if turn and turn not in {made.id for made in self.turns}:
            raise ThoughtlineError(f"turn {turn!r} is not on the way to {self._head!r}")
        return self.switch(turn)

    def switch(self, turn: str) -> Chat:
        """Go to any turn of this session, such as one of its `heads`."""
        self._idle()
        if turn:
            self._ledger.path(turn)  # raises for one that is not there
        self._head = turn
        return self

    async def fork(self, at: str = "") -> Chat:
        """A new session that goes on from a turn of this one, by reference."""
        turn = at or self._head
        made = next((made for made in self._ledger.path(turn) if made.id == turn), None)
        if made is None:
            raise ThoughtlineError("there is no turn to fork at; run one first")
        chat = await self.log.fork(made.session, turn, options=self.options)
        if self._line is not None and turn == self._head:
            chat._line = self._line.fork()  # noqa: SLF001 (another one of us)
        return chat

    async def refresh(self) -> Chat:
        """Read what others wrote to the session, and stand behind it."""
        if await self._ledger.refresh():
            self._head = self._ledger.head
        return self

    # -- going on --------------------------------------------------------------------------------

    def use(
        self,
        provider: Provider | None = None,
        *,
        system: str | None = None,
        tools: Iterable[Tool | Callable[..., Any]] | None = None,
        permit: Permission | None = None,
    ) -> Chat:
        """Go on with another provider or model, system prompt, tools or permissions."""
        said: dict[str, Any] = {"provider": provider, "system": system, "permit": permit}
        said["tools"] = None if tools is None else Toolbox(tools)
        self.options = replace(
            self.options, **{name: value for name, value in said.items() if value is not None}
        )
        return self

    def run(self, *said: str | Text | Blob) -> Run:
        """Say something and go on until there is an answer.

        Without words it goes on from where the log stands: after a failure, a cancel or a crash.
        """
        words = [_said(part) for part in said]
        loops: list[Loop] = []

        async def work(emit: Emit) -> Answer:
            self._idle()
            self._run = run
            setup = self._setup()
            if not words and not lived(self.turns, Origin())[-1].input:
                raise ThoughtlineError("there is nothing to answer: say something")
            wire = self._wire(setup.endpoint)
            loops.append(Loop(self._ledger, wire, setup, head=self._head, emit=emit))
            try:
                await loops[0].run(words)
            finally:
                self._head = loops[0].head
                self.log.learn(setup.terms, loops[0].terms)
            return self._answer(loops[0])

        def cancelled() -> Answer:
            answer = self._answer(loops[0]) if loops else None
            aborted = Answer(outcome=Outcome.ABORTED, session=self.id, reason="cancelled")
            return replace(aborted, turns=answer.turns) if answer else aborted

        run = Run(work, cancelled)
        self.log.runs.add(run)
        return run

    def _answer(self, loop: Loop) -> Answer:
        session = self._ledger.session
        turns = [session.turn(r.id) for r in loop.records if self._ledger.has(r.id)]
        return Answer(
            outcome=(turns[-1].outcome if turns else None) or Outcome.FAILED,
            session=self.id,
            turns=tuple(turns),
            reason=turns[-1].reason if turns else "",
        )

    def _setup(self) -> Setup:
        options = self.options
        if options.provider is None:
            raise ThoughtlineError("nobody to talk to: give the chat a provider with `chat.use`")
        found = self.endpoint(options.provider)
        terms = Terms(
            dialect=found.dialect,
            target=found.target,
            model=options.provider.model,
            system=options.system,
            tools=options.tools.declared,
            options=options.provider.options,
            stateful=options.provider.stateful and found.dialect.name == "responses",
        )
        return Setup(
            endpoint=found,
            terms=self.log.taught(terms),
            tools=options.tools,
            permit=options.permit,
            limits=options.limits,
            most=options.most,
        )

    def _wire(self, found: Endpoint) -> Wire | Line:
        if not found.provider.websockets or found.dialect.name != "responses":
            return self.log.wire
        self._line = self._line or self.log.socket()
        return self._line

    def endpoint(self, provider: Provider) -> Endpoint:
        """Where a provider leads, on our account."""
        found = endpoint(provider, os.environ)
        account = self.log.account(found.credential)
        origin = replace(found.target.origin, account=account)
        return replace(found, target=replace(found.target, origin=origin))

    def _idle(self) -> None:
        if self._run is not None and not self._run.done:
            raise ThoughtlineError(
                "this chat is busy with another run: await it, cancel it, or fork the chat"
            )


def _said(part: Any) -> Text | Blob:
    """One part of a message."""
    if isinstance(part, Text | Blob):
        return part
    if not isinstance(part, str):
        kind = type(part).__name__
        raise ThoughtlineError(f"run() takes text (str, Text or Blob), not {kind}: {part!r:.80}")
    return Text(text=sendable(part))
