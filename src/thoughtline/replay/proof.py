"""What an echoed output tells of the logged turn that it is, and what each of that counts. Pure.

`RULES` has a row for each kind of evidence. What is visible says which turns an output may be; this
says which of them it is, and which it cannot be. What points to another known turn vetoes a turn,
however well the rest fits (`vetoes`): two conversations may look alike in everything that is
visible. A call id or an item id counts only where it looks random: counted ones repeat in every
conversation. Of an item the id alone is no proof either: some servers give the same id again.
"""

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cached_property

import msgspec
from msgspec import Struct

from thoughtline.dialects.thoughts import opaque_values
from thoughtline.log import keys as k
from thoughtline.log.index import IndexEntry, beside_digest
from thoughtline.log.parts import Blob, Text, Thought
from thoughtline.log.turns import Turn


class Evidence(StrEnum):
    """What an echoed output has beside what is visible of it, or its request has."""

    HANDLE = "handle"  # that a translated answer gave its client for a thought
    SEAL = "seal"  # an encrypted or signed value
    SEALED_ITEM = "sealed item"  # the id of an item whose seal the log has and the client left out
    CALL_ID = "call id"  # one that looks random
    ITEM_ID = "item id"  # one that looks random
    SUMMARY = "summary"  # a sealed summary that a client carries along
    THOUGHT = "thought"  # its very text, without a seal
    HINT = "session hint"  # one that no other conversation shares
    COUNTED_ID = "counted call ids"
    SHARED_HINT = "shared hint"
    BESIDE = "text beside calls, blobs beside text"


class Rule(Struct, frozen=True):
    """What a kind of evidence counts; every kind breaks ties."""

    evidence: Evidence
    finds: bool = False  # the turn, also where nothing of what is visible fits
    names: bool = False  # the turn, where only its output or its neighbours fit
    vetoes: bool = False  # every turn but those that it points to, if it points to one


RULES = (
    Rule(Evidence.HANDLE, names=True, vetoes=True),
    Rule(Evidence.SEAL, finds=True, names=True, vetoes=True),
    Rule(Evidence.SEALED_ITEM, finds=True, names=True, vetoes=True),
    Rule(Evidence.SUMMARY, names=True),
    Rule(Evidence.THOUGHT, vetoes=True),
    Rule(Evidence.ITEM_ID, vetoes=True),
    Rule(Evidence.CALL_ID, names=True, vetoes=True),
    Rule(Evidence.COUNTED_ID),
    Rule(Evidence.HINT, names=True, vetoes=True),
    Rule(Evidence.SHARED_HINT),
    Rule(Evidence.BESIDE),
)
"""In the order in which they break ties."""

TIE_BREAKERS = tuple([rule.evidence for rule in RULES])
FINDS = tuple([rule.evidence for rule in RULES if rule.finds])
NAMES = tuple([rule.evidence for rule in RULES if rule.names])
VETOES = tuple([rule.evidence for rule in RULES if rule.vetoes])


# -- ids -----------------------------------------------------------------------------------------

_RANDOM_FORMS = (
    re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{12,}"),  # most
    re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    re.compile(r"\d{17,}"),  # GLM
    re.compile(r"^(?=.*\d[A-Za-z])(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9]{9}$"),  # Mistral
    re.compile(r"^(?=.*\d[a-f])(?=.*[a-f]\d)[0-9a-f]{9}$"),  # Cerebras
)


def random_form(id: str, name: str = "") -> int:
    """Return which kind of random id this looks like; 0: none.

    A name with a counter (`functions.ls:0`) does not look random, whatever the name is.
    """
    bare = id.replace(name, "-") if name else id
    for form, pattern in enumerate(_RANDOM_FORMS, 1):
        if pattern.search(bare):
            return form
    return 0


def looks_random(id: str, name: str = "") -> bool:
    """Whether the id of a call or an item looks random: no other conversation has it."""
    return random_form(id, name) > 0


# -- what an output tells ------------------------------------------------------------------------

MIN_SEAL = 64
"""Characters of a seal that is told from others: what is shorter may be a placeholder."""


class Echo:
    """What an echoed output tells of the turn that it is, beside what is visible of it."""

    def __init__(
        self,
        turn: Turn,
        *,
        hints: Sequence[str] = (),
        unique_hints: Sequence[str] = (),
        handle: str = "",
    ) -> None:
        self.turn = turn
        self.handle = handle
        self.hints = frozenset(hints)
        self.unique_hints = frozenset(unique_hints)

    def points_to(self, evidence: Evidence, entry: IndexEntry) -> bool:
        """Whether this evidence points to a turn; it may point to others, too."""
        return _POINTS_TO[evidence](self, entry)

    def finds(self, entry: IndexEntry) -> bool:
        """Whether the output is this turn, whatever is visible of it."""
        return any(_POINTS_TO[evidence](self, entry) for evidence in FINDS)

    def names(self, entry: IndexEntry) -> bool:
        """Whether the client itself names the turn, or its conversation."""
        return any(_POINTS_TO[evidence](self, entry) for evidence in NAMES)

    @cached_property
    def seals(self) -> frozenset[bytes]:
        """The keys of the seals of its thoughts."""
        return frozenset([k.seal_key(seal) for t in self.turn.thoughts for seal in t.seals])

    @cached_property
    def summaries(self) -> frozenset[bytes]:
        """The keys of the sealed summaries in it."""
        blobs = [part for part in self.turn.output if type(part) is Blob and part.sealed]
        return frozenset([k.seal_key(blob.digest) for blob in blobs])

    @cached_property
    def plain_texts(self) -> list[str]:
        """What its thoughts say that no seal of a good length comes with."""
        return _texts([t for t in self.turn.thoughts if not _is_sealed(t)])

    @cached_property
    def item_keys(self) -> frozenset[bytes]:
        """The keys of its texts and calls by their item ids, as far as those look random."""
        ids = [part.id for part in self.turn.output if isinstance(part, Text)]
        ids += [call.item for call in self.turn.calls]
        return frozenset([k.reference_key("item", id) for id in ids if looks_random(id)])

    @cached_property
    def call_ids(self) -> dict[str, int]:
        """The ids of its calls that look random, each with its form."""
        forms = {call.id: random_form(call.id, call.name) for call in self.turn.calls}
        return {id: form for id, form in forms.items() if form}

    @cached_property
    def sorted_ids(self) -> list[str]:
        """All ids of its calls; clients may reorder parallel ones."""
        return sorted([call.id for call in self.turn.calls])

    @cached_property
    def beside(self) -> str:
        """The digest of its text beside calls, or of its blobs beside text."""
        return beside_digest(self.turn)

    # -- what speaks for a turn --------------------------------------------------------------------

    def names_sealed_item(self, entry: IndexEntry) -> bool:
        """Whether it has the id of a sealed item of a turn, and the client left the seal out."""
        return any(
            bool(logged.seals) and not echoed.seals and _may_be(echoed, logged)
            for echoed in self._identified
            for logged in entry.thoughts
            if logged.id == echoed.id
        )

    def has_item_id(self, entry: IndexEntry) -> bool:
        """Whether it has the id of an item of a turn, and not another thought under that id."""
        return not self.item_keys.isdisjoint(entry.keys) or any(
            _may_be(echoed, logged)
            for echoed in self._identified
            for logged in entry.thoughts
            if logged.id == echoed.id
        )

    def may_be(self, entry: IndexEntry) -> bool:
        """Whether nothing of what it tells, under the ids of a turn's thoughts, is another's."""
        return all(
            _may_be(echoed, logged)
            for echoed in self.turn.thoughts
            for logged in entry.thoughts
            if echoed.id and logged.id == echoed.id
        )

    def has_call_id(self, entry: IndexEntry) -> bool:
        """Whether it has an id of a turn's calls that looks random."""
        return not self.call_ids.keys().isdisjoint(entry.calls)

    def has_thought(self, entry: IndexEntry) -> bool:
        """Whether it tells a thought of a turn, in the turn's own words."""
        return bool(self.plain_texts) and not set(self.plain_texts).isdisjoint(
            _texts(entry.thoughts)
        )

    @cached_property
    def _identified(self) -> list[Thought]:
        return [thought for thought in self.turn.thoughts if looks_random(thought.id)]

    # -- what speaks against it --------------------------------------------------------------------

    def has_other_call_ids(self, entry: IndexEntry) -> bool:
        """Whether its call ids look random, and those of a turn are others of the same form.

        Ids of another form were rewritten on the way, and say nothing.
        """
        if not self.call_ids or self.has_call_id(entry):
            return False
        forms = set(self.call_ids.values())
        return any(random_form(id) in forms for id in entry.calls)

    def has_other_thought(self, entry: IndexEntry) -> bool:
        """Whether the client brings thoughts of its own, and none of them is a turn's.

        A copy that was cut or spelled differently is still the turn's, and what is short may be a
        placeholder.
        """
        seals, texts = _seals(self.turn.thoughts), self.plain_texts
        kept = [t for t in entry.thoughts if not (t.forgotten or t.unreadable)]
        return _are_others(seals, [seal for t in kept for seal in _seals((t,)) or ("",)]) or (
            _are_others(texts, [text for t in kept for text in _texts((t,)) or _silence(t)])
        )


def thought_keys(thought: Thought) -> list[bytes]:
    """Return the keys of what an echoed thought has and only one turn had: seals, a random id."""
    found = [k.seal_key(seal) for seal in thought.seals]
    if looks_random(thought.id):
        found.append(k.reference_key("item", thought.id))
    return found


def _may_be(echoed: Thought, logged: Thought) -> bool:
    """Whether a thought that a client echoes under an id may be the one that was logged."""
    if echoed.seals and set(echoed.seals).isdisjoint(logged.seals):
        return False
    return echoed.text.strip() in ("", logged.text.strip())


def _seals(thoughts: Sequence[Thought]) -> list[str]:
    """Return the opaque values of thoughts."""
    return [
        value
        for thought in thoughts
        if thought.seals and not thought.handle
        for value in opaque_values(thought.carrier, msgspec.json.decode(thought.raw))
    ]


def _is_sealed(thought: Thought) -> bool:
    """Whether a thought has a seal that tells it from others."""
    return any(len(seal) >= MIN_SEAL for seal in _seals((thought,)))


def _texts(thoughts: Sequence[Thought]) -> list[str]:
    """Return what thoughts say, however spaced; those that say nothing are left out."""
    return [text for thought in thoughts if (text := " ".join(thought.text.split()))]


def _silence(thought: Thought) -> Sequence[str]:
    """Return an empty text for a thought that says nothing; what a sealed one says is not known."""
    return () if thought.seals else ("",)


def _are_others(own: Sequence[str], logged: Sequence[str]) -> bool:
    """Whether some of the client's own values are no placeholders, and none of those is logged."""
    long = [value for value in own if len(value) >= MIN_SEAL]
    return bool(long and logged) and not any(_is_copy(value, logged) for value in long)


def _is_copy(own: str, logged: Sequence[str]) -> bool:
    """Whether a value is a piece of a logged one, or the half of it is, or is of several.

    The first half is, where the rest was spelled differently; any is, where more was put to it.
    """
    half = len(own) // 2
    if any(own in value or value.startswith(own[:half]) for value in logged):
        return True
    return sum([len(value) for value in logged if value in own]) >= half


_POINTS_TO: dict[Evidence, Callable[[Echo, IndexEntry], bool]] = {
    Evidence.HANDLE: lambda echo, entry: entry.turn == echo.handle,
    Evidence.SEAL: lambda echo, entry: not echo.seals.isdisjoint(entry.keys),
    Evidence.SEALED_ITEM: Echo.names_sealed_item,
    Evidence.SUMMARY: lambda echo, entry: not echo.summaries.isdisjoint(entry.keys),
    Evidence.THOUGHT: Echo.has_thought,
    Evidence.ITEM_ID: Echo.has_item_id,
    Evidence.CALL_ID: Echo.has_call_id,
    Evidence.COUNTED_ID: (
        lambda echo, entry: any(echo.sorted_ids) and sorted(entry.calls) == echo.sorted_ids
    ),
    Evidence.HINT: lambda echo, entry: not echo.unique_hints.isdisjoint(entry.hints),
    Evidence.SHARED_HINT: lambda echo, entry: not echo.hints.isdisjoint(entry.hints),
    Evidence.BESIDE: lambda echo, entry: bool(echo.beside) and entry.text_digest == echo.beside,
}
