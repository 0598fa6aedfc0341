import json

import pytest

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.gemini.params import read_params, write_fields
from thoughtline.dialects.params import OutputFormat, RequestParams, ToolChoice, ToolSpec
from thoughtline.log.capabilities import Capabilities, EffortStyle
from thoughtline.log.parts import Text


def params(**body):
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}], **body}
    return read_params(DIALECTS["gemini"].read(json.dumps(body).encode()))


def test_instructions_in_either_spelling():
    assert params(systemInstruction={"parts": [{"text": "A"}, {"text": "B"}]}).system == "A\n\nB"
    assert params(system_instruction={"parts": [{"text": "A"}]}).system == "A"
    assert params(systemInstruction="A").system == "A"


def test_inputs_with_files_and_results():
    contents = [
        {"role": "user", "parts": [{"inline_data": {"mime_type": "image/png", "data": "aQ=="}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "run", "args": {}}}]},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "run", "response": {"output": "ok"}}},
                {"functionResponse": {"name": "run", "response": {"a": 1, "b": 2}}},
            ],
        },
    ]
    (image,), (first, second) = params(contents=contents).inputs
    assert (image.kind, image.mime) == ("image", "image/png")
    assert (first.content, second.content) == ("ok", '{"a":1,"b":2}')


def test_tools_in_the_words_of_json_schema():
    schema = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}
    tools = [
        {"functionDeclarations": [{"name": "run", "parameters": schema}]},
        {"googleSearch": {}},
    ]
    found = params(tools=tools)
    expected = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert found.tools == (ToolSpec(name="run", parameters=expected),)
    assert found.left == ("googleSearch",)


def test_choices_effort_and_format():
    config = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["run"]}}
    assert params(toolConfig=config).tool_choice == ToolChoice(mode="required", names=("run",))
    snake = {"thinking_config": {"thinking_budget": 0}}
    assert params(generation_config=snake).effort == "none"
    level = {"thinkingConfig": {"thinkingLevel": "HIGH"}, "responseMimeType": "application/json"}
    found = params(generationConfig=level)
    assert (found.effort, found.output_format) == ("high", OutputFormat())


@pytest.mark.parametrize(
    ("takes", "effort", "thinking"),
    [
        (Capabilities(), "", {"includeThoughts": True}),
        (Capabilities(), "max", {"includeThoughts": True, "thinkingLevel": "high"}),
        (
            Capabilities(effort_style=EffortStyle.BUDGET),
            "medium",
            {"includeThoughts": True, "thinkingBudget": 8192},
        ),
        (Capabilities(effort_style=EffortStyle.BUDGET), "none", {"thinkingBudget": 0}),
    ],
)
def test_effort_is_said_as_its_model_wants_it(takes, effort, thinking):
    fields = write_fields(RequestParams(effort=effort), takes).fields
    assert fields["generationConfig"]["thinkingConfig"] == thinking


def test_what_cannot_be_said_is_named():
    asked = RequestParams(
        effort="none", verbosity="low", parallel_calls=False, tools=(ToolSpec(name="run"),)
    )
    left = write_fields(asked, Capabilities()).left
    assert left == ("effort=none", "verbosity", "parallel_tool_calls")


def test_limits_format_and_choice():
    asked = RequestParams(
        max_tokens=10,
        stop=("END",),
        output_format=OutputFormat(schema={"type": "object"}),
        tools=(ToolSpec(name="run"),),
        tool_choice=ToolChoice(mode="required", names=("run",)),
    )
    fields = write_fields(asked, Capabilities()).fields
    config = fields["generationConfig"]
    assert (config["maxOutputTokens"], config["stopSequences"]) == (10, ["END"])
    assert config["responseJsonSchema"] == {"type": "object"}
    calling = {"mode": "ANY", "allowedFunctionNames": ["run"]}
    assert fields["toolConfig"] == {"functionCallingConfig": calling}
    assert write_fields(RequestParams(effort=""), Capabilities()).left == ()


def test_text_of_a_user():
    assert params().inputs == ((Text(text="Hi."),),)
