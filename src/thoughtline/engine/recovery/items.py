"""Strategies for the Responses API's sealed items, and for what is paired with them.

An item goes back with what it led to or not at all; whatever was made after an item that does not
go is sent without its id, so that nobody looks for the pair.
"""

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from thoughtline.dialects import splice
from thoughtline.dialects.responses.items import Side, item_type, side
from thoughtline.dialects.responses.rewrites import drop_items
from thoughtline.dialects.splice import TopLevel
from thoughtline.engine.recovery.case import Case, Correction, SentOutput, positions
from thoughtline.engine.server_state import references
from thoughtline.log.parts import Blob, Call, Carrier, Text, Thought
from thoughtline.log.quirks import Need, Quirk
from thoughtline.log.turns import Turn
from thoughtline.replay.proof import Echo

_ENDS = re.compile(r"encrypted content (\S+?)(?:\.{3}|…)(\S*) could", re.IGNORECASE)
_ITEMS = (Carrier.ITEM, Carrier.REFERENCE)


def drop_item(case: Case) -> Iterator[Correction]:
    """Without the item it names: nothing follows it any more."""
    ids = set(case.ids)
    if correction := case.without(lambda _, out: out.id in ids):
        yield correction


def pair_or_anonymise(case: Case) -> Iterator[Correction]:
    """With the thought it misses, if the log has it; else without the ids that ask for it."""
    yield from _from_the_log(case)
    bare = [sent.key for sent in case.sent() if not sent.thoughts and _names(sent.turn)]
    if bare:
        yield case.without_own(bare)
    yield case.with_rewrite(case.rewrites.strip_item_ids)


def send_sealed(case: Case) -> Iterator[Correction]:
    """With its seal, if the log has it; else a sealed one without its id; else not at all.

    What the client only names is written out, all of it: the next one would be missed as well.
    """
    if references(case.decision.request):
        yield Correction(with_items=True)
    yield from _from_the_log(case)
    ids = set(case.ids)
    out = [thought for sent in case.sent() for thought in sent.thoughts if thought.id in ids]
    if any(thought.sealed for thought in out):
        yield case.with_rewrite(
            case.rewrites.strip_item_ids, Quirk(strip_item_ids=True, anywhere=True)
        )
    elif out:
        correction = case.without(
            lambda _, thought: thought.carrier in _ITEMS and not thought.sealed
        )
        if correction:
            yield correction


def _from_the_log(case: Case) -> Iterator[Correction]:
    """The turns that the client names by an item's id, though their words are not found."""
    ids = set(case.ids)
    keys = case.decision.path.keys
    found = dict(case.decision.found)
    for sent in case.sent():
        entry = next((case.known[id] for id in _names(sent.turn) & ids if id in case.known), None)
        own = keys[sent.index]
        if entry is not None and own is not None and Echo(sent.turn).may_be(entry):
            found[own.full] = [entry]
    if len(found) != len(case.decision.found) or found != case.decision.found:
        yield Correction(found=found)


def _names(turn: Turn) -> set[str]:
    """The items that a client names in an output."""
    return {
        part.item if isinstance(part, Call) else part.id
        for part in turn.output
        if isinstance(part, Call | Text | Thought)
    } - {""}


def deduplicate(case: Case) -> Iterator[Correction]:
    """Each item once: in the input, or in what the server remembers."""
    yield case.with_rewrite(case.rewrites.drop_repeated_items)
    request = case.decision.request
    if not request.previous_response and not TopLevel(request.body).value("conversation"):
        return
    # It was us who put back what the server remembers.
    target = case.decision.target
    hands_off = replace(target.policy, need=Need.IGNORED, beyond=Need.IGNORED)
    yield Correction(target=replace(target, policy=hands_off))
    if request.previous_response and _whole(request.turns):
        yield case.with_field("previous_response_id", None)
    there = {id for turn in case.continued for id in _names(turn)} | set(case.ids)
    yield case.with_rewrite(lambda body: _unremembered(body, there, whole=not case.continued))


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

    return drop_items(body, gone)


def drop_sealed(case: Case) -> Iterator[Correction]:
    """Without the seals that cannot be opened: the one it names, or all of them.

    With the one it names goes what the client brought from we do not know where: that may be next.
    """
    if "compaction blob" in case.text:  # grok2api#688: said as well when a summary is missing
        yield case.with_rewrite(case.rewrites.add_summaries)
    if case.decision.dialect.item_list and _compacted(case):
        yield case.with_rewrite(case.rewrites.drop_compactions)
    ids = set(case.ids)

    def culprit(sent: SentOutput, out: Thought) -> bool:
        if not ids:
            return out.sealed
        return out.id in ids or (out.sealed and not positions(sent.entry, out))

    if correction := case.without(culprit):
        yield correction
    yield case.with_rewrite(case.rewrites.drop_compactions)


def _compacted(case: Case) -> bool:
    """Whether it is a compacted history, and no thought, that cannot be opened."""
    found = _ENDS.search(case.words)
    for _, item in splice.top_level_list(case.decision.body, "input"):
        if item_type(item) == "compaction":
            seal = str(item.get("encrypted_content") or "")
            ends = found and seal.startswith(found[1]) and seal.endswith(found[2])
            if item.get("id") in case.ids or ends:
                return True
    return False


def drop_compaction(case: Case) -> Iterator[Correction]:
    """Without the compacted history that nobody there can read."""
    yield case.with_rewrite(case.rewrites.drop_compactions)


def drop_configuration(case: Case) -> Iterator[Correction]:
    """Without the items that change settings on the way."""
    yield case.with_rewrite(case.rewrites.drop_configuration)


def replay_in_full(case: Case) -> Iterator[Correction]:
    """With everything that the server was asked to remember, from the log."""
    if case.continued:
        yield Correction(in_full=True)
