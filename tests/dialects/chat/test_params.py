import json

import pytest

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.chat.params import read_params, write_fields
from thoughtline.dialects.params import OutputFormat, RequestParams, ToolChoice, ToolSpec
from thoughtline.log.capabilities import Capabilities, EffortStyle
from thoughtline.log.parts import Note, Text, ToolKind


def params(**body):
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi."}], **body}
    return read_params(DIALECTS["chat"].read(json.dumps(body).encode()))


def test_instructions_keep_their_place():
    messages = [
        {"role": "system", "content": "First."},
        {"role": "developer", "content": "Second."},
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "One."},
        {"role": "system", "content": "In between."},
        {"role": "user", "content": "Two?"},
    ]
    found = params(messages=messages)
    assert found.system == "First.\n\nSecond."
    assert found.inputs == (
        (Text(text="One?"),),
        (Note(text="In between."), Text(text="Two?")),
    )


def test_images_files_and_sound():
    content = [
        {"type": "text", "text": "See:"},
        {"type": "image_url", "image_url": {"url": "https://pictures.example/a.png"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0="}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    ]
    ((_, image, pdf, sound),) = params(messages=[{"role": "user", "content": content}]).inputs
    assert (image.kind, image.url) == ("image", "https://pictures.example/a.png")
    assert (pdf.kind, pdf.mime) == ("file", "application/pdf")
    assert (sound.kind, sound.mime) == ("audio", "audio/wav")


def test_tools_and_choices():
    found = params(
        tools=[
            {"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}},
            {"type": "custom", "custom": {"name": "patch", "description": "Patches."}},
        ],
        tool_choice={"type": "function", "function": {"name": "run"}},
        parallel_tool_calls=False,
    )
    assert [(tool.name, tool.kind) for tool in found.tools] == [
        ("run", ToolKind.FUNCTION),
        ("patch", ToolKind.CUSTOM),
    ]
    assert found.tool_choice == ToolChoice(mode="required", names=("run",))
    assert found.parallel_calls is False


@pytest.mark.parametrize(
    ("body", "effort"),
    [
        ({}, ""),
        ({"reasoning_effort": "high"}, "high"),
        ({"reasoning": {"effort": "low"}}, "low"),
        ({"thinking": {"type": "disabled"}}, "none"),
        ({"enable_thinking": False}, "none"),
        ({"enable_thinking": True}, ""),
    ],
)
def test_effort_under_any_key(body, effort):
    assert params(**body).effort == effort


def test_what_no_other_dialect_has_is_named():
    assert params(logprobs=True, service_tier="flex", n=1).left == ("logprobs", "service_tier")
    assert params(n=2).refused == ("n=2",)
    assert params(n=1).refused == params().refused == ()


@pytest.mark.parametrize(
    ("takes", "fields"),
    [
        (Capabilities(), {"reasoning_effort": "low"}),
        (Capabilities(efforts=("high", "max")), {"reasoning_effort": "high"}),
        (Capabilities(effort_style=EffortStyle.ENABLE), {"enable_thinking": True}),
        (Capabilities(effort_style=EffortStyle.ROUTER), {"reasoning": {"effort": "low"}}),
        (Capabilities(effort_style=EffortStyle.SWITCH), {"thinking": {"type": "enabled"}}),
    ],
)
def test_effort_is_said_as_its_provider_wants_it(takes, fields):
    assert write_fields(RequestParams(effort="low"), takes).fields == fields


def test_thinking_that_cannot_be_switched_off_stays_on_and_that_is_said():
    written = write_fields(RequestParams(effort="none"), Capabilities(thinking_off=False))
    assert (written.fields, written.left) == ({}, ("effort=none",))


def test_limits_stop_format_and_choice():
    asked = RequestParams(
        max_tokens=64_000,
        stop=("END",),
        output_format=OutputFormat(schema={"type": "object"}, strict=True),
        tools=(ToolSpec(name="run"),),
        tool_choice=ToolChoice(mode="required"),
        seed=7,
        top_k=40,
        verbosity="low",
    )
    written = write_fields(asked, Capabilities(max_output=8192))
    assert written.fields == {
        "max_tokens": 8192,
        "stop": ["END"],
        "seed": 7,
        "tool_choice": "required",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "response", "schema": {"type": "object"}, "strict": True},
        },
    }
    assert written.left == ("top_k", "verbosity")


def test_without_tools_nothing_is_said_about_them():
    asked = RequestParams(tool_choice=ToolChoice(mode="auto"), parallel_calls=True)
    assert write_fields(asked, Capabilities()).fields == {}


def test_a_choice_among_tools_of_both_kinds():
    tools = [{"type": k, k: {"name": n}} for k, n in (("function", "run"), ("custom", "patch"))]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": tools}}
    assert params(tool_choice=choice).tool_choice.names == ("run", "patch")
