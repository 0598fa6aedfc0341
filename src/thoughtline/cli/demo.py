"""`thoughtline demo`: a client that drops thoughts, with and without Thoughtline.

The same tool-using conversation is held twice with each simulated provider: first directly, until
the provider refuses it or shows what it lost, then with every thought put back from the log. At the
end there are conversations to look at (`cli.tour`), in the store of the gateway.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from thoughtline.cli.store_options import json_option, store_options

if TYPE_CHECKING:
    from thoughtline.cli.conversation import SimulatedConversation

SHOWN = {
    "deepseek": "deepseek-v4-pro",
    "claude-bound": "claude-sonnet-5-5",
    "openai": "gpt-5.6",
    "gemini": "gemini-3-pro-preview",
}
"""Simulated providers in the demo, one per dialect, and the model to ask for."""


@click.command("demo")
@click.option("--provider", "names", multiple=True, metavar="NAME", help="Only this; repeatable.")
@click.option("--exchanges", default=8, show_default=True, help="How long to talk.")
@json_option
@store_options
def demo(
    *,
    names: tuple[str, ...],
    exchanges: int,
    as_json: bool,
    store_url: str | None,
    config: str | None,
) -> None:
    """Show what gets lost without Thoughtline, and kept with it.

    A client that throws thoughts away (as most do) talks to strict simulated providers: first
    directly, then with Thoughtline between. Nothing leaves this machine and no key is needed.

    Without --provider and --json it leaves four conversations in the gateway's store, and says how
    to look at them. Those of the last time are replaced.

    \b
        thoughtline demo
        thoughtline demo --provider kimi --exchanges 12
        thoughtline demo --json | jq .
    """
    import asyncio

    if exchanges < 1:
        raise click.BadParameter("at least 1", param_hint="--exchanges")
    try:
        played = [asyncio.run(play(name, exchanges)) for name in names or SHOWN]
        if not names:
            played.insert(0, asyncio.run(play_translated(exchanges)))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--provider") from error
    if as_json:
        click.echo(json.dumps(played))
        return
    _show(played)
    if not names:
        _leave_tour(store_url, config)


async def play(name: str, exchanges: int) -> dict[str, Any]:
    """Hold the conversation with one provider, directly and through Thoughtline."""
    from thoughtline.cli.conversation import SimulatedConversation
    from thoughtline.stores.memory import MemoryStore
    from thoughtline.testing import simulator

    model = SHOWN.get(name) or simulator(name).models()[0]
    direct = SimulatedConversation(simulator(name), model=model)
    kept = SimulatedConversation(simulator(name), model=model, store=MemoryStore())
    return {
        "provider": name,
        "model": model,
        "direct": await _outcome(direct, exchanges),
        "kept": await _outcome(kept, exchanges),
    }


async def play_translated(exchanges: int) -> dict[str, Any]:
    """Hold the conversation in Codex's dialect: at DeepSeek's own endpoint, and translated."""
    from thoughtline.cli.conversation import SimulatedConversation
    from thoughtline.cli.translated_conversation import TranslatedConversation
    from thoughtline.stores.memory import MemoryStore
    from thoughtline.testing import simulator

    name, model, speaks = "deepseek", SHOWN["deepseek"], "responses"
    direct = SimulatedConversation(simulator("deepseek-responses"), model=model)
    store = MemoryStore()
    kept = TranslatedConversation(simulator(name), model=model, speaks=speaks, store=store)
    return {
        "provider": name,
        "model": model,
        "speaks": speaks,
        "direct": await _outcome(direct, exchanges),
        "kept": await _outcome(kept, exchanges),
    }


async def _outcome(conversation: SimulatedConversation, exchanges: int) -> dict[str, Any]:
    from thoughtline.cli.conversation import ProviderRefused
    from thoughtline.log.decisions import Action

    refusal = ""
    try:
        await conversation.run(exchanges)
    except ProviderRefused as error:
        refusal = _message(error.reply.body)
    last = conversation.replies[-1]
    restored = sum(e.decision.replay_plan.count(Action.RESTORED) for e in conversation.exchanges)
    return {
        "exchanges": len(conversation.turns),
        "status": last.status,
        "refusal": refusal,
        "thoughts": _audit(last.headers.get("x-sim-thoughts", "")),
        "restored": restored,
    }


def _audit(header: str) -> dict[str, int]:
    pairs = (item.strip().partition("=") for item in header.split(";") if "=" in item)
    return {key: int(value) for key, _, value in pairs}


def _message(body: bytes) -> str:
    """The message in a provider's error body, whatever its shape."""
    try:
        error = json.loads(body.removeprefix(b"data:"))
        error = error[0] if isinstance(error, list) else error
        error = error.get("error", error)
        return str(error.get("message", error))
    except (ValueError, AttributeError):
        return body.decode("utf-8", "replace")


# -- for people ----------------------------------------------------------------------------------


def _show(played: list[dict[str, Any]]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.print("\n[bold]A client that throws thoughts away[/bold], and strict providers\n")
    for one in played:
        direct, kept = one["direct"], one["kept"]
        spoken = ", asked by Codex (Responses API)" if "speaks" in one else ""
        console.print(f"[bold]{one['model']}[/bold]{spoken}")
        console.print(f"  directly              {_verdict(direct)}")
        console.print(f"  through Thoughtline   {_verdict(kept)}\n")


def _leave_tour(store_url: str | None, config: str | None) -> None:
    """Leave conversations in the store, and say how to look at them; the link comes last."""
    import asyncio
    import os
    from pathlib import Path

    from thoughtline.cli.local_gateway import address
    from thoughtline.cli.tour import tour
    from thoughtline.errors import ThoughtlineError
    from thoughtline.gateway.settings import load, mask

    settings = load({"store_url": store_url, "config": config}, os.environ, Path.cwd())
    if settings.store.record != "sessions":
        click.echo(f"Nothing is left to look at: `store.record` is {settings.store.record!r}.")
        return
    try:
        visited = asyncio.run(tour(settings))
    except ThoughtlineError as error:
        raise click.ClickException(f"there is nothing to look at afterwards: {error}") from error
    click.echo(f"{click.style('Left to look at', bold=True)}, in {mask(settings.store.url)}\n")
    for one in visited:
        click.echo(f"  {one.shows}\n    thoughtline show {one.session}")
    url = address(settings.server.host, settings.server.port)
    click.echo("\nOpen them in the inspector (`thoughtline serve` runs it):")
    click.echo(f"{url}/inspect#/sessions/{visited[0].session}")


def _verdict(outcome: dict[str, Any]) -> str:
    from rich.markup import escape

    audit = outcome["thoughts"]
    if outcome["refusal"]:
        words = escape(" ".join(outcome["refusal"].split()))
        words = words if len(words) < 100 else words[:97] + "…"
        return f"[red]{outcome['status']}[/red] in exchange {outcome['exchanges'] + 1}: {words}"
    lost = audit.get("missing", 0) + audit.get("altered", 0)
    if lost:
        return f"[yellow]200[/yellow], but {lost} thoughts lost without a word"
    return (
        f"[green]200[/green], {outcome['exchanges']} exchanges, "
        f"{audit.get('exact', 0)} thoughts back, byte for byte"
    )
