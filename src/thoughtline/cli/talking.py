"""The terminal's side of `thoughtline chat`: what is asked, shown and typed."""

import asyncio
import signal
import sys
from typing import Any

import click

from thoughtline.cli.telling import brief, clean
from thoughtline.durations import closed, spans
from thoughtline.events import (
    Event,
    Outcome,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCall,
    ToolResult,
    TurnEnded,
    TurnStarted,
)
from thoughtline.library.chats import Chat
from thoughtline.library.providers import Provider
from thoughtline.library.transfers import line
from thoughtline.parts import Result, Text, Thought
from thoughtline.tools import Ask, Verdict
from thoughtline.turns import Turn

_COMMANDS = """/undo     take the last message back (it stays in the log, as another branch)
/fork     go on in a new session
/thoughts show thoughts, or hide them
/session  say which session this is
/quit     end (so does Ctrl-D)"""


def sim_provider(name: str, model: str | None, options: dict[str, Any]) -> Provider:
    """A simulated provider; raises `ValueError` for one that does not exist."""
    from thoughtline.cli.conversation import FIELDS, POLICIES
    from thoughtline.policies import names
    from thoughtline.testing import simulator

    sim = simulator(name)
    policy = POLICIES.get(name, name)
    if policy not in names():  # a variant of somebody known
        policy = policy.partition("-")[0]
    return Provider(
        name,
        model=model or sim.models()[0],
        base_url=f"sim://{name}",
        dialect=sim.dialect,
        policy=policy,
        options=FIELDS.get(name, {}) | options,
    )


class Talk:
    """One conversation on one terminal."""

    def __init__(self, *, thoughts: bool, as_json: bool, yes: bool) -> None:
        self.thoughts = thoughts
        self.as_json = as_json
        self.yes = yes
        self.failed = False
        self._terminal = sys.stdin.isatty()
        self._line = ""  # what stands on the line that is not ended: thought or text
        self._announced = False  # that it is thinking
        self._timed = 0  # thoughts of this turn whose length was told
        self._unseen: list[Thought] = []  # and those that nobody saw coming
        self._spoken = False
        self._interrupted = False

    def ask(self) -> str | None:
        """The next message; None when there is none."""
        while True:
            if self._terminal:
                try:
                    words = input(click.style("> ", bold=True))
                except (EOFError, KeyboardInterrupt):
                    click.echo(err=True)
                    return None
            elif not (words := sys.stdin.readline()):
                return None
            if words.strip() == "/quit":
                return None
            if words.strip():
                return words.strip()

    async def say(self, chat: Chat, words: str) -> Chat:
        """Say it, and show what comes back."""
        self._interrupted = False
        run = chat.run(words)
        async for event in run:
            if self.as_json:
                if isinstance(event, Event):
                    click.echo(line(event))
            elif isinstance(event, Event):
                self._event(event)
            elif isinstance(event, TextDelta):
                self._spoken = True
                self._show("text", clean(event.text))
            elif isinstance(event, ReasoningDelta):
                self._think(event.text)
            elif isinstance(event, ReasoningEnd):
                self._thought(event)
        answer = await run
        self.failed = answer.outcome is not Outcome.COMPLETED
        self._break()
        if self.failed:
            said = f"({answer.outcome.value}: {brief(answer.reason)})"
            click.echo(click.style(said, fg="red"), err=True)
        elif not self.as_json:
            click.echo()
        return chat

    def stopped(self) -> None:
        """The answer was cancelled, wherever it stood."""
        self._break()
        click.echo(click.style("(cancelled)", dim=True), err=True)

    def _break(self) -> None:
        """End the line, if something stands on it."""
        if self._line:
            click.echo()
        self._line = ""

    def _show(self, kind: str, text: str, **style: Any) -> None:
        """A few more characters, thoughts and words on lines of their own."""
        if not text:
            return
        if kind != self._line:
            self._break()
        click.echo(click.style(text, **style) if style else text, nl=False)
        self._line = kind

    def _tell(self, text: str, **style: Any) -> None:
        """A line of ours."""
        self._break()
        click.echo(click.style(text, **style))

    def _think(self, text: str) -> None:
        if not self._announced:
            self._announced = True
            self._tell("Thinking…", dim=True)
        if self.thoughts:
            self._show("thought", clean(text), dim=True, italic=True)

    def _thought(self, ended: ReasoningEnd) -> None:
        """How long it took, before what it led to."""
        span = closed(ended.timing, key="", first=not (self._timed or self._spoken))
        self._timed += 1
        self._announced = False
        self._tell(span.text, dim=True)

    def _event(self, event: Event) -> None:
        match event.body():
            case TurnStarted():
                self._timed, self._unseen = 0, []
                self._announced = self._spoken = False
            case Reasoning(thought=thought):
                self._unseen.append(thought)
            case ToolCall(call=call):
                self._tell(f"→ {brief(call.name)}({brief(call.arguments)})", fg="cyan")
            case ToolResult(result=result):
                mark = "✗" if result.error else "←"
                self._tell(f"{mark} {brief(result.content, 120)}", fg="cyan")
            case TurnEnded():
                for span in spans(Turn(output=tuple(self._unseen)))[self._timed :]:
                    self._tell(span.text, dim=True)

    def permit(self, ask: Ask) -> tuple[Verdict, str]:
        """May the tool be called? Asked on the terminal, if there is one."""
        if self.yes:
            return Verdict.ALLOW, "--yes"
        if not self._terminal:
            return Verdict.DENY, "nobody to ask; start the chat with --yes"
        question = f"{brief(ask.tool)}({brief(ask.call.arguments)})? [y]es, [n]o, [a]lways: "
        if self._interrupted:  # another call of the same answer
            raise asyncio.CancelledError
        self._break()
        try:
            answer = _interruptible(click.style(question, fg="yellow")).strip().lower()
        except EOFError:
            answer = "n"
        except asyncio.CancelledError:
            self._interrupted = True
            raise
        if answer.startswith("a"):
            return Verdict.ALWAYS, ""
        return (Verdict.ALLOW, "") if answer.startswith("y") else (Verdict.DENY, "by the user")

    async def command(self, chat: Chat, words: str) -> Chat:
        """A word to us and not to the model."""
        match words.split(maxsplit=1)[0]:
            case "/undo":
                click.echo(_undo(chat))
            case "/fork":
                chat = await chat.fork()
                click.echo(f"session {chat.id}")
            case "/thoughts":
                self.thoughts = not self.thoughts
                click.echo(f"thoughts are {'shown' if self.thoughts else 'hidden'}")
            case "/session":
                click.echo(chat.id)
            case "/help":
                click.echo(_COMMANDS)
            case other:
                click.echo(f"{other} is none of these:\n{_COMMANDS}")
        return chat


def _interruptible(question: str) -> str:
    """Ask; Ctrl-C cancels the run at once and is no answer.

    While a run is under way, Ctrl-C only asks its task to stop, which it cannot while we wait for
    a line.
    """
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return input(question)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, usual)
        signal.raise_signal(signal.SIGINT)
        raise asyncio.CancelledError from None
    finally:
        signal.signal(signal.SIGINT, usual)


def _undo(chat: Chat) -> str:
    """Go back to before the last message of a person."""
    for turn in reversed(chat.turns):
        spoken = [part for part in turn.input if isinstance(part, Text)]
        if spoken and not any(isinstance(part, Result) for part in turn.input):
            chat.rewind(turn.parent)
            return f"taken back: {brief(spoken[0].text, 60)}"
    return "there is nothing to take back"
