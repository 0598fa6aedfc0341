"""What both dialects can say survives: canonical values to a dialect and back."""

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.media import media
from thoughtline.dialects.params import OutputFormat, RequestParams, ToolChoice, ToolSpec
from thoughtline.log.capabilities import Capabilities, EffortStyle
from thoughtline.log.parts import Call, Note, Result, Text
from thoughtline.log.turns import Turn

WORDS = st.text('abc \u2028\\"\U0001f600<>\n', min_size=1, max_size=12).filter(str.strip)
NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=6)
TEXTS = WORDS.map(lambda text: Text(text=text))
IMAGES = st.sampled_from(["AAAA", "iVBORw=="]).map(
    lambda data: media(mime="image/png", data=data, kind="image")
)
SCHEMAS = st.dictionaries(NAMES, st.just({"type": "string"}), max_size=2).map(
    lambda members: {"type": "object", "properties": members}
)
TOOLS = st.lists(
    st.builds(
        lambda name, about, schema: ToolSpec(name=name, description=about, parameters=schema),
        NAMES,
        WORDS,
        SCHEMAS,
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda tool: tool.name,
).map(tuple)
ARGUMENTS = st.sampled_from(["{}", '{"a":1}', '{"b":"\\u00e9","a":[1,2]}'])


@st.composite
def conversations(draw):
    """Turns of a tool loop: questions, texts, calls and all their results."""
    turns, calls, number = [], [], 0
    for _ in range(draw(st.integers(1, 4))):
        results = [Result(call=call.id, name=call.name, content=draw(WORDS)) for call in calls]
        asked = [] if results and draw(st.booleans()) else [draw(TEXTS)]
        if asked and draw(st.booleans()):
            asked.append(draw(IMAGES))
        calls = []
        for _ in range(draw(st.integers(0, 2))):
            number += 1
            call = Call(name=draw(NAMES), arguments=draw(ARGUMENTS), id=f"call_{number}")
            calls.append(call)
        said = [draw(TEXTS)] if not calls or draw(st.booleans()) else []
        turns.append(Turn(input=(*results, *asked), output=(*said, *calls)))
    results = [Result(call=call.id, name=call.name, content=draw(WORDS)) for call in calls]
    return (*turns, Turn(input=tuple(results) or (draw(TEXTS),)))


NUMBERS = st.sampled_from([None, 0.5, 1.0])
ASKED = st.builds(
    RequestParams,
    model=st.just("m"),
    stream=st.just(False),
    system=st.one_of(st.just(""), WORDS),
    tools=TOOLS,
    tool_choice=st.sampled_from(
        [None, ToolChoice(mode="auto"), ToolChoice(mode="none"), ToolChoice(mode="required")]
    ),
    parallel_calls=st.sampled_from([None, False]),
    effort=st.sampled_from(["", "low", "medium", "high"]),
    max_tokens=st.sampled_from([50_000, 64_000]),
    temperature=NUMBERS,
    top_p=NUMBERS,
    top_k=st.sampled_from([None, 40]),
    seed=st.sampled_from([None, 7]),
    frequency_penalty=NUMBERS,
    presence_penalty=NUMBERS,
    stop=st.sampled_from([(), ("END",), ("a", "b")]),
    output_format=st.sampled_from([None, OutputFormat(schema={"type": "object"})]),
    verbosity=st.sampled_from(["", "low"]),
)
TAKES = {
    "chat": Capabilities(developer_role=True, top_k=True),
    "responses": Capabilities(),
    "messages": Capabilities(effort_style=EffortStyle.ADAPTIVE),
    "gemini": Capabilities(),
}


def written_and_read(dialect, turns, params):
    """What a dialect's own reader finds in what its writer wrote, and what that left out."""
    spoken = DIALECTS[dialect]
    asked = spoken.param_fields(params, TAKES[dialect])
    body = spoken.write(
        turns,
        model=params.model,
        system=params.system,
        tools=params.tools,
        stream=False,
        fields=asked.fields,
        cache_breakpoints=True,
    )
    request = spoken.read(body)
    return request, spoken.params(request), asked.left


SAID = (
    *("system", "tools", "tool_choice", "effort", "max_tokens", "temperature", "top_p", "top_k"),
    *("seed", "frequency_penalty", "presence_penalty", "stop", "verbosity"),
)
ALIASES = {"parallel_calls": "parallel_tool_calls"}


def same_tool(tool):
    return replace(tool, strict=None)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(turns=conversations(), params=ASKED)
@settings(max_examples=60, deadline=None)
def test_everything_that_is_not_reported_is_asked(dialect, turns, params):
    _, found, left = written_and_read(dialect, turns, params)
    found = replace(found, tools=tuple(map(same_tool, found.tools)))
    left_names = {name.partition("=")[0] for name in left}
    for name in (*SAID, "parallel_calls"):
        if ALIASES.get(name, name) in left_names:
            continue
        if name == "parallel_calls" and params.tool_choice == ToolChoice(mode="none"):
            continue  # there are no calls at all
        got, asked = getattr(found, name), getattr(params, name)
        if name == "tool_choice" and asked is None:
            assert got in (None, ToolChoice(mode="auto"))  # which says the same
        else:
            assert got == asked, name
    if params.output_format is not None and "response_format" not in left_names:
        assert found.output_format is not None
        assert found.output_format.schema == params.output_format.schema


def plain(turns):
    """What is said: texts joined where a dialect joins them, calls and results by their ids."""
    made = []
    for turn in turns:
        texts = "".join(part.text for part in turn.input if isinstance(part, Text))
        images = [part.data for part in turn.input if getattr(part, "kind", "") == "image"]
        results = [(p.call, p.content) for p in turn.input if isinstance(p, Result)]
        said = "".join(part.text for part in turn.output if isinstance(part, Text))
        calls = [
            (p.id, p.name, json.loads(p.arguments)) for p in turn.output if isinstance(p, Call)
        ]
        made.append((texts, images, results, said, calls))
    return made


@pytest.mark.parametrize("dialect", DIALECTS)
@given(turns=conversations(), params=ASKED)
@settings(max_examples=60, deadline=None)
def test_histories_come_back_as_they_were(dialect, turns, params):
    request, found, _ = written_and_read(dialect, turns, params)
    assert len(found.inputs) == len(request.turns) == len(turns)
    read = [
        replace(turn, input=given) for turn, given in zip(request.turns, found.inputs, strict=True)
    ]
    assert plain(read) == plain(turns)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(turns=conversations(), note=WORDS)
@settings(max_examples=30, deadline=None)
def test_an_instruction_in_the_middle_is_said_there(dialect, turns, note):
    first, *others = turns
    noted = (replace(first, input=(*first.input, Note(text=note))), *others)
    _, found, _ = written_and_read(dialect, noted, RequestParams(model="m"))
    said = [part.text for part in found.inputs[0] if isinstance(part, Note | Text)]
    assert "".join(said).endswith(note)
