"""The loop of `thoughtline chat`: reads messages, shows answers, asks about tool calls."""

import asyncio
import signal
import sys
from typing import Any

import click

from thoughtline.agents.chat import Chat
from thoughtline.agents.export import line
from thoughtline.agents.tools import Ask, Verdict
from thoughtline.cli.rendering import brief, clean
from thoughtline.log.durations import closed_span, thought_spans
from thoughtline.log.events import (
    Event,
    Outcome,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    ToolCall,
    ToolResult,
    TurnEnded,
    TurnStarted,
)
from thoughtline.log.parts import Result, Text, Thought
from thoughtline.log.turns import Turn

_COMMANDS = """/undo     take the last message back (it stays in the log, as another branch)
/fork     go on in a new session
/thoughts show thoughts, or hide them
/session  say which session this is
/quit     end (so does Ctrl-D)"""


class Repl:
    """Reads messages from the terminal and shows what the model answers."""

    def __init__(self, *, thoughts: bool, as_json: bool, yes: bool) -> None:
        self.thoughts = thoughts
        self.as_json = as_json
        self.yes = yes
        self.failed = False  # a message was not answered
        self.terminal = sys.stdin.isatty()
        self._line = ""  # what the unfinished line holds: "thought", "text" or nothing
        self._announced = False  # "Thinking…" was shown
        self._timed = 0  # thoughts of this turn whose duration was shown
        self._thoughts: list[Thought] = []  # all thoughts of this turn
        self._answering = False  # text of the answer was shown
        self._interrupted = False  # Ctrl-C at a question

    def read(self) -> str | None:
        """The next message; None when there is none."""
        while True:
            if self.terminal:
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

    async def send(self, chat: Chat, words: str) -> Chat:
        """Send a message, and show what comes back."""
        self._interrupted = False
        run = chat.run(words)
        async for event in run:
            if self.as_json:
                if isinstance(event, Event):
                    click.echo(line(event))
            elif isinstance(event, Event):
                self._event(event)
            elif isinstance(event, TextDelta):
                self._answering = True
                self._show("text", clean(event.text))
            elif isinstance(event, ReasoningStart):
                self._think("")
            elif isinstance(event, ReasoningDelta):
                self._think(event.text)
            elif isinstance(event, ReasoningEnd):
                self._thought(event)
        answer = await run
        completed = answer.outcome is Outcome.COMPLETED
        self.failed = self.failed or not completed
        self._break()
        if not completed:
            reason = f"({answer.outcome.value}: {brief(answer.reason)})"
            click.echo(click.style(reason, fg="red"), err=True)
        elif not self.as_json:
            click.echo()
        return chat

    def cancelled(self) -> None:
        """Say that the answer was cancelled."""
        self._break()
        click.echo(click.style("(cancelled)", dim=True), err=True)

    def _break(self) -> None:
        """End an unfinished line."""
        if self._line:
            click.echo()
        self._line = ""

    def _show(self, kind: str, text: str, **style: Any) -> None:
        """Show more characters; thoughts and text have lines of their own."""
        if not text:
            return
        if kind != self._line:
            self._break()
        click.echo(click.style(text, **style) if style else text, nl=False)
        self._line = kind

    def _note(self, text: str, **style: Any) -> None:
        """Show a line about what happens."""
        self._break()
        click.echo(click.style(text, **style))

    def _think(self, text: str) -> None:
        if not self._announced:
            self._announced = True
            self._note("Thinking…", dim=True)
        if self.thoughts:
            self._show("thought", clean(text), dim=True, italic=True)

    def _thought(self, ended: ReasoningEnd) -> None:
        """Show how long a thought took, before what it led to."""
        span = closed_span(ended.timing, key="", first=not (self._timed or self._answering))
        self._timed += 1
        self._announced = False
        self._note(span.text, dim=True)

    def _event(self, event: Event) -> None:
        match event.readable_body():
            case TurnStarted():
                self._timed, self._thoughts = 0, []
                self._announced = self._answering = False
            case Reasoning(thought=thought):
                self._thoughts.append(thought)
            case ToolCall(call=call):
                self._note(f"→ {brief(call.name)}({brief(call.arguments)})", fg="cyan")
            case ToolResult(result=result):
                mark = "✗" if result.error else "←"
                self._note(f"{mark} {brief(result.content, 120)}", fg="cyan")
            case TurnEnded():
                for span in thought_spans(Turn(output=tuple(self._thoughts)))[self._timed :]:
                    self._note(span.text, dim=True)

    def permit(self, ask: Ask) -> tuple[Verdict, str]:
        """Ask on the terminal, if there is one, whether a tool may be called."""
        if self.yes:
            return Verdict.ALLOW, "--yes"
        if not self.terminal:
            return Verdict.DENY, "there is no terminal to ask on; start the chat with --yes"
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
        """Run a command of the prompt, such as `/undo`."""
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
                click.echo(f"{other} is not a command; these are:\n{_COMMANDS}")
        return chat


def _interruptible(question: str) -> str:
    """Read an answer from the terminal; Ctrl-C cancels the run at once.

    While a run is under way, Ctrl-C only asks its task to stop, which a task that waits for a line
    cannot do.
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
    """Rewind the chat to before the last message of the user."""
    for turn in reversed(chat.turns):
        spoken = [part for part in turn.input if isinstance(part, Text)]
        if spoken and not any(isinstance(part, Result) for part in turn.input):
            chat.rewind(turn.parent)
            return f"taken back: {brief(spoken[0].text, 60)}"
    return "there is nothing to take back"
