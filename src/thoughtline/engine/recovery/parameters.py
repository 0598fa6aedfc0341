"""Strategies that change what stands around the thoughts: parameters, ids, the form of items."""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from thoughtline.dialects.splice import TopLevel
from thoughtline.engine.recovery.case import Case, Correction
from thoughtline.log.quirks import Quirk

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
    """Leave out the parameter that is not known there."""
    if found := _PARAMETER.search(case.words):
        yield case.with_field(found[1], None, Quirk(drops=(found[1],)))


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
