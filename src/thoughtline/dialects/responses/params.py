"""What a Responses request asks beside its items, read from one and written for another."""

from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.base import Request
from thoughtline.dialects.content import joined_text
from thoughtline.dialects.media import media
from thoughtline.dialects.params import (
    OutputFormat,
    ParamFields,
    RequestParams,
    ToolChoice,
    ToolSpec,
    nearest_effort,
    read_effort,
    read_inputs,
    read_plain,
    unread,
    write_plain,
)
from thoughtline.dialects.responses.items import Side, input_parts, item_type, side
from thoughtline.dialects.values import flag, mapping, sequence, string
from thoughtline.log.capabilities import Capabilities
from thoughtline.log.parts import Blob, Note, Part, Result, Text, ToolKind

_PLAIN = {
    "max_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "parallel_calls": "parallel_tool_calls",
}
"""Params that are one value, by the members that say them."""
_READ = frozenset(_PLAIN.values()) | frozenset(
    """model input instructions stream stream_options tools tool_choice
    reasoning text previous_response_id
    background conversation prompt
    store include metadata client_metadata user session_id safety_identifier prompt_cache_key
    prompt_cache_retention prompt_cache_options generate type""".split()  # noqa: SIM905 (a list of a word per line is longer)
)
"""Members that are read, or that only say whose a request is and where it may be kept."""
_ELSEWHERE = ("background", "conversation", "prompt")
"""Members that ask for what only this API's own server keeps."""
_USUAL = {"service_tier": ("auto", "default"), "truncation": ("auto", "disabled")}
"""Members of which these values ask for nothing."""


def read_params(request: Request) -> RequestParams:
    """Read a request once more, for another dialect."""
    document = splice.loads(request.body)
    given = document.get("input")
    items = given if isinstance(given, list) else [{"role": "user", "content": given}]
    instructions, inputs = read_inputs(items, request.anchors, _input, instructed=True)
    tools, hosted = _tools([*sequence(document.get("tools")), *_late_tools(items)])
    reasoning = mapping(document.get("reasoning"))
    left = unread(document, _READ, _USUAL)
    text = mapping(document.get("text"))
    form, verbosity = _format(text)
    if form is None and mapping(text.get("format")).get("type", "text") != "text":
        left.append("text.format")
    choice, refused = _choice(document.get("tool_choice"))
    effort = read_effort(reasoning.get("effort"), left)
    summary = bool(reasoning.get("summary") or reasoning.get("generate_summary"))
    head = string(document.get("instructions"))
    return RequestParams(
        model=request.model,
        stream=request.stream,
        system="\n\n".join(text for text in (head, *instructions) if text),
        inputs=inputs,
        tools=tools,
        tool_choice=choice,
        effort=effort,
        thinking=summary,
        output_format=form,
        verbosity=verbosity,
        wants_summary=summary,
        left=tuple(dict.fromkeys([*left, *hosted])),
        refused=(*refused, *[name for name in _ELSEWHERE if document.get(name)]),
        **read_plain(_PLAIN, document),
    )


# -- the history's input -------------------------------------------------------------------------


def _input(item: Any) -> list[Part]:
    """What an item says that is not the model's."""
    what = item_type(item)
    if side(item) is Side.NEITHER:
        text = joined_text(item.get("content")) if what == "message" else ""
        return [Note(text=text)] if text else []
    if what == "message":
        return _content(item.get("content"))
    if what.endswith("_output"):
        output = item.get("output")
        if what == "tool_search_output":
            output = splice.dumps({"tools": _names(item.get("tools"))}).decode()
        parts = _content(output)
        return [
            Result(
                content="".join(part.text for part in parts if isinstance(part, Text)),
                call=string(item.get("call_id")),
                media=tuple(part for part in parts if isinstance(part, Blob)),
            )
        ]
    return input_parts(item)


def _content(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Text(text=content)]
    parts: list[Part] = []
    for element in sequence(content):
        match element:
            case {"type": "input_image"}:
                parts.append(
                    media(
                        url=string(element.get("image_url")),
                        detail=string(element.get("detail")),
                        kind="image",
                    )
                )
            case {"type": "input_file"}:
                url = string(element.get("file_data")) or string(element.get("file_url"))
                parts.append(media(url=url, name=string(element.get("filename")), kind="file"))
            case {"type": "input_audio", "input_audio": {"data": str(data), "format": str(form)}}:
                parts.append(media(data=data, mime=f"audio/{form}"))
            case {"text": str(text)}:
                parts.append(Text(text=text))
    return parts


# -- tools ---------------------------------------------------------------------------------------


def _late_tools(items: list[Any]) -> list[Any]:
    """Tools that are declared among the items."""
    late = ("additional_tools", "tool_search_output")
    return [tool for i in items if item_type(i) in late for tool in sequence(i.get("tools"))]


def _names(tools: Any) -> list[str]:
    return [string(tool.get("name")) for tool in sequence(tools) if isinstance(tool, dict)]


def _tools(declared: list[Any], namespace: str = "") -> tuple[tuple[ToolSpec, ...], list[str]]:
    """The tools that a client runs itself, and the types of those that its provider would run."""
    tools: list[ToolSpec] = []
    hosted: list[str] = []
    for tool in declared:
        if not isinstance(tool, dict):
            continue
        kind = string(tool.get("type")) or "function"
        if kind == "namespace":
            inner, others = _tools(sequence(tool.get("tools")), string(tool.get("name")))
            tools += inner
            hosted += others
        elif kind in ("function", "custom") or (
            kind == "tool_search" and tool.get("execution") == "client"
        ):
            tools.append(_tool(tool, kind, namespace))
        else:
            hosted.append(kind)
    return tuple(tools), hosted


def _tool(tool: dict[str, Any], kind: str, namespace: str) -> ToolSpec:
    strict, form = tool.get("strict"), mapping(tool.get("format"))
    return ToolSpec(
        name=string(tool.get("name")) or kind,
        description=string(tool.get("description")),
        parameters=mapping(tool.get("parameters")),
        kind=ToolKind.SEARCH if kind == "tool_search" else ToolKind(kind),
        namespace=namespace,
        grammar=string(form.get("definition")),
        strict=strict if isinstance(strict, bool) else None,
    )


def _choice(choice: Any) -> tuple[ToolChoice | None, list[str]]:
    match choice:
        case "auto" | "none" | "required":
            return ToolChoice(mode=choice), []
        case {"type": "function" | "custom", "name": str(name)}:
            return ToolChoice(mode="required", names=(name,)), []
        case {"type": "allowed_tools", "mode": "auto" | "required" as mode}:
            return ToolChoice(mode=mode, names=tuple(_names(choice.get("tools")))), []
        case {"type": str(hosted)}:
            return None, [f"tool_choice={hosted}"]
    return None, []


# -- everything else -----------------------------------------------------------------------------


def _format(text: dict[str, Any]) -> tuple[OutputFormat | None, str]:
    verbosity, form = string(text.get("verbosity")), mapping(text.get("format"))
    if form.get("type") == "json_object":
        return OutputFormat(), verbosity
    if form.get("type") != "json_schema":
        return None, verbosity
    return OutputFormat(
        schema=mapping(form.get("schema")),
        name=string(form.get("name")),
        strict=flag(form.get("strict")),
    ), verbosity


# -- writing -------------------------------------------------------------------------------------


def write_fields(params: RequestParams, takes: Capabilities) -> ParamFields:
    """The members of a body that ask the same of a Responses provider."""
    fields: dict[str, Any] = {}
    left: list[str] = []
    asked = params.effort or (takes.thinks_at if params.thinking else "")
    if effort := nearest_effort(asked, takes.efforts):
        fields["reasoning"] = {"effort": effort, "summary": "auto"}
    elif not asked:
        fields["reasoning"] = {"summary": "auto"}
    else:
        left.append(f"effort={params.effort}")
    plain, unsaid = write_plain(_PLAIN, params, takes, by_hand=("verbosity",))
    fields |= plain
    left += unsaid
    if params.tool_choice is not None and params.tools:
        fields["tool_choice"] = _written_choice(params.tool_choice)
    if text := _written_format(params):
        fields["text"] = text
    return ParamFields(fields=fields, left=tuple(left))


def _written_choice(choice: ToolChoice) -> Any:
    if not choice.names:
        return choice.mode
    if choice.mode == "required" and len(choice.names) == 1:
        return {"type": "function", "name": choice.names[0]}
    tools = [{"type": "function", "name": name} for name in choice.names]
    return {"type": "allowed_tools", "mode": choice.mode, "tools": tools}


def _written_format(params: RequestParams) -> dict[str, Any]:
    text: dict[str, Any] = {"verbosity": params.verbosity} if params.verbosity else {}
    form = params.output_format
    if form is not None and form.schema is None:
        text["format"] = {"type": "json_object"}
    elif form is not None:
        text["format"] = {
            "type": "json_schema",
            "name": form.name or "response",
            "schema": form.schema,
            "strict": bool(form.strict),
        }
    return text
