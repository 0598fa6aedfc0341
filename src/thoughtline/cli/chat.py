"""`thoughtline chat`: a conversation on the terminal, kept in the log."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from thoughtline.cli.env import effort_option
from thoughtline.cli.store_options import open_session_log, overrides_file, store_options
from thoughtline.errors import ThoughtlineError

if TYPE_CHECKING:
    import asyncio

    from thoughtline.agents.chat import Chat
    from thoughtline.agents.log import Log
    from thoughtline.agents.provider import Provider
    from thoughtline.agents.tools import Tool
    from thoughtline.cli.repl import Repl

SIMULATED = "sim:deepseek"
MAX_BYTES = 64 << 10  # of a file
MAX_ENTRIES = 200  # of a folder


@click.command("chat")
@click.option("--provider", "name", metavar="NAME", help="Provider to ask; sim:NAME is simulated.")
@click.option("--model", help="Model to ask.")
@effort_option
@click.option("--base-url", default="", help="Base URL, if it is not known by name.")
@click.option("--dialect", default="", help="chat, responses, messages or gemini.")
@click.option("--policy", default="", help="A row of the policy table.")
@click.option("--key-env", default="", metavar="NAME", help="Variable that holds the key.")
@click.option("--option", "options", multiple=True, metavar="KEY=JSON", help="Sent along.")
@click.option("--system", help="The system prompt.  [default: as the session had it]")
@click.option("--tools/--no-tools", default=False, help="Let it look at files in this folder.")
@click.option("--yes", is_flag=True, help="Allow every tool call without asking.")
@click.option("--session", help="Continue this session; `last` is the last one used.")
@click.option("--thoughts", is_flag=True, help="Show thoughts as they come.")
@click.option("--json", "as_json", is_flag=True, help="Write events as lines of JSON.")
@store_options
def chat(
    *,
    name: str | None,
    model: str | None,
    effort: str,
    base_url: str,
    dialect: str,
    policy: str,
    key_env: str,
    options: tuple[str, ...],
    system: str | None,
    tools: bool,
    yes: bool,
    session: str | None,
    thoughts: bool,
    as_json: bool,
    store_url: str | None,
    config: str | None,
) -> None:
    """Talk with a model; everything is kept in the log.

    Without --provider a model is looked for where a key is in the environment; without --model,
    too, it is a simulated one that needs no key and no network. Ctrl-C cancels the answer that is
    coming. At the prompt: /undo takes the last message back, /fork goes on in a new session, /help
    lists the rest. Without a terminal, each line of the input is a message.

    Ends with 0, or without a terminal with 1 when a message was not answered: refused, failed, cut
    short by the limit of exchanges. Also with 1 when nobody can be asked (no key, no such session),
    with 2 when the command line is wrong, and with 130 after Ctrl-C.

    \b
        thoughtline chat --provider sim:deepseek --tools
        thoughtline chat --model sim/claude
        thoughtline chat --model deepseek/deepseek-v4-pro
        thoughtline chat --model anthropic/claude-sonnet-5-5 --effort high
        thoughtline chat --session last
        echo "What is in this folder?" | thoughtline chat --tools --yes --json
    """
    import asyncio

    from msgspec.structs import replace

    from thoughtline.agents.provider import resolve
    from thoughtline.cli.repl import Repl

    repl = Repl(thoughts=thoughts, as_json=as_json, yes=yes)
    given = {"base_url": base_url, "dialect": dialect, "policy": policy, "key": key_in(key_env)}
    provider = _provider(name, model, given | {"options": _options(options)})
    provider = replace(provider, overrides=overrides_file(config))
    if session and not (name or model or base_url):
        provider = asyncio.run(
            _last_provider(open_session_log(store_url, config, creates=False), session, provider)
        )
    resolve(provider, os.environ)  # a missing key is said before the first question
    provider = _with_effort(provider, effort) if effort else provider
    with _log(provider, store_url, config) as (runner, log):
        setup: dict[str, Any] = {
            "provider": provider,
            "system": system,
            "tools": reading_tools(Path.cwd()) if tools else (),
            "permit": repl.permit,
        }
        chat = runner.run(_begin(log, session, setup))
        if not as_json:
            heading = f"{provider.model} ({provider.name}), session {chat.id}"
            click.echo(click.style(heading, dim=True), err=True)
        _converse(runner, chat, repl)


@contextlib.contextmanager
def _log(
    provider: Provider, store_url: str | None, config: str | None
) -> Iterator[tuple[asyncio.Runner, Log]]:
    """An event loop and a log with the wire to this provider; all are closed in the end."""
    import asyncio

    from thoughtline.agents import simulated

    wire = simulated.wire_to(provider, simulated.assistants())
    with asyncio.Runner() as runner:
        log = open_session_log(store_url, config, creates=True, wire=wire)
        try:
            yield runner, log
        finally:
            runner.run(log.close())
            runner.run(wire.close())


async def _last_provider(log: Log, session: str, otherwise: Provider) -> Provider:
    """The provider that a session used last, for a command line that names none."""
    from msgspec.structs import replace

    from thoughtline.agents import simulated
    from thoughtline.agents.provider import Provider
    from thoughtline.cli.session_names import find_session
    from thoughtline.providers.known_providers import PROVIDERS, SCHEME

    async with log:
        chat = await log.resume(await find_session(log, session))
    last = next((turn.target for turn in reversed(chat.turns) if turn.target), None)
    if last is None:
        return otherwise
    model = last.asked or last.model
    if last.endpoint.startswith(SCHEME):
        name = simulated.plain_name(last.endpoint.removeprefix(SCHEME))
        provider = simulated.provider(name, model, options=otherwise.options)
        return replace(provider, overrides=otherwise.overrides)
    for known in PROVIDERS:
        if known.is_at(last.endpoint) or last.endpoint in known.endpoints.values():
            return Provider(
                known.name,
                model=model,
                dialect=last.dialect,
                options=otherwise.options,
                overrides=otherwise.overrides,
            )
    raise click.UsageError(
        f"this session talked with {model} at {last.endpoint}; name the provider to ask now with "
        "--provider (or --base-url) and --model"
    )


async def _begin(log: Log, session: str | None, setup: dict[str, Any]) -> Chat:
    from thoughtline.cli.session_names import find_session

    if session is None:
        return await log.create(**setup | {"system": setup["system"] or ""})
    return await log.resume(await find_session(log, session), **setup)


def _converse(runner: asyncio.Runner, chat: Chat, repl: Repl) -> None:
    """Take message by message, until there are no more."""
    while (message := repl.read()) is not None:
        work: Coroutine[Any, Any, Chat]
        work = repl.command(chat, message) if message.startswith("/") else repl.send(chat, message)
        try:
            chat = runner.run(work)
        except KeyboardInterrupt:
            repl.cancelled()
            if not repl.terminal:
                raise SystemExit(130) from None
        except ThoughtlineError as error:
            repl.failed = True
            click.echo(click.style(str(error), fg="red"), err=True)
    if repl.failed and not repl.terminal:  # a person has seen it
        raise SystemExit(1)


def _provider(name: str | None, model: str | None, given: dict[str, Any]) -> Provider:
    from thoughtline.agents import simulated
    from thoughtline.agents.provider import Provider

    if name is None and not given["base_url"]:
        name = (None if "/" in model else _name_with_key()) if model else SIMULATED
    if name in (None, "sim") and model and model.startswith("sim/"):  # as the gateway has it
        known, _, model = model.removeprefix("sim/").partition("/")
        name = f"sim:{known}"
    if name and name.startswith(("sim:", "sim/")):
        try:
            return simulated.provider(name[4:], model or "", options=given["options"])
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--provider") from error
    if name is None and model and "/" in model and not given["base_url"]:
        return Provider.from_string(model, **given)
    if not model:
        raise click.UsageError("name the model with --model, or try --provider sim:deepseek")
    return Provider(name or "mine", model=model, **given)


def _with_effort(provider: Provider, effort: str) -> Provider:
    """A provider that is told how hard to think, by the members that its API has for it."""
    from msgspec.structs import replace

    from thoughtline.agents.provider import resolve
    from thoughtline.dialects.params import EFFORTS, RequestParams
    from thoughtline.errors import did_you_mean

    endpoint = resolve(provider, os.environ)
    takes = endpoint.target.policy.takes
    known = takes.efforts or EFFORTS
    hint = did_you_mean(effort, known, f"expected one of {', '.join(known)}")
    refusal = click.BadParameter(f"{provider.model} has no effort {effort!r}; {hint}")
    if effort not in EFFORTS:
        raise refusal
    asked = RequestParams(effort=effort, thinking=effort != "none")
    made = endpoint.dialect.param_fields(asked, takes)
    if made.left:
        raise refusal
    return replace(provider, options={**made.fields, **provider.options})


def _name_with_key() -> str:
    """The first provider whose key is in the environment."""
    from thoughtline.providers.known_providers import PROVIDERS

    for known in PROVIDERS:
        if known.key_variable(os.environ):
            return known.name
    raise click.UsageError(
        "name a provider with --provider: the environment holds no key of a known one"
    )


def key_in(variable: str) -> str:
    """The key in the variable that `--key-env` names; empty if it names none."""
    key = os.environ.get(variable, "").strip()
    if variable and not key:
        raise click.BadParameter(f"{variable} is not set", param_hint="--key-env")
    return key


def _options(given: tuple[str, ...]) -> dict[str, Any]:
    import msgspec

    options: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        try:
            options[key] = msgspec.json.decode(value)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            if not equals or value[:1] in ("{", "["):
                raise click.BadParameter(
                    f"{text!r} is not KEY=JSON", param_hint="--option"
                ) from None
            options[key] = value  # a plain word
    return options


def reading_tools(root: Path) -> list[Tool]:
    """`read_file` and `list_dir` below this folder.

    They write nothing, do not leave the folder (not by `..`, nor by a link), and cut long answers.
    """
    from thoughtline.agents.tools import tool

    root = root.resolve()

    def inside(path: str) -> Path:
        found = (root / path).resolve()
        if not found.is_relative_to(root):
            raise PermissionError(f"{path!r} is outside the folder that may be read")
        return found

    def read_file(path: str) -> str:
        """Read a text file.

        Args:
            path: where it is, relative to the working folder.
        """
        with inside(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if b"\0" in data:
            return "[a binary file, not shown]"
        text = data[:MAX_BYTES].decode("utf-8", "replace")
        return (
            f"{text}\n[cut: the first {MAX_BYTES:,} bytes are shown]"
            if len(data) > MAX_BYTES
            else text
        )

    def list_dir(path: str = ".") -> str:
        """List a folder.

        Args:
            path: where it is, relative to the working folder.
        """
        names = sorted(
            f"{entry.name}/" if entry.is_dir() else entry.name for entry in inside(path).iterdir()
        )
        more = f"\n[and {len(names) - MAX_ENTRIES:,} more]" if len(names) > MAX_ENTRIES else ""
        return "\n".join(names[:MAX_ENTRIES]) + more or "(empty)"

    return [tool(read_file), tool(list_dir)]
