import json

import pytest

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.messages.params import read_params, write_fields
from thoughtline.dialects.params import OutputFormat, RequestParams, ToolChoice, ToolSpec
from thoughtline.log.capabilities import Capabilities, EffortStyle
from thoughtline.log.parts import Note, Text


def params(**body):
    body = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi."}]} | body
    return read_params(DIALECTS["messages"].read(json.dumps(body).encode()))


def test_the_billing_line_is_for_anthropic_alone():
    blocks = [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cch=abc12;"},
        {"type": "text", "text": "You are careful.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "And brief."},
    ]
    assert params(system=blocks).system == "You are careful.\n\nAnd brief."
    assert params(system="Plain.").system == "Plain."


def test_instructions_in_the_middle_keep_their_place():
    messages = [
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": [{"type": "text", "text": "One."}]},
        {"role": "system", "content": "In between."},
        {"role": "user", "content": "Two?"},
        {"role": "system", "content": []},
    ]
    found = params(messages=messages)
    assert found.inputs == ((Text(text="One?"),), (Note(text="In between."), Text(text="Two?")))


def test_results_have_text_images_and_errors():
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    result = {
        "type": "tool_result",
        "tool_use_id": "c1",
        "is_error": True,
        "content": [{"type": "text", "text": "See:"}, {"type": "image", "source": source}],
    }
    ((found,),) = params(messages=[{"role": "user", "content": [result]}]).inputs
    assert (found.content, found.call, found.error) == ("See:", "c1", True)
    assert found.media[0].mime == "image/png"


def test_tools_that_the_provider_would_run_are_named():
    tools = [
        {"name": "run", "input_schema": {"type": "object"}, "cache_control": {}},
        {"type": "web_search_20250305", "name": "web_search"},
    ]
    found = params(tools=tools)
    assert found.tools == (ToolSpec(name="run", parameters={"type": "object"}),)
    assert found.left == ("web_search_20250305",)


@pytest.mark.parametrize(
    ("choice", "mode", "names"),
    [
        ({"type": "none"}, "none", ()),
        ({"type": "any"}, "required", ()),
        ({"type": "tool", "name": "run"}, "required", ("run",)),
    ],
)
def test_choices_of_tools(choice, mode, names):
    assert params(tool_choice=choice).tool_choice == ToolChoice(mode=mode, names=names)
    assert params(tool_choice={**choice, "disable_parallel_tool_use": True}).parallel_calls is False


@pytest.mark.parametrize(
    ("body", "effort"),
    [
        ({"thinking": {"type": "disabled"}}, "none"),
        ({"thinking": {"type": "enabled", "budget_tokens": 8192}}, "medium"),
        ({"thinking": {"type": "adaptive"}}, ""),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}, "high"),
        ({}, ""),
    ],
)
def test_effort(body, effort):
    assert params(**body).effort == effort


def test_a_limit_is_always_set():
    assert write_fields(RequestParams(), Capabilities()).fields == {"max_tokens": 32_000}
    assert write_fields(RequestParams(), Capabilities(max_output=8192)).fields["max_tokens"] == 8192
    asked = RequestParams(max_tokens=64_000)
    assert write_fields(asked, Capabilities(max_output=8192)).fields["max_tokens"] == 8192


def test_thinking_takes_the_samplings_place():
    asked = RequestParams(effort="high", temperature=0.5, max_tokens=64_000)
    written = write_fields(asked, Capabilities())
    assert written.fields["thinking"] == {"type": "enabled", "budget_tokens": 24576}
    assert "temperature" not in written.fields
    assert written.left == ("temperature",)


def test_one_of_two_samplings_is_enough():
    asked = RequestParams(temperature=1.0, top_p=0.95, top_k=64)
    written = write_fields(asked, Capabilities())
    assert written.fields["temperature"] == 1.0
    assert written.fields["top_k"] == 64
    assert "top_p" not in written.fields
    assert written.left == ("top_p",)
    alone = write_fields(RequestParams(top_p=0.95), Capabilities())
    assert (alone.fields["top_p"], alone.left) == (0.95, ())


def test_newer_models_decide_within_an_effort():
    takes = Capabilities(effort_style=EffortStyle.ADAPTIVE)
    fields = write_fields(RequestParams(effort="minimal"), takes).fields
    assert fields["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert fields["output_config"] == {"effort": "low"}


def test_a_forced_tool_and_manual_thinking_exclude_each_other():
    asked = RequestParams(
        effort="high",
        tools=(ToolSpec(name="run"),),
        tool_choice=ToolChoice(mode="required", names=("run",)),
    )
    written = write_fields(asked, Capabilities())
    assert written.fields["tool_choice"] == {"type": "tool", "name": "run"}
    assert "thinking" not in written.fields
    assert written.left == ("effort=high",)


def test_no_parallel_calls():
    asked = RequestParams(tools=(ToolSpec(name="run"),), parallel_calls=False)
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    assert write_fields(asked, Capabilities()).fields["tool_choice"] == choice


def test_structured_output():
    asked = RequestParams(output_format=OutputFormat(schema={"type": "object"}))
    form = {"type": "json_schema", "schema": {"type": "object"}}
    assert write_fields(asked, Capabilities()).fields["output_config"] == {"format": form}
    assert write_fields(RequestParams(output_format=OutputFormat()), Capabilities()).left
