import json

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.params import OutputFormat, RequestParams, ToolChoice, ToolSpec
from thoughtline.dialects.responses.params import read_params, write_fields
from thoughtline.log.capabilities import Capabilities
from thoughtline.log.parts import Note, Result, Text, ToolKind

PNG = "data:image/png;base64,iVBORw0KGgo="


def params(**body):
    body = {"model": "m", "input": "Hi.", **body}
    return read_params(DIALECTS["responses"].read(json.dumps(body).encode()))


def message(role, text):
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


CALL = {"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{}"}


def test_instructions_keep_their_place():
    items = [
        message("developer", "At the head."),
        message("user", "One?"),
        {"type": "message", "role": "assistant", "content": "One."},
        message("developer", "In between."),
        message("user", "Two?"),
    ]
    found = params(instructions="First.", input=items)
    assert found.system == "First.\n\nAt the head."
    assert found.inputs == (
        (Text(text="One?"),),
        (Note(text="In between."), Text(text="Two?")),
    )


def test_inputs_are_counted_as_turns_are():
    items = [message("user", "One?"), CALL, {**CALL, "call_id": "c2"}]
    items += [{"type": "function_call_output", "call_id": c, "output": "ok"} for c in ("c1", "c2")]
    items += [message("user", "More."), {"type": "message", "role": "assistant", "content": "x"}]
    request = DIALECTS["responses"].read(json.dumps({"model": "m", "input": items}).encode())
    assert len(read_params(request).inputs) == len(request.turns)


def test_images_in_messages_and_results():
    items = [
        {"role": "user", "content": [{"type": "input_image", "image_url": PNG, "detail": "low"}]},
        CALL,
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [
                {"type": "input_text", "text": "See:"},
                {"type": "input_image", "image_url": PNG},
            ],
        },
    ]
    (image,), (result,) = params(input=items).inputs
    assert (image.mime, image.detail) == ("image/png", "low")
    assert isinstance(result, Result)
    assert (result.content, result.media[0].data) == ("See:", "iVBORw0KGgo=")


def test_tools_of_every_kind():
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}
    tools = [
        {"type": "function", "name": "run", "parameters": {"type": "object"}, "strict": True},
        {"type": "custom", "name": "apply_patch", "description": "Patches.", "format": grammar},
        {"type": "namespace", "name": "files", "tools": [{"type": "function", "name": "ls"}]},
        {"type": "tool_search", "execution": "client"},
        {"type": "web_search"},
    ]
    found = params(tools=tools)
    assert found.tools == (
        ToolSpec(name="run", parameters={"type": "object"}, strict=True),
        ToolSpec(
            name="apply_patch",
            description="Patches.",
            kind=ToolKind.CUSTOM,
            grammar="start: /.+/",
        ),
        ToolSpec(name="ls", namespace="files"),
        ToolSpec(name="tool_search", kind=ToolKind.SEARCH),
    )
    assert found.left == ("web_search",)


def test_tools_that_are_declared_among_the_items_count():
    late = {"type": "additional_tools", "role": "developer", "tools": [{"name": "run"}]}
    assert [tool.name for tool in params(input=[late, message("user", "Hi.")]).tools] == ["run"]


def test_choices_of_tools():
    assert params(tool_choice="none").tool_choice == ToolChoice(mode="none")
    named = {"type": "function", "name": "run"}
    assert params(tool_choice=named).tool_choice == ToolChoice(mode="required", names=("run",))
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [named]}
    assert params(tool_choice=allowed).tool_choice == ToolChoice(mode="auto", names=("run",))
    assert params(tool_choice={"type": "web_search"}).refused == ("tool_choice=web_search",)
    assert params(background=True).refused == ("background",)
    assert params(background=False).refused == ()


def test_what_no_other_dialect_has_is_named():
    assert params(service_tier="flex", max_tool_calls=3).left == ("service_tier", "max_tool_calls")
    assert params(service_tier="auto", truncation="disabled").left == ()


def test_the_same_is_asked_of_a_provider_of_this_dialect():
    asked = RequestParams(
        effort="high",
        max_tokens=100,
        temperature=0.5,
        tools=(ToolSpec(name="run"),),
        tool_choice=ToolChoice(mode="required", names=("run",)),
        output_format=OutputFormat(schema={"type": "object"}),
        stop=("END",),
    )
    written = write_fields(asked, Capabilities())
    assert written.fields == {
        "reasoning": {"effort": "high", "summary": "auto"},
        "max_output_tokens": 100,
        "temperature": 0.5,
        "tool_choice": {"type": "function", "name": "run"},
        "text": {
            "format": {
                "type": "json_schema",
                "name": "response",
                "schema": {"type": "object"},
                "strict": False,
            }
        },
    }
    assert written.left == ("stop",)
