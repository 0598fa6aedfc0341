"""Puts signatures and thought parts into a `generateContent` body.

A signature stands on the part it came on; a thought that is a part of its own stands before the
part it led to, or last. Other signatures and thoughts of the output go. Parts are never joined or
moved, also where a client sends one output as several contents; a content of which nothing is left
goes altogether, since the API takes no empty one.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.base import PlacedThought, Request, Revision
from thoughtline.dialects.gemini.parts import (
    SEPARATE,
    SIGNATURES,
    PartRun,
    merged_part,
    runs,
    signature,
    text,
)
from thoughtline.dialects.list_patch import Existing, ListPatch, same_text, slots
from thoughtline.dialects.splice import Edit, Span
from thoughtline.log.parts import Carrier


def edits(
    request: Request, revisions: Sequence[Revision], fields: Mapping[str, bytes | None]
) -> list[Edit]:
    """Return the edits that revise these outputs; see `Dialect.edits`."""
    body = request.body
    layout = splice.layout(body, "contents")
    edits = splice.set_members(body, layout.members, fields)
    if revisions:
        contents = layout.elements
        emptied: list[Span] = []
        for revision in revisions:
            spans = [contents[index] for index in request.anchors[revision.turn]]
            output = _Output(body, spans)
            edits += output.revise(revision.thoughts)
            emptied += output.emptied
        if emptied:
            edits += splice.cut(emptied, contents)
    return edits


class _Output:
    """One output of a body: its contents, their parts, and the thoughts that it has."""

    def __init__(self, body: bytes, contents: Sequence[Span]) -> None:
        self.body = body
        self.contents = contents
        self.emptied: list[Span] = []
        self.lists: list[tuple[Span, Span, list[Span]]] = []  # content, its list, its parts
        self.others: list[Span] = []  # parts that are thoughts no thoughts
        self.values: list[Any] = []  # decoded
        self.kinds: list[str] = []  # of runs: at their first part, else empty
        self.is_text: list[bool] = []  # whether a part is text, also inside of a run
        self.thoughts: list[Existing] = []  # parts that are thoughts
        self._survey()

    def _survey(self) -> None:
        spans: list[Span] = []
        values: list[list[Any]] = []
        for content in self.contents:
            place = splice.members(self.body, content).get("parts")
            if place is None or self.body[place.value : place.value + 1] != b"[":
                continue
            parts = splice.elements(self.body, place)
            self.lists.append((content, place, parts))
            spans += parts
            values.append(splice.loads(self.body[place.value : place.end]))
        found = {run.places[0]: run for run in runs(values)}
        of = {place: run for run in found.values() for place in run.places}
        flat = [value for parts in values for value in parts]
        for index, (span, value) in enumerate(zip(spans, flat, strict=True)):
            run = of.get(index)
            if run is None or run.kind not in SEPARATE:
                self._other(span, value, run, first=index in found)
            elif index in found:
                self._thought(run, [spans[place] for place in run.places])

    def _other(self, span: Span, value: Any, run: PartRun | None, *, first: bool) -> None:
        self.others.append(span)
        self.values.append(value)
        self.kinds.append(run.kind if run is not None and first else "")
        self.is_text.append(run is not None and run.kind == "text")

    def _thought(self, run: PartRun, spans: list[Span]) -> None:
        first = self.body[spans[0].value : spans[0].end]
        raw = merged_part(first, [text(part) for part in run.parts], run.parts[-1])
        self.thoughts.append(Existing(len(self.others), tuple(spans), raw))

    def revise(self, thoughts: Sequence[PlacedThought]) -> list[Edit]:
        """Return edits that leave exactly these thoughts."""
        parts = [p for p in thoughts if p.carrier is Carrier.PART]
        at = slots(self.kinds, parts, self.thoughts)
        separate = [(slot, p.raw.encode()) for slot, p in zip(at, parts, strict=True)]
        signatures: dict[int, bytes] = {}
        for placed in thoughts:
            if placed.carrier is Carrier.SIGNATURE:
                part = self._signed_part(placed, signatures)
                if part is not None:
                    signatures[part] = placed.raw.encode()
        patch = ListPatch()
        patch.put_thoughts(self.others, self.thoughts, separate)
        edits = self._lists(patch)
        for index in range(len(self.others)):
            edits += self._sign(index, signatures.get(index))
        return edits

    def _signed_part(self, placed: PlacedThought, taken: Container[int]) -> int | None:
        """Return the part that a signature stands on; None where the client left none.

        A call has its own. Clients join texts: one that already has the signature keeps it, and a
        signature whose own text is gone stands on the last text.
        """
        (kind, nth), raw = placed.place, placed.raw.encode()
        known = [i for i, found in enumerate(self.kinds) if found == kind]
        own = known[nth] if nth < len(known) else None
        if kind == "call":
            return own
        value = splice.loads(raw)
        signed = [i for i, part in enumerate(self.values) if signature(part) == value]
        if own is None or own not in signed:
            there = [i for i in signed if self.kinds[i] != "call" and i not in taken]
            own = there[0] if there else own
        if own is None and kind == "text":
            own = max((i for i, text in enumerate(self.is_text) if text), default=None)
        return own

    def _lists(self, patch: ListPatch) -> list[Edit]:
        gone = {span.start for span in patch.removed}
        edits: list[Edit] = []
        for index, (content, place, spans) in enumerate(self.lists):
            last = index == len(self.lists) - 1
            stays = any(span.start not in gone for span in spans) or (last and patch.appended)
            if spans and not stays:
                self.emptied.append(content)
            else:
                edits += patch.edits(spans, place, last=last)
        if patch.appended and not self.lists:
            content = self.contents[-1]
            has = splice.members(self.body, content)
            if "parts" not in has:
                raw = b"[" + b",".join(patch.appended) + b"]"
                edits.append(splice.put(content, "parts", raw, has))
        return edits

    def _sign(self, index: int, raw: bytes | None) -> list[Edit]:
        """Return edits that set or remove a part's signature, under the client's key for it."""
        value, span = self.values[index], self.others[index]
        if not isinstance(value, dict) or (raw is None and not signature(value)):
            return []
        has = splice.members(self.body, span)
        keys = [key for key in SIGNATURES if key in has]
        snake = "function_call" in has or keys == ["thought_signature"]
        key = SIGNATURES[snake]
        changes = dict.fromkeys((k for k in keys if raw is None or k != key), None)
        old = has.get(key)
        if raw is not None and not (old and same_text(self.body[old.value : old.end], raw)):
            return splice.revise(span, has, {**changes, key: raw})
        return splice.revise(span, has, changes)
