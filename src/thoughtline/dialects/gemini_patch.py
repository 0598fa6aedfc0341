"""Putting signatures and thought parts into a `generateContent` body.

A signature stands on the part it came on; a thought that is a part of its own stands before the
part it led to, or last. What else the output had of either goes. Parts are never joined or moved,
also where a client sends one output as several contents; a content of which nothing is left goes
as a whole, since the API takes no empty one.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any

from thoughtline import splice
from thoughtline.dialects import fields as top_level
from thoughtline.dialects.base import Placed, Request, Revision
from thoughtline.dialects.gemini_parts import (
    SEPARATE,
    SIGNATURES,
    Run,
    merged,
    runs,
    signature,
    text,
)
from thoughtline.dialects.slots import Plan, Standing, plan, same, slots
from thoughtline.parts import Carrier
from thoughtline.splice import Edit, Span


def patch(
    request: Request, revisions: Sequence[Revision], fields: Mapping[str, bytes | None]
) -> bytes:
    """The body with these outputs revised; see `Dialect.patch`."""
    if not revisions and not fields:
        return request.body
    body = request.body
    top = splice.members(body)
    edits = top_level.edits(body, top, fields)
    if revisions:
        contents = splice.elements(body, top["contents"])
        emptied: list[Span] = []
        for revision in revisions:
            spans = [contents[index] for index in request.anchors[revision.turn]]
            output = _Output(body, spans)
            edits += output.revise(revision.thoughts)
            emptied += output.emptied
        if emptied:
            edits += splice.cut(emptied, contents)
    return splice.apply(body, edits)


class _Output:
    """One output of a body: its contents, their parts, and the thoughts that are there."""

    def __init__(self, body: bytes, contents: Sequence[Span]) -> None:
        self.body = body
        self.contents = contents
        self.emptied: list[Span] = []
        self.lists: list[tuple[Span, Span, list[Span]]] = []  # content, its list, its parts
        self.others: list[Span] = []  # parts that are no thoughts
        self.values: list[Any] = []  # and what they say
        self.kinds: list[str] = []  # the first of a run bears its kind
        self.spoken: list[bool] = []  # whether it is text, first or not
        self.thoughts: list[Standing] = []  # parts that are
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

    def _other(self, span: Span, value: Any, run: Run | None, *, first: bool) -> None:
        self.others.append(span)
        self.values.append(value)
        self.kinds.append(run.kind if run is not None and first else "")
        self.spoken.append(run is not None and run.kind == "text")

    def _thought(self, run: Run, spans: list[Span]) -> None:
        first = self.body[spans[0].value : spans[0].end]
        raw = merged(first, [text(part) for part in run.parts], run.parts[-1])
        self.thoughts.append(Standing(len(self.others), tuple(spans), raw))

    def revise(self, thoughts: Sequence[Placed]) -> list[Edit]:
        """Edits that leave exactly these thoughts."""
        parts = [p for p in thoughts if p.carrier is Carrier.PART]
        at = slots(self.kinds, parts, self.thoughts)
        separate = [(slot, p.raw.encode()) for slot, p in zip(at, parts, strict=True)]
        riding: dict[int, bytes] = {}
        for placed in thoughts:
            if placed.carrier is Carrier.SIGNATURE:
                rides = self._ride(placed, riding)
                if rides is not None:
                    riding[rides] = placed.raw.encode()
        edits = self._lists(plan(self.others, self.thoughts, separate))
        for index in range(len(self.others)):
            edits += self._sign(index, riding.get(index))
        return edits

    def _ride(self, placed: Placed, taken: Container[int]) -> int | None:
        """The part that a signature stands on; None where the client left none to stand on.

        A call has its own. Clients join texts: one that already bears the signature keeps it, and a
        signature whose own text is gone stands on the last of them.
        """
        (kind, nth), raw = placed.place, placed.raw.encode()
        known = [i for i, found in enumerate(self.kinds) if found == kind]
        own = known[nth] if nth < len(known) else None
        if kind == "call":
            return own
        value = splice.loads(raw)
        bears = [i for i, part in enumerate(self.values) if signature(part) == value]
        if own is None or own not in bears:
            there = [i for i in bears if self.kinds[i] != "call" and i not in taken]
            own = there[0] if there else own
        if own is None and kind == "text":
            own = max((i for i, spoke in enumerate(self.spoken) if spoke), default=None)
        return own

    def _lists(self, made: Plan) -> list[Edit]:
        gone = {span.start for span in made.gone}
        edits: list[Edit] = []
        for index, (content, place, spans) in enumerate(self.lists):
            last = index == len(self.lists) - 1
            kept = any(span.start not in gone for span in spans) or (last and made.last)
            if spans and not kept:
                self.emptied.append(content)
            else:
                edits += made.edits(spans, place, last=last)
        if made.last and not self.lists:
            content = self.contents[-1]
            has = splice.members(self.body, content)
            if "parts" not in has:
                raw = b"[" + b",".join(made.last) + b"]"
                edits.append(splice.put(content, "parts", raw, has))
        return edits

    def _sign(self, index: int, raw: bytes | None) -> list[Edit]:
        """Set or remove the signature of one part, under the key that its client uses."""
        value, span = self.values[index], self.others[index]
        if not isinstance(value, dict) or (raw is None and not signature(value)):
            return []
        has = splice.members(self.body, span)
        keys = [key for key in SIGNATURES if key in has]
        snake = "function_call" in has or keys == ["thought_signature"]
        key = SIGNATURES[snake]
        changes = dict.fromkeys((k for k in keys if raw is None or k != key), None)
        old = has.get(key)
        if raw is not None and not (old and same(self.body[old.value : old.end], raw)):
            return splice.revise(span, has, {**changes, key: raw})
        return splice.revise(span, has, changes)
