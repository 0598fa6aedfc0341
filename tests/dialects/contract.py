"""What the suite of all dialects (`test_contract`) needs to know of each one: its samples.

A sample brings bodies, revisions and recorded responses, and says how the elements of its history
are looked at. A new dialect adds a sample to `SAMPLES`, and every law of the suite holds for it.
"""

import json
from pathlib import Path

from hypothesis import strategies as st

from support.histories import chat, gemini, messages, responses
from support.revisions import revised_chat, revised_gemini, revised_messages, revised_responses
from thoughtline.dialects import DIALECTS, splice
from thoughtline.dialects.thoughts import same_json
from thoughtline.log.parts import Carrier, Origin, Text, Thought
from thoughtline.log.turns import output_shape, places
from thoughtline.testing import FrozenClock

RECORDINGS = Path(__file__).parent.parent / "recordings"


class Sample:
    """One dialect with what it is tested on."""

    name: str
    thought: tuple[Carrier, str]  # one that the dialect can write
    same_object = True  # a patch that changes nothing gives back the very same object

    def __repr__(self):
        return self.name

    @property
    def dialect(self):
        return DIALECTS[self.name]

    @property
    def recordings(self):
        return sorted(path.name for path in RECORDINGS.glob(f"{self.name}-*"))

    def recording(self, name):
        return (RECORDINGS / name).read_bytes()

    def reader(self, name="x.sse"):
        origin = Origin(dialect=self.name, provider="p", model="m")
        stream = name.endswith(".sse")
        return self.dialect.reader(stream=stream, clock=FrozenClock(), origin=origin, sent=10)

    def bodies(self):
        """Requests as clients send them."""
        raise NotImplementedError

    def revised(self):
        """Such a request, and the thoughts that some of its outputs are to have."""
        raise NotImplementedError

    # -- looking at a body -----------------------------------------------------------------------

    def elements(self, body):
        """The elements of the history, as bytes."""
        place = splice.members(body)[self.dialect.history_member]
        return [body[span.value : span.end] for span in splice.elements(body, place)]

    def positions(self, request, turn):
        """The elements that a turn's output is made of."""
        anchor = request.anchors[turn]
        return set(anchor) if isinstance(anchor, tuple) else {anchor} - {-1}

    def pieces(self, element):
        """The items, blocks or parts of an element, as bytes."""
        return [element]

    def other_output(self, turn, revision):
        """What an output holds beside thoughts, once it is revised."""
        return [part for part in turn.output if not isinstance(part, Thought)]

    def thoughts(self, turn):
        """The thoughts of an output as (place, carrier, value)."""
        found = zip(places(output_shape(turn.output)), turn.thoughts, strict=True)
        return [(place, t.carrier, splice.loads(t.raw.encode())) for place, t in found]

    def wanted(self, revision):
        """The thoughts of a revision in the same form."""
        return [(p.place, p.carrier, splice.loads(p.raw.encode())) for p in revision.thoughts]

    def holds(self, elements, placed, before):
        """Whether revised elements hold a thought to the byte."""
        return placed.raw.encode() in [piece for e in elements for piece in self.pieces(e)]


class ChatSample(Sample):
    name = "chat"
    thought = (Carrier.REASONING_CONTENT, '"I think."')
    same_object = False  # a thought inside the text is spelled anew, in the same words

    def bodies(self):
        return chat.histories().map(chat.body)

    def revised(self):
        return revised_chat()

    def thoughts(self, turn):
        """Members have no order of their own; what rides on a call stands there."""
        found = super().thoughts(turn)
        assert all(p.kind == "call" for p, c, _ in found if c is Carrier.EXTRA_CONTENT)
        return sorted((carrier, json.dumps(value)) for _, carrier, value in found)

    def wanted(self, revision):
        return sorted((p.carrier, json.dumps(json.loads(p.raw))) for p in revision.thoughts)

    def other_output(self, turn, revision):
        """A text behind an inline thought has no space before it."""
        parts = super().other_output(turn, revision)
        inline = any(p.carrier is Carrier.THINK for p in revision.thoughts) if revision else False
        first = next((n for n, part in enumerate(parts) if isinstance(part, Text)), None)
        if not inline or first is None:
            return parts
        text = parts[first].text.lstrip()
        return [*parts[:first], *([Text(text=text)] if text else []), *parts[first + 1 :]]

    def holds(self, elements, placed, before):
        """One inside the text is spelled anew; an equal one keeps the client's spelling."""
        if placed.carrier is Carrier.THINK or any(placed.raw.encode() in e for e in elements):
            return True
        same = (t for t in before.thoughts if t.carrier is placed.carrier)
        return any(same_json(t.raw, placed.raw) for t in same)


class ResponsesSample(Sample):
    name = "responses"
    thought = (Carrier.ITEM, '{"type":"reasoning","id":"rs_1","summary":[]}')

    def bodies(self):
        made = st.tuples(responses.conversations(), st.booleans())
        return made.map(lambda case: responses.body(*case[0], spelling=case[1]))

    def revised(self):
        return revised_responses()

    def other_output(self, turn, revision):
        """The items' own ids may go."""
        parts = super().other_output(turn, revision)
        return [_without_item_id(p) for p in parts] if revision and revision.anonymous else parts


def _without_item_id(part):
    if isinstance(part, Text):
        return Text(text=part.text, phase=part.phase)
    fields = {name: getattr(part, name) for name in part.__struct_fields__}
    return type(part)(**fields | ({"item": ""} if "item" in fields else {}))


class MessagesSample(Sample):
    name = "messages"
    thought = (Carrier.BLOCK, '{"type":"thinking","thinking":"I think.","signature":"s"}')

    def bodies(self):
        made = st.tuples(messages.conversations(), st.booleans())
        return made.map(lambda case: messages.body(*case[0], spelling=case[1]))

    def revised(self):
        return revised_messages()

    def pieces(self, element):
        content = splice.members(element)["content"]
        return [element[s.value : s.end] for s in splice.elements(element, content)]


class GeminiSample(Sample):
    name = "gemini"
    thought = (Carrier.SIGNATURE, '"s"')

    def reader(self, name="x.sse"):
        return super().reader("x.sse" if "array" in name else name)

    def bodies(self):
        @st.composite
        def made(draw):
            said, question = draw(gemini.conversations())
            if draw(st.booleans()):  # as Google's own SDK sends a stream back
                said = [(asked, gemini.chunked(output, draw)) for asked, output in said]
            return gemini.body(said, question, spelling=draw(st.booleans()))

        return made()

    def revised(self):
        return revised_gemini()

    def pieces(self, element):
        parts = splice.members(element)["parts"]
        return [element[s.value : s.end] for s in splice.elements(element, parts)]

    def holds(self, elements, placed, before):
        if placed.carrier is Carrier.PART:
            return super().holds(elements, placed, before)
        return any(placed.raw.encode() in p for e in elements for p in self.pieces(e))


SAMPLES = [ChatSample(), ResponsesSample(), MessagesSample(), GeminiSample()]
