"""`thoughtline chat`: a conversation on the terminal, kept in the log.

Works without a key and without a network with the simulated providers (`sim:deepseek`). Ctrl-C
cancels the answer that is coming, and ends the conversation at the prompt.
"""

import asyncio
import contextlib
import os
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from thoughtline.cli.files import reading_tools
from thoughtline.cli.opening import find_session, observed, opened, store_options
from thoughtline.cli.talking import Talk, sim_provider
from thoughtline.errors import ThoughtlineError
from thoughtline.library.chats import Chat
from thoughtline.library.logs import Log
from thoughtline.library.providers import Provider
from thoughtline.settings.providers import PROVIDERS
from thoughtline.wires.base import Wire

SIMULATED = "sim:deepseek"
_HELP = """Talk with a model; everything is kept in the log.

Without --provider a model is looked for where a key is in the environment; without --model, too,
it is a simulated one that needs no key and no network. Ctrl-C cancels the answer that is coming. At
the prompt: /undo takes the last message back, /fork goes on in a new session, /help lists the
rest. Without a terminal, each line of the input is a message.

\b
    thoughtline chat --provider sim:deepseek --tools
    thoughtline chat --model sim/claude
    thoughtline chat --provider deepseek --model deepseek-v4-pro
    thoughtline chat --provider anthropic --model claude-sonnet-4-5 \\
        --option thinking='{"type": "enabled", "budget_tokens": 2048}'
    thoughtline chat --session last
    echo "What is in this folder?" | thoughtline chat --tools --yes --json
"""


@click.command("chat", help=_HELP, short_help="Talk with a model, with or without tools.")
@click.option("--provider", "name", metavar="NAME", help="Whom to ask; sim:NAME is simulated.")
@click.option("--model", help="Which model of it.")
@click.option("--base-url", default="", help="Where it is, if it is not known by name.")
@click.option("--dialect", default="", help="chat, responses, messages or gemini.")
@click.option("--policy", default="", help="A row of the policy table.")
@click.option("--key-env", default="", metavar="NAME", help="Variable that holds the key.")
@click.option("--option", "options", multiple=True, metavar="KEY=JSON", help="Sent along.")
@click.option("--system", default="", help="The system prompt.")
@click.option("--tools/--no-tools", default=False, help="Let it look at files in this folder.")
@click.option("--yes", is_flag=True, help="Allow every tool call without asking.")
@click.option("--session", help="Go on with this session; `last` is the last one used.")
@click.option("--thoughts", is_flag=True, help="Show thoughts as they come.")
@click.option("--json", "as_json", is_flag=True, help="Write events as lines of JSON.")
@store_options
def chat(
    *,
    name: str | None,
    model: str | None,
    base_url: str,
    dialect: str,
    policy: str,
    key_env: str,
    options: tuple[str, ...],
    system: str,
    tools: bool,
    yes: bool,
    session: str | None,
    thoughts: bool,
    as_json: bool,
    store_url: str | None,
    config: str | None,
) -> None:
    """Talk."""
    from thoughtline.cli.simulated import SimWire
    from thoughtline.wires.http import HttpWire

    said = {"base_url": base_url, "dialect": dialect, "policy": policy, "key": _key(key_env)}
    talk = Talk(thoughts=thoughts, as_json=as_json, yes=yes)
    try:
        provider = _provider(name, model, said | {"options": _options(options)})
        provider = replace(provider, overrides=observed(config))
        wire = SimWire(HttpWire())
        with asyncio.Runner() as runner, _closing(runner, wire, store_url, config) as log:
            if session and not (name or model or base_url):
                provider = runner.run(_as_before(log, session, provider))
            setting: dict[str, Any] = {
                "provider": provider,
                "system": system,
                "tools": reading_tools(Path.cwd()) if tools else (),
                "permit": talk.permit,
            }
            made = runner.run(_begin(log, session, setting))
            if not as_json:
                click.echo(click.style(_heading(provider, made), dim=True), err=True)
            _converse(runner, made, talk)
    except ThoughtlineError as error:
        raise click.ClickException(str(error)) from error


def _heading(provider: Provider, chat: Chat) -> str:
    return f"{provider.model} ({provider.name}), session {chat.id}"


@contextlib.contextmanager
def _closing(
    runner: asyncio.Runner, wire: Wire, store_url: str | None, config: str | None
) -> Iterator[Log]:
    log = opened(store_url, config, wire=wire)
    try:
        yield log
    finally:
        runner.run(log.close())
        runner.run(wire.close())


async def _as_before(log: Log, session: str, otherwise: Provider) -> Provider:
    """Whom a session talked with last, where nobody says whom to ask now."""
    chat = await log.resume(await find_session(log, session))
    last = next((turn.target for turn in reversed(chat.turns) if turn.target), None)
    if last is None:
        return otherwise
    model = last.asked or last.model
    if last.endpoint.startswith("sim://"):
        made = sim_provider(last.endpoint.removeprefix("sim://"), model, otherwise.options)
        return replace(made, overrides=otherwise.overrides)
    for known in PROVIDERS:
        if last.endpoint in (known.base_url.rstrip("/"), *known.endpoints.values()):
            return Provider(
                known.name,
                model=model,
                dialect=last.dialect,
                options=otherwise.options,
                overrides=otherwise.overrides,
            )
    raise click.UsageError(
        f"this session talked with {model} at {last.endpoint}; say whom to ask now with "
        "--provider (or --base-url) and --model"
    )


async def _begin(log: Log, session: str | None, setting: dict[str, Any]) -> Chat:
    if session is None:
        return await log.create(**setting)
    return await log.resume(await find_session(log, session), **setting)


def _converse(runner: asyncio.Runner, made: Chat, talk: Talk) -> None:
    """Message by message, until there are no more."""
    while (words := talk.ask()) is not None:
        work: Coroutine[Any, Any, Chat]
        work = talk.command(made, words) if words.startswith("/") else talk.say(made, words)
        try:
            made = runner.run(work)
        except KeyboardInterrupt:
            talk.stopped()
        except ThoughtlineError as error:
            click.echo(click.style(str(error), fg="red"), err=True)
    if talk.failed:
        raise SystemExit(1)


def _provider(name: str | None, model: str | None, said: dict[str, Any]) -> Provider:
    if name is None and not said["base_url"]:
        name = (None if model.startswith("sim/") else _found()) if model else SIMULATED
    if name in (None, "sim") and model and model.startswith("sim/"):  # as the gateway has it
        known, _, model = model.removeprefix("sim/").partition("/")
        name = f"sim:{known}"
    if name and name.startswith(("sim:", "sim/")):
        try:
            return sim_provider(name[4:], model or None, said["options"])
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--provider") from error
    if not model:
        raise click.UsageError("say which model with --model, or try --provider sim:deepseek")
    return Provider(name or "mine", model=model, **said)


def _found() -> str:
    """The first provider whose key is in the environment."""
    for known in PROVIDERS:
        if any(os.environ.get(key, "").strip() for key in known.keys):
            return known.name
    raise click.UsageError(
        "say whom to ask with --provider: no key of a known provider is in the environment"
    )


def _key(variable: str) -> str:
    if variable and not os.environ.get(variable, "").strip():
        raise click.BadParameter(f"{variable} is not set", param_hint="--key-env")
    return os.environ.get(variable, "").strip() if variable else ""


def _options(given: tuple[str, ...]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        try:
            made[key] = msgspec.json.decode(value)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            if not equals or value[:1] in ("{", "["):
                raise click.BadParameter(
                    f"{text!r} is not KEY=JSON", param_hint="--option"
                ) from None
            made[key] = value  # a plain word
    return made
