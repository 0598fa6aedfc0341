"""`thoughtline sim`: serves the strict simulated providers of `thoughtline.testing.sims`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from thoughtline.cli.store_options import json_option

if TYPE_CHECKING:
    from thoughtline.testing.sims.base import Simulator

PORT = 7338


@click.command("sim")
@click.option("--port", default=PORT, show_default=True, help="Port on 127.0.0.1; 0 for any.")
@click.option("--provider", "names", multiple=True, metavar="NAME", help="Only this; repeatable.")
@click.option("--list", "listing", is_flag=True, help="List the providers and exit.")
@click.option("--delay", default=0.0, metavar="S", help="Seconds between two stream events.")
@click.option("--split", type=int, metavar="N", help="Bytes per write; 0 sends all at once.")
@json_option
def sim(
    *,
    port: int,
    names: tuple[str, ...],
    listing: bool,
    delay: float,
    split: int | None,
    as_json: bool,
) -> None:
    """Serve simulated providers that are as strict as the real ones.

    Each provider checks what the real one checks, with its status and its words, and needs no
    network and no real key: any key will do. Each reply has the header x-sim-thoughts, which says
    what became of the thoughts that the provider had emitted:

    \b
        exact=5; altered=0; missing=1; misplaced=0; foreign=0

    So you see what your client loses, also where the provider says nothing.

    \b
    Try it:
        thoughtline sim --provider deepseek
        export OPENAI_BASE_URL=http://127.0.0.1:7338/deepseek OPENAI_API_KEY=any
        (run your client, then ask what it lost)
        curl http://127.0.0.1:7338/deepseek/_sim

    \b
    Make it fail, with a request header:
        x-sim-fault: 500 | 429 | stall | cut:3 | garbage:3
    """
    from thoughtline.testing.sims.app import SimApp
    from thoughtline.testing.sims.base import Pace
    from thoughtline.testing.sims.serve import HOST, build, listen, serve_forever

    try:
        sims = build(*names)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--provider") from error
    if listing:
        _show(sims, f"http://{HOST}:{port}", as_json=as_json)
        return
    if delay < 0:
        raise click.BadParameter("must not be negative", param_hint="--delay")
    try:
        sock = listen(port)
    except (OSError, OverflowError) as error:
        text = f"cannot listen on {HOST}:{port}: {error}; choose another with --port"
        raise click.ClickException(text) from error
    with sock:
        _show(sims, f"http://{HOST}:{sock.getsockname()[1]}", as_json=as_json)
        if not as_json:
            click.echo("\nServing. Ctrl-C ends it.")
        serve_forever(SimApp(sims, pace=Pace(delay, split)), sock)
    if not as_json:
        click.echo("Stopped.")


def _show(sims: Mapping[str, Simulator], root: str, *, as_json: bool) -> None:
    """Say where each provider is, what it enforces and what to set."""
    rows = [_row(name, sim, root) for name, sim in sims.items()]
    if as_json:
        click.echo(json.dumps({"root": root, "providers": rows}))
        return
    for row in rows:
        click.echo(f"\n{click.style(row['name'], bold=True)}  ({row['dialect']})")
        if row["rule"]:
            click.echo(f"  {row['rule']}")
        click.echo(f"  {row['setting']}={row['base_url']}")
        click.echo(f"  models: {', '.join(row['models'])}")


def _row(name: str, sim: Simulator, root: str) -> dict[str, Any]:
    from thoughtline.dialects import DIALECTS
    from thoughtline.testing.sims.serve import base_url

    return {
        "name": name,
        "dialect": sim.dialect,
        "base_url": base_url(f"{root}/{name}", sim),
        "setting": DIALECTS[sim.dialect].base_url_variable,
        "models": list(sim.models()),
        "rule": sim.summary,
    }
