"""Treatments that change what stands around the thoughts: parameters, ids, the form of items."""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from thoughtline.exchanges import Rewrite
from thoughtline.gateway import rewrites
from thoughtline.gateway.cases import Case, Change
from thoughtline.gateway.learned import Lesson
from thoughtline.gateway.members import Top
from thoughtline.gateway.preparing import expanded

_PARAMETER = re.compile(r"unsupported parameter:\s*['\"`]?([a-z_]+)", re.IGNORECASE)


def nothing(_case: Case) -> Iterator[Change]:
    """Nothing that a request could do about it."""
    yield from ()


def set_all_turns(case: Case) -> Iterator[Change]:
    """Say that the thoughts of all turns are to be read."""
    top = Top(case.exchange.request.body)
    raw = top.nested("reasoning", {"context": b'"all_turns"'})
    yield setting(case, "reasoning", raw, Lesson(all_turns=True))


def set_store_false(case: Case) -> Iterator[Change]:
    """Let the server store nothing; then it cannot be asked to remember anything either."""
    change = setting(case, "store", b"false", Lesson(unstored=True))
    if case.behind:
        exchange = case.exchange
        request = expanded(exchange.request, exchange.dialect, case.behind)
        change = replace(change, request=request, certain=tuple(t.id for t in case.behind))
    yield change


def drop_field(case: Case) -> Iterator[Change]:
    """Leave out the parameter that is not known there."""
    if found := _PARAMETER.search(case.words):
        yield setting(case, found[1], None, Lesson(drops=(found[1],)))


def drop_include(case: Case) -> Iterator[Change]:
    """Do not ask for sealed thoughts, if it was us who did; the client's own wish is its own."""
    terms = case.exchange.terms
    if "include" in terms.fields:
        fields = {name: raw for name, raw in terms.fields.items() if name != "include"}
        yield Change(terms=replace(terms, fields=fields), lesson=Lesson(unsealed=True))


def nine_characters(case: Case) -> Iterator[Change]:
    """Give tool calls ids of nine characters, the same ones for the same calls."""
    if case.exchange.dialect.name == "chat":
        yield rewriting(case, rewrites.nine_characters, Lesson(nine=True))


def summarise(case: Case) -> Iterator[Change]:
    """Give every reasoning item a summary, if only an empty one."""
    if case.exchange.dialect.name == "responses":
        yield rewriting(case, rewrites.summarised, Lesson(summaries=True))


def keep_ids(case: Case) -> Iterator[Change]:
    """Send sealed items with their ids, where we had learned to leave them out."""
    terms = case.exchange.terms
    if rewrites.nameless in terms.rewrites:
        kept = tuple(r for r in terms.rewrites if r is not rewrites.nameless)
        lesson = Lesson(nameless=False, anywhere=True)
        yield Change(terms=replace(terms, rewrites=kept), lesson=lesson)


def setting(case: Case, name: str, raw: bytes | None, lesson: Lesson | None) -> Change:
    """The same request with one top-level member set, or removed."""
    terms = case.exchange.terms
    return Change(terms=replace(terms, fields={**terms.fields, name: raw}), lesson=lesson)


def rewriting(case: Case, rewrite: Rewrite, lesson: Lesson | None = None) -> Change:
    """The same request with one more last change."""
    terms = case.exchange.terms
    return Change(terms=replace(terms, rewrites=(*terms.rewrites, rewrite)), lesson=lesson)
