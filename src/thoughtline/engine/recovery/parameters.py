"""Strategies that change what stands around the thoughts: parameters, ids, the form of items."""

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from thoughtline.dialects import splice
from thoughtline.dialects.splice import TopLevel
from thoughtline.engine.legal_values import refused_value
from thoughtline.engine.normalise import CONTROLS
from thoughtline.engine.recovery.case import Case, Correction
from thoughtline.log.quirks import Quirk
from thoughtline.providers.errors import REFUSED_MEMBERS, SAMPLING

_PARAMETER = re.compile(r"unsupported parameter:\s*['\"`]?([a-z_]+)", re.IGNORECASE)


def nothing(_case: Case) -> Iterator[Correction]:
    """Nothing that a request could do about it."""
    yield from ()


def set_all_turns(case: Case) -> Iterator[Correction]:
    """Say that the thoughts of all turns are to be read."""
    top = TopLevel(case.decision.request.body)
    raw = top.nested("reasoning", {"context": b'"all_turns"'})
    yield case.with_field("reasoning", raw, Quirk(all_turns=True))


def set_store_false(case: Case) -> Iterator[Correction]:
    """Let the server store nothing; then it cannot be asked to remember anything either."""
    correction = case.with_field("store", b"false", Quirk(no_store=True))
    yield replace(correction, in_full=True) if case.continued else correction


def drop_field(case: Case) -> Iterator[Correction]:
    """Leave out the parameter that is not known there, unless it is only a value of it."""
    yield from nearest_value(case)
    found = _PARAMETER.search(case.words)
    named = (member for text, member in REFUSED_MEMBERS if text in case.text)
    if member := found[1] if found else next(named, ""):
        yield case.with_field(member, None, Quirk(drops=(member,)))


def drop_sampling(case: Case) -> Iterator[Correction]:
    """Leave out all that shapes the sampling: refusals name one at a time.

    A version of the API refuses them whatever the model, and the client says the version: then it
    is not of the endpoint.
    """
    has = TopLevel(case.decision.body).has
    made = {name: None for name in SAMPLING if name in has}
    overrides = replace(case.overrides, fields={**case.overrides.fields, **made})
    quirk = Quirk(drops=SAMPLING) if "deprecated for this model" in case.text else None
    yield Correction(overrides=overrides, quirk=quirk)


def drop_web_search(case: Case) -> Iterator[Correction]:
    """Leave out the server's own search: the client's tools stay."""
    tools = TopLevel(case.decision.body).value("tools")
    kept = [tool for tool in tools or [] if not _searches(tool)]
    yield case.with_field("tools", splice.dumps(kept) if kept else None)


def _searches(tool: Any) -> bool:
    return isinstance(tool, dict) and str(tool.get("type", "")).startswith("web_search")


def move_effort(case: Case) -> Iterator[Correction]:
    """Say the effort in the member that the endpoint knows."""
    here, there = "reasoning_effort", "reasoning.effort"
    if "'reasoning'" in case.text:
        here, there = there, here
    yield case.with_quirk(Quirk(moves=((here, there),)))


def nearest_value(case: Case) -> Iterator[Correction]:
    """Say the nearest of the values that the refusal lists, from now on."""
    decision = case.decision
    found = refused_value(decision.body, decision.dialect.history_member, case.words)
    if found is not None:
        yield case.with_quirk(Quirk(legal=(found,)))


def name_beta(case: Case) -> Iterator[Correction]:
    """Name the beta that the request makes use of; where that is done, make no use of it."""
    overrides = case.overrides
    if "anthropic-beta" not in overrides.headers:
        headers = {**overrides.headers, "anthropic-beta": CONTROLS}
        yield Correction(overrides=replace(overrides, headers=headers))
    raw = TopLevel(case.decision.body).nested("thinking", {"block_binding": None})
    yield case.with_field("thinking", raw)


def drop_include(case: Case) -> Iterator[Correction]:
    """Do not ask for encrypted reasoning, unless the client itself asks for it."""
    overrides, quirk = case.overrides, Quirk(no_encrypted_reasoning=True)
    if "include" in overrides.fields:
        fields = {name: raw for name, raw in overrides.fields.items() if name != "include"}
        yield Correction(overrides=replace(overrides, fields=fields), quirk=quirk)
    elif "include" in case.decision.source.written:
        yield case.with_field("include", None, quirk)


def short_call_ids(case: Case) -> Iterator[Correction]:
    """Give tool calls ids of nine characters, the same ones for the same calls."""
    yield case.with_rewrite(case.rewrites.short_call_ids, Quirk(short_call_ids=True))


def summarise(case: Case) -> Iterator[Correction]:
    """Give every reasoning item a summary, if only an empty one."""
    yield case.with_rewrite(case.rewrites.add_summaries, Quirk(add_summaries=True))


def keep_ids(case: Case) -> Iterator[Correction]:
    """Send sealed items with their ids, where a quirk had taken them off."""
    overrides = case.overrides
    if case.rewrites.strip_item_ids in overrides.rewrites:
        kept = tuple(r for r in overrides.rewrites if r is not case.rewrites.strip_item_ids)
        quirk = Quirk(strip_item_ids=False, anywhere=True)
        yield Correction(overrides=replace(overrides, rewrites=kept), quirk=quirk)
