"""What a Chat Completions request asks beside its messages, read from one, written for another."""

from collections.abc import Sequence
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
    budget_of_effort,
    effort_of_budget,
    nearest_effort,
    read_effort,
    read_inputs,
    read_plain,
    unread,
    write_plain,
)
from thoughtline.dialects.values import (
    flag,
    mapping,
    sequence,
    string,
    whole_number,
)
from thoughtline.log.capabilities import Capabilities, EffortStyle
from thoughtline.log.parts import Note, Part, Result, Text, ToolKind

_PLAIN = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "parallel_calls": "parallel_tool_calls",
    "stop": "stop",
    "top_k": "top_k",
    "seed": "seed",
}
"""Params that are one value, by the members that say them."""
_READ = frozenset(_PLAIN.values()) | frozenset(
    """model messages stream stream_options tools functions tool_choice function_call
    max_completion_tokens response_format verbosity n
    reasoning reasoning_effort reasoning_split include_reasoning separate_reasoning thinking
    enable_thinking thinking_budget chat_template_kwargs
    store metadata user session_id safety_identifier prompt_cache_key
    prompt_cache_retention""".split()  # noqa: SIM905 (a list of a word per line is longer)
)
"""Members that are read, or that only say whose a request is and where it may be kept."""
_USUAL = {"service_tier": ("auto", "default")}
"""Members of which these values ask for nothing."""


def read_params(request: Request) -> RequestParams:
    """Read a request once more, for another dialect."""
    document = splice.loads(request.body)
    instructions, inputs = read_inputs(
        document["messages"], request.anchors, _input, instructed=True
    )
    left = unread(document, _READ, _USUAL)
    if document.get("web_search_options") == {}:
        left.append("web_search_options")  # it searches all the same
    choice = _choice(document.get("tool_choice", document.get("function_call")))
    if choice is None and isinstance(document.get("tool_choice"), dict):
        left.append("tool_choice")
    form = mapping(document.get("response_format"))
    if form.get("type", "text") not in ("text", "json_object", "json_schema"):
        left.append("response_format")
    options = mapping(document.get("stream_options"))
    plain = read_plain(_PLAIN, document)
    if (limit := whole_number(document.get("max_completion_tokens"))) is not None:
        plain["max_tokens"] = limit
    shown = _shown(document)
    return RequestParams(
        model=request.model,
        stream=request.stream,
        system="\n\n".join(instructions),
        inputs=inputs,
        tools=_tools(document),
        tool_choice=choice,
        effort=_effort(document, request.thinking, left),
        thinking=request.thinking is True or shown is True,
        wants_thoughts=shown is not False,
        output_format=_format(form),
        verbosity=string(document.get("verbosity")),
        wants_usage=options.get("include_usage") is True,
        left=tuple(left),
        refused=() if document.get("n") in (None, 1) else (f"n={document['n']}",),
        **plain,
    )


# -- the history's input -------------------------------------------------------------------------


def _input(message: Any) -> Sequence[Part]:
    """What a message says that is not the model's."""
    role = message.get("role") if isinstance(message, dict) else None
    if role in ("system", "developer"):
        text = joined_text(message.get("content"))
        return [Note(text=text)] if text else []
    if role in ("tool", "function"):
        return [_result(message)]
    return _content(message.get("content")) if role == "user" else []


def _result(message: dict[str, Any]) -> Result:
    parts = _content(message.get("content"))
    return Result(
        content="".join(part.text for part in parts if isinstance(part, Text)),
        call=string(message.get("tool_call_id")),
        name=string(message.get("name")),
        media=tuple(part for part in parts if not isinstance(part, Text)),
    )


def _content(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [Text(text=content)]
    parts: list[Any] = []
    for element in sequence(content):
        match element:
            case str(text) | {"text": str(text)}:
                parts.append(Text(text=text))
            case {"type": "image_url", "image_url": dict(image)}:
                detail = string(image.get("detail"))
                parts.append(media(url=string(image.get("url")), detail=detail, kind="image"))
            case {"type": "image_url", "image_url": str(url)}:
                parts.append(media(url=url, kind="image"))
            case {"type": "file", "file": dict(file)}:
                data, name = string(file.get("file_data")), string(file.get("filename"))
                parts.append(media(url=data, name=name, kind="file"))
            case {"type": "input_audio", "input_audio": dict(audio)}:
                mime = f"audio/{string(audio.get('format'))}"
                parts.append(media(data=string(audio.get("data")), mime=mime))
    return parts


# -- tools, effort, format -----------------------------------------------------------------------


def _tools(document: dict[str, Any]) -> tuple[ToolSpec, ...]:
    tools = [mapping(tool) for tool in sequence(document.get("tools"))]
    tools += [{"function": tool} for tool in sequence(document.get("functions"))]
    return tuple(_tool(tool) for tool in tools if "function" in tool or "custom" in tool)


def _tool(tool: dict[str, Any]) -> ToolSpec:
    custom = mapping(tool.get("custom"))
    function = custom or mapping(tool.get("function"))
    grammar = mapping(mapping(custom.get("format")).get("grammar"))
    return ToolSpec(
        name=string(function.get("name")),
        description=string(function.get("description")),
        parameters=mapping(function.get("parameters")),
        kind=ToolKind.CUSTOM if custom else ToolKind.FUNCTION,
        grammar=string(grammar.get("definition")),
        strict=flag(function.get("strict")),
    )


def _choice(choice: Any) -> ToolChoice | None:
    match choice:
        case "auto" | "none" | "required":
            return ToolChoice(mode=choice)
        case (
            {"function": {"name": str(name)}}
            | {"custom": {"name": str(name)}}
            | {"name": str(name)}
        ):
            return ToolChoice(mode="required", names=(name,))
        case {"allowed_tools": {"mode": "auto" | "required" as mode, "tools": list(tools)}}:
            inner = [mapping(tool).get(string(mapping(tool).get("type"))) for tool in tools]
            names = [string(mapping(tool).get("name")) for tool in inner]
            return ToolChoice(mode=mode, names=tuple(names))
    return None


def _effort(document: dict[str, Any], thinking: bool | None, left: list[str]) -> str:
    reasoning = mapping(document.get("reasoning"))
    named = document.get("reasoning_effort") or reasoning.get("effort")
    if named or thinking is False:
        return read_effort(named, left) or ("none" if thinking is False else "")
    budgets = (
        document.get("thinking_budget"),
        reasoning.get("max_tokens"),
        mapping(document.get("thinking")).get("budget_tokens"),
    )
    budget = next((tokens for b in budgets if (tokens := whole_number(b)) is not None), None)
    return effort_of_budget(budget) if budget is not None else ""


def _shown(document: dict[str, Any]) -> bool | None:
    """Whether the client wants to be shown thoughts; None: it does not say."""
    excluded = flag(mapping(document.get("reasoning")).get("exclude"))
    return flag(document.get("include_reasoning")) if excluded is None else not excluded


def _format(form: dict[str, Any]) -> OutputFormat | None:
    if form.get("type") == "json_object":
        return OutputFormat()
    if form.get("type") != "json_schema":
        return None
    asked = mapping(form.get("json_schema"))
    return OutputFormat(
        schema=mapping(asked.get("schema")),
        name=string(asked.get("name")),
        strict=flag(asked.get("strict")),
    )


# -- writing -------------------------------------------------------------------------------------


def write_fields(params: RequestParams, takes: Capabilities) -> ParamFields:
    """The members of a body that ask the same of a Chat Completions provider."""
    fields, left = _written_effort(params, takes)
    refused = [name for name in ("top_k", "seed") if not getattr(takes, name)]
    plain, unsaid = write_plain(_PLAIN, params, takes, refused=refused, by_hand=("verbosity",))
    if takes.developer_role and "max_tokens" in plain:
        plain = {"max_completion_tokens": plain.pop("max_tokens")} | plain
    fields |= plain
    left += unsaid
    if params.tool_choice is not None and params.tools:
        fields["tool_choice"] = _written_choice(params.tool_choice)
    if params.output_format is not None:
        fields["response_format"] = _written_format(params.output_format)
    if params.verbosity and takes.developer_role:
        fields["verbosity"] = params.verbosity
    elif params.verbosity:
        left.append("verbosity")
    return ParamFields(fields=fields, left=tuple(left))


def _written_effort(params: RequestParams, takes: Capabilities) -> tuple[dict[str, Any], list[str]]:
    asked = params.effort or (takes.thinks_at if params.thinking else "")
    off = asked == "none"
    if off and not takes.thinking_off:
        return {}, ["effort=none"]
    if not asked and not params.thinking:
        return {}, []
    effort = nearest_effort(asked, takes.efforts)
    match takes.effort_style:
        case EffortStyle.ENABLE:
            return {"enable_thinking": not off}, []
        case EffortStyle.ROUTER:
            named = {"enabled": not off} if off or not effort else {"effort": effort}
            return {"reasoning": named}, []
        case EffortStyle.SWITCH:
            switch = {"thinking": {"type": "disabled" if off else "enabled"}}
            plain = off or not effort or not takes.efforts
            return switch if plain else switch | {"reasoning_effort": effort}, []
        case EffortStyle.BUDGET if asked:
            return {"thinking_budget": 0 if off else budget_of_effort(asked)}, []
    if effort:
        return {"reasoning_effort": effort}, []
    return {}, [f"effort={asked}"] if asked else []


def _written_choice(choice: ToolChoice) -> Any:
    if choice.mode == "required" and len(choice.names) == 1:
        return {"type": "function", "function": {"name": choice.names[0]}}
    return choice.mode  # of several names, only those tools are declared


def _written_format(form: OutputFormat) -> dict[str, Any]:
    if form.schema is None:
        return {"type": "json_object"}
    schema: dict[str, Any] = {"name": form.name or "response", "schema": form.schema}
    if form.strict is not None:
        schema["strict"] = form.strict
    return {"type": "json_schema", "json_schema": schema}
