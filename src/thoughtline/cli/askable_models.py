"""The models that can be asked for here, by provider, and what is known of each beforehand."""

from __future__ import annotations

import datetime as dt
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import click
from msgspec import Struct, to_builtins

from thoughtline.agents import simulated
from thoughtline.cli.launch_plan import needs_no_key
from thoughtline.dialects import DEFAULT
from thoughtline.gateway.settings import Settings, UpstreamSettings
from thoughtline.providers.catalogue import is_pattern, known_provider, matches_model
from thoughtline.providers.contracts import find_policy
from thoughtline.providers.known_providers import SIMULATED
from thoughtline.providers.prices import OLD, Price, PriceTable

WIDTH = 100


class AskableModel(Struct, frozen=True, kw_only=True):
    """A model by the name that it is asked for, and what is known of it."""

    name: str  # upstream/model
    context: int | None = None  # tokens that a prompt may have
    input: float | None = None  # US dollars for a million tokens
    output: float | None = None
    approximate: bool = False  # the price is that of its family
    efforts: tuple[str, ...] = ()


class AskableProvider(Struct, frozen=True, kw_only=True):
    """A provider, whether it can be asked, and its models that are known."""

    name: str
    ready: bool  # a key was found here, or it asks for none
    key: str = ""  # the variable that holds it, or should
    dialects: tuple[str, ...] = ()
    models: tuple[AskableModel, ...] = ()


def askable(settings: Settings) -> list[AskableProvider]:
    """Every provider of the settings, those that can be asked first."""
    table = settings.price_table()
    found = [_provider(one, table) for one in settings.upstreams.values()]
    return sorted(found, key=lambda one: (one.name == SIMULATED, not one.ready))


def _provider(upstream: UpstreamSettings, table: PriceTable) -> AskableProvider:
    known = known_provider(upstream.name)
    keyless = needs_no_key(upstream)
    key = upstream.env_key or (known.keys[0] if known and known.keys else "")
    names = _names(upstream, table)
    return AskableProvider(
        name=upstream.name,
        ready=keyless or bool(upstream.key),
        key="" if keyless else key,
        dialects=upstream.dialects,
        models=tuple(_model(upstream, model, table) for model in names),
    )


def _names(upstream: UpstreamSettings, table: PriceTable) -> Sequence[str]:
    """The models of an upstream that are known by name."""
    if upstream.name == SIMULATED:
        return [name.removeprefix(simulated.PREFIX) for name in simulated.models()]
    own = [pattern for pattern in upstream.models if not is_pattern(pattern)]
    listed = [
        model
        for model in table.models(upstream.policy)
        if any(matches_model(pattern, model) for pattern in upstream.models)
    ]
    return list(dict.fromkeys([*own, *listed]))


def _model(upstream: UpstreamSettings, model: str, table: PriceTable) -> AskableModel:
    price = table.find(upstream.policy, model) or Price()
    return AskableModel(
        name=f"{upstream.name}/{model}",
        context=table.context(upstream.policy, model),
        input=price.input,
        output=price.output,
        approximate=price.approximate,
        efforts=_efforts(upstream, model),
    )


def _efforts(upstream: UpstreamSettings, model: str) -> tuple[str, ...]:
    """The steps that a model can be told, where its row says them."""
    policy, dialect = upstream.policy, next(iter(upstream.dialects), DEFAULT.name)
    made = simulated.upstream(model) if upstream.name == SIMULATED else None
    if made is not None:
        policy, dialect, model = made.policy, made.dialects[0], made.served
    takes = find_policy(policy, dialect, model).takes
    off = ("none",) if takes.thinking_off and takes.efforts and "none" not in takes.efforts else ()
    return (*off, *takes.efforts)


def models_as_json(settings: Settings, found: Sequence[AskableProvider]) -> dict[str, Any]:
    """What is known, for programs."""
    return {
        "providers": to_builtins(found),
        "names": {pattern: row.to for pattern, row in settings.models.items()},
        "prices_date": settings.price_table().date.isoformat(),
    }


def model_lines(
    settings: Settings, found: Sequence[AskableProvider], *, every: bool
) -> Iterator[str]:
    """What is known, for people; with `every`, also of providers without a key."""
    shown = [one for one in found if one.ready or every]
    width = max((len(model.name) for one in shown for model in one.models), default=0)
    for one in shown:
        key = f"key found in {one.key}" if one.ready else f"no key: set {one.key}"
        about = key if one.key else "needs no key"
        yield f"{click.style(one.name, bold=True)}  {about}; {', '.join(one.dialects)}"
        for model in one.models:
            yield f"  {model_line(model, width)}"
        if not one.models:
            yield f"  {one.name}/MODEL, with any model that it has"
    if settings.models:
        yield click.style("names of your own", bold=True)
        yield from (f"  {pattern} → {row.to}" for pattern, row in settings.models.items())
    if without := [one.name for one in found if one not in shown]:
        said = f"No key for {', '.join(without)}. `thoughtline models NAME` says where one belongs."
        yield from ("", *textwrap.wrap(said, WIDTH, break_on_hyphens=False))
    yield _dated(settings)


def model_line(model: AskableModel, width: int = 0) -> str:
    """A model on a line, its name first."""
    price = ""
    if model.input is not None and model.output is not None:
        about = "≈ " if model.approximate else ""
        price = f"{about}${model.input:g} in, ${model.output:g} out"
    parts = f"{model.name:{width}}  {_tokens(model.context):>6}  {price:<24}"
    return f"{parts}  {' '.join(model.efforts)}".rstrip()


def _tokens(count: int | None) -> str:
    if count is None:
        return ""
    return f"{count / 1_000_000:.3g}M" if count >= 1_000_000 else f"{count / 1000:.0f}k"


def _dated(settings: Settings) -> str:
    table = settings.price_table()
    age = table.age(dt.datetime.now(tz=dt.UTC).date())
    old = f", {age} days ago: they may be others by now" if age > OLD else ""
    return f"\nPrices: US dollars for a million tokens, of {table.date.isoformat()}{old}."
