"""Treatments of the Responses API's sealed items, and of what is paired with them.

An item goes back with what it led to or not at all; whatever was made after an item that does not
go is sent without its id, so that nobody looks for the pair.
"""

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from thoughtline.dialects.responses_items import Side, kind, side
from thoughtline.gateway import rewrites
from thoughtline.gateway.cases import Case, Change, Sent, positions
from thoughtline.gateway.learned import Lesson
from thoughtline.gateway.members import Top
from thoughtline.gateway.preparing import expanded
from thoughtline.gateway.treatments.parameters import rewriting, setting
from thoughtline.parts import Blob, Call, Carrier, Text, Thought
from thoughtline.policies import Need
from thoughtline.turns import Turn

_ENDS = re.compile(r"encrypted content (\S+?)(?:\.{3}|…)(\S*) could", re.IGNORECASE)
_ITEMS = (Carrier.ITEM, Carrier.REFERENCE)


def drop_item(case: Case) -> Iterator[Change]:
    """Without the item it names: nothing follows it any more."""
    ids = set(case.ids)
    if change := case.drop(lambda _, out: out.id in ids):
        yield change


def pair_or_anonymise(case: Case) -> Iterator[Change]:
    """With the thought it misses, if the log has it; else without the ids that ask for it."""
    yield from _from_the_log(case)
    bare = [sent.chain for sent in case.sent() if not sent.thoughts and _names(sent.turn)]
    if bare:
        yield case.refuse(bare)
    yield rewriting(case, rewrites.nameless)


def send_sealed(case: Case) -> Iterator[Change]:
    """With its seal, if the log has it; else a sealed one without its id; else not at all."""
    yield from _from_the_log(case)
    ids = set(case.ids)
    out = [thought for sent in case.sent() for thought in sent.thoughts if thought.id in ids]
    if any(thought.sealed for thought in out):
        yield rewriting(case, rewrites.nameless, Lesson(nameless=True, anywhere=True))
    elif out:
        change = case.drop(lambda _, thought: thought.carrier in _ITEMS and not thought.sealed)
        if change:
            yield change


def _from_the_log(case: Case) -> Iterator[Change]:
    """The turns that the client names by an item's id, though their words are not found."""
    ids = set(case.ids)
    keys = case.exchange.path.keys
    found = dict(case.exchange.found)
    for sent in case.sent():
        memory = next((case.known[id] for id in _names(sent.turn) & ids if id in case.known), None)
        own = keys[sent.index]
        if memory is not None and own is not None:
            found[own.chain] = [memory]
    if len(found) != len(case.exchange.found) or found != case.exchange.found:
        yield Change(found=found)


def _names(turn: Turn) -> set[str]:
    """The items that a client names in an output."""
    return {
        part.item if isinstance(part, Call) else part.id
        for part in turn.output
        if isinstance(part, Call | Text | Thought)
    } - {""}


def deduplicate(case: Case) -> Iterator[Change]:
    """Each item once: in the input, or in what the server remembers."""
    yield rewriting(case, rewrites.unrepeated)
    exchange = case.exchange
    request = exchange.request
    if not request.previous and not Top(request.body).value("conversation"):
        return
    # It was us who put back what the server remembers.
    target = exchange.target
    hands_off = replace(target.policy, need=Need.IGNORED, beyond=Need.IGNORED)
    yield Change(target=replace(target, policy=hands_off))
    if request.previous and _whole(request.turns):
        yield setting(case, "previous_response_id", None, None)
    there = {id for turn in case.behind for id in _names(turn)} | set(case.ids)
    yield rewriting(case, lambda body: _unremembered(body, there, whole=not case.behind))


def _whole(turns: tuple[Turn, ...]) -> bool:
    """Whether a request tells the conversation from its beginning."""
    first = turns[0] if turns else Turn()
    asked = any(isinstance(part, Text | Blob) for part in first.input)
    return asked and bool(first.output) and len(turns) > 1


def _unremembered(body: bytes, there: set[str], *, whole: bool) -> bytes:
    """Without items the server has; when it is not known which, without all that the model said."""

    def gone(_index: int, item: Any) -> bool:
        id = item.get("id") if isinstance(item, dict) else None
        return bool(id) and (id in there or (whole and side(item) is Side.OUTPUT))

    return rewrites.without(body, gone)


def drop_sealed(case: Case) -> Iterator[Change]:
    """Without the seals that cannot be opened: the one it names, or all of them.

    With the one it names goes what the client brought from we do not know where: that may be next.
    """
    if "compaction blob" in case.text:  # grok2api#688: said as well when a summary is missing
        yield rewriting(case, rewrites.summarised)
    if case.exchange.dialect.name == "responses" and _compacted(case):
        yield rewriting(case, rewrites.uncompacted)
    ids = set(case.ids)

    def culprit(sent: Sent, out: Thought) -> bool:
        if not ids:
            return out.sealed
        return out.id in ids or (out.sealed and not positions(sent.memory, out))

    if change := case.drop(culprit):
        yield change
    if case.exchange.dialect.name == "responses":
        yield rewriting(case, rewrites.uncompacted)


def _compacted(case: Case) -> bool:
    """Whether it is a compacted history, and no thought, that cannot be opened."""
    found = _ENDS.search(case.words)
    for _, item in rewrites.listed(case.exchange.body, "input"):
        if kind(item) == "compaction":
            seal = str(item.get("encrypted_content") or "")
            ends = found and seal.startswith(found[1]) and seal.endswith(found[2])
            if item.get("id") in case.ids or ends:
                return True
    return False


def replay_in_full(case: Case) -> Iterator[Change]:
    """With everything that the server was asked to remember, from the log."""
    if case.behind:
        exchange = case.exchange
        request = expanded(exchange.request, exchange.dialect, case.behind)
        yield Change(request=request, certain=tuple(turn.id for turn in case.behind))
