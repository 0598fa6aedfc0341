"""Treatments of plain thoughts: demanded, under another key, or forbidden."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from thoughtline.dialects.thoughts import STRINGS
from thoughtline.gateway import rewrites
from thoughtline.gateway.cases import Case, Change
from thoughtline.gateway.learned import Lesson
from thoughtline.gateway.treatments.parameters import rewriting
from thoughtline.parts import Carrier
from thoughtline.policies import Need, Scope
from thoughtline.policies.table import DISABLED

EMPTY, SPACE = '""', '" "'
BLOCKS = tuple(f'{{"type":"thinking","thinking":{text},"signature":""}}' for text in (EMPTY, SPACE))

OFF = {
    "chat": DISABLED,
    "messages": DISABLED,
    "responses": ("reasoning", '{"effort":"none"}'),
}
"""How to switch thinking off for those who speak of a thinking mode, by dialect."""


def restore_all(case: Case) -> Iterator[Change]:
    """Every output has its thought; else the shortest value; else the other; else thinking off."""
    yield from _demanded(case, Scope.ALL, (SPACE, EMPTY))


def restore_calls(case: Case) -> Iterator[Change]:
    """The same for outputs with tool calls."""
    yield from _demanded(case, Scope.CALLS, (EMPTY, SPACE))


def _demanded(case: Case, scope: Scope, strings: tuple[str, str]) -> Iterator[Change]:
    policy, dialect = case.policy, case.exchange.dialect.name
    if policy.need is Need.REQUIRED and policy.scope is Scope.ALL:
        scope = Scope.ALL
    values: tuple[str, ...] = ()
    more: dict[str, Any] = {}
    match dialect:
        case "chat":
            # The key it names, and beside it what else the row knows that is not plain text.
            others = tuple(c for c in policy.reads if c not in STRINGS)
            reads = (Carrier.REASONING_CONTENT, *others)
            values, more = strings, {"reads": reads, "copies": bool(others)}
        case "messages":
            values, more = BLOCKS, {"reads": (Carrier.BLOCK,)}
        case "responses":
            more = {"reads": (Carrier.ITEM,), "every_call": True}
        case _:
            return
    lesson = Lesson(need=Need.REQUIRED, scope=scope, with_tools=False, thinks=True, **more)
    for value in dict.fromkeys((policy.lost, *values) if policy.lost else values):
        yield _thinking(case, case.stricter(replace(lesson, lost=value)))
    off = policy.off or (OFF[dialect] if "in the thinking mode" in case.text else None)
    yield _thinking(case, case.stricter(replace(lesson, lost="", off=off)))


def _thinking(case: Case, change: Change) -> Change:
    """Whatever the client said about thinking: the provider says that it is on."""
    path = case.exchange.path
    return replace(change, path=replace(path, thinking=True)) if path.thinking is False else change


def rename(case: Case) -> Iterator[Change]:
    """Send it as `reasoning`; where that is not known either, or no key is, not at all.

    A client's key with `null` in it is no thought: it goes alone, before any thought has to.
    """
    if case.exchange.dialect.name == "chat":
        yield rewriting(case, rewrites.bared, Lesson(bare=True))
    only = (Carrier.REASONING,)
    strict = "extra_forbidden" in case.text  # a schema that knows no such key by any name
    if case.policy.reads != only and not strict:
        yield case.stricter(Lesson(need=Need.RECOMMENDED, reads=only, copies=False, lost=""))
    yield case.stricter(_FORBIDDEN)


def drop_reasoning(case: Case) -> Iterator[Change]:
    """Send none; for good, unless it is only that this client has switched thinking off."""
    change = case.stricter(_FORBIDDEN)
    once = "thinking is disabled" in case.text
    yield replace(change, lesson=None) if once else change


_FORBIDDEN = Lesson(need=Need.FORBIDDEN, reads=(), copies=False, lost="")
