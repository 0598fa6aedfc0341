"""Bodies of every dialect, each with revisions of some of its outputs: what `patch` is tested on."""

import json

from hypothesis import strategies as st

from support.histories import chat, gemini, messages, responses
from support.json_spellings import RANDOMS, spell
from thoughtline.dialects.base import PlacedThought, Revision
from thoughtline.dialects.chat import ChatCompletions
from thoughtline.dialects.chat.message import MEMBERS
from thoughtline.log.parts import Carrier
from thoughtline.log.turns import Place, output_shape, places

_STRINGS = st.text(max_size=10)
_RAWS = {
    Carrier.REASONING_CONTENT: _STRINGS,
    Carrier.REASONING: _STRINGS,
    Carrier.REASONING_TEXT: _STRINGS,
    Carrier.REASONING_OPAQUE: _STRINGS,
    Carrier.REASONING_DETAILS: st.lists(
        st.fixed_dictionaries({"text": _STRINGS, "n": st.floats(0, 9)}), max_size=2
    ),
    Carrier.THINK: _STRINGS.filter(lambda t: "</think>" not in t).map(
        lambda t: f"<think>{t}</think>\n\n"
    ),
    Carrier.CHUNK: _STRINGS.map(
        lambda t: {"type": "thinking", "thinking": [{"type": "text", "text": t}]}
    ),
    Carrier.EXTRA_CONTENT: _STRINGS.map(lambda t: {"google": {"thought_signature": t}}),
}


@st.composite
def chat_revisions(draw, request, random):
    """Thoughts for some of the outputs, each where it can stand."""
    made = []
    for index, turn in enumerate(request.turns):
        if request.anchors[index] < 0 or draw(st.booleans()):
            continue
        shape = output_shape(turn.output).replace("t", "")
        content = draw(
            st.sampled_from([(), (Carrier.THINK,), (Carrier.CHUNK,), (Carrier.CHUNK,) * 2])
        )
        carriers = [*draw(st.lists(st.sampled_from(MEMBERS), unique=True, max_size=2)), *content]
        place = places("t" + shape)[0]
        placed = [PlacedThought(place, c, spell(draw(_RAWS[c]), random)) for c in carriers]
        for nth in range(shape.count("c")):
            if draw(st.booleans()):
                raw = spell(draw(_RAWS[Carrier.EXTRA_CONTENT]), random)
                placed.append(PlacedThought(Place("call", nth), Carrier.EXTRA_CONTENT, raw))
        made.append(Revision(turn=index, thoughts=tuple(placed)))
    return made


@st.composite
def revised_chat(draw):
    """A body in any spelling, and for some of its outputs the thoughts they are to have."""
    random = draw(RANDOMS)
    document = {"model": "m", "messages": draw(chat.histories()), "temperature": 1.5}
    body = spell(document, random).encode()
    return body, draw(chat_revisions(ChatCompletions().read(body), random))


_BLOCK_LETTERS = {"text": "x", "tool_use": "c", "server_tool_use": "b"}


@st.composite
def revised_messages(draw):
    """A body, and for some of its outputs the thoughts they are to have, in order."""
    said, question = draw(messages.conversations())
    ids = messages.Ids()
    ids.count = 1 << 20
    revisions = []
    for index, (_, output) in enumerate(said):
        if not draw(st.booleans()):
            continue
        shape, raws = "", []
        for raw in output:
            kind = json.loads(raw)["type"]
            if kind not in _BLOCK_LETTERS:
                if draw(st.booleans()):  # it keeps this one
                    shape, raws = shape + "t", [*raws, raw]
                continue
            new = draw(st.lists(messages.thoughts(ids), max_size=2))
            shape, raws = shape + "t" * len(new) + _BLOCK_LETTERS[kind], raws + new
        wanted = [
            PlacedThought(p, Carrier.BLOCK, r) for p, r in zip(places(shape), raws, strict=True)
        ]
        revisions.append(Revision(turn=index, thoughts=tuple(wanted)))
    spelling = draw(st.booleans())
    return messages.body(said, question, spelling=spelling, stream=True, tools=[]), revisions


def _part_letter(part):
    return "c" if "functionCall" in part else "x" if part.get("text") else "b"


@st.composite
def revised_gemini(draw):
    """A body, and for some of its outputs the thoughts they are to have, in order."""
    said, question = draw(gemini.conversations())
    ids = gemini.Ids()
    ids.count = 1 << 20
    revisions = []
    for index, (_, output) in enumerate(said):
        if not draw(st.booleans()):
            continue
        shape, wanted = "", []
        for raw in output:
            part = json.loads(raw)
            if part.get("thought") or part.get("text") == "":
                if draw(st.booleans()):  # it keeps this one
                    shape, wanted = shape + "t", [*wanted, (Carrier.PART, raw)]
                continue
            new = [(Carrier.PART, r) for r in draw(st.lists(gemini.thoughts(ids), max_size=2))]
            if draw(st.booleans()):  # the old signature, or a new one
                value = draw(st.sampled_from([part.get("thoughtSignature"), ids("sig")]))
                new += [(Carrier.SIGNATURE, json.dumps(value))] if value else []
            shape, wanted = shape + "t" * len(new) + _part_letter(part), wanted + new
        placed = [
            PlacedThought(p, *thought) for p, thought in zip(places(shape), wanted, strict=True)
        ]
        revisions.append(Revision(turn=index, thoughts=tuple(placed)))
    spelling = draw(st.booleans())
    return gemini.body(said, question, spelling=spelling, tools=[], labels={"a": "b"}), revisions


@st.composite
def revised_responses(draw):
    """A body, and for some of its outputs the thoughts they are to have, in order."""
    said, question = draw(responses.conversations())
    ids = responses.Ids()
    ids.count = 1 << 20
    revisions = []
    for index, (_, output) in enumerate(said):
        if not draw(st.booleans()):
            continue
        shape, raws = "", []
        for raw in output:
            what = json.loads(raw)["type"]
            if what == "reasoning":
                if draw(st.booleans()):  # it keeps this one
                    shape, raws = shape + "t", [*raws, raw]
                continue
            new = draw(st.lists(responses.thoughts(ids), max_size=2))
            letter = {"message": "x", "web_search_call": "b"}.get(what, "c")
            shape, raws = shape + "t" * len(new) + letter, raws + new
        wanted = [
            PlacedThought(p, Carrier.ITEM, r) for p, r in zip(places(shape), raws, strict=True)
        ]
        anonymous = draw(st.booleans())
        revisions.append(Revision(turn=index, thoughts=tuple(wanted), anonymous=anonymous))
    spelling = draw(st.booleans())
    return responses.body(said, question, spelling=spelling, stream=True, tools=[]), revisions
