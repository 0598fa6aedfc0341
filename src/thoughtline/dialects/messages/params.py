"""What a Messages request asks beside its history, read from one and written for another."""

import re
from typing import Any

from msgspec.structs import replace

from thoughtline.dialects import splice
from thoughtline.dialects.base import Request
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
    token_limit,
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
from thoughtline.log.parts import Blob, Note, Part, Result, Text

DEFAULT_MAX_TOKENS = 32_000
"""Tokens of an answer where a client sets no limit: this API demands one."""
_UNSAID_EFFORT = "medium"
"""How hard a model thinks whose client asks for thoughts, and not for an effort."""
_BILLING = re.compile(r"x-anthropic-billing-header:.*", re.DOTALL)
"""A line for Anthropic alone that changes from request to request, and with it the prefix."""
_SAMPLING = ("temperature", "top_p", "top_k")
_PLAIN = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stop": "stop_sequences",
}
"""Params that are one value, by the members that say them."""
_READ = frozenset(_PLAIN.values()) | frozenset(
    """model messages system stream tools tool_choice thinking output_config output_format
    metadata context_management cache_control betas anthropic_version anthropic_beta""".split()  # noqa: SIM905 (a list of a word per line is longer)
)
"""Members that are read, or that only say whose a request is and how its provider keeps it."""
_USUAL = {"service_tier": ("auto", "standard_only")}


def read_params(request: Request) -> RequestParams:
    """Read a request once more, for another dialect."""
    document = splice.loads(request.body)
    output = mapping(document.get("output_config"))
    tools, hosted = _tools(sequence(document.get("tools")))
    choice = mapping(document.get("tool_choice"))
    parallel = flag(choice.get("disable_parallel_tool_use"))
    left = unread(document, _READ, _USUAL)
    left += [f"output_config.{name}" for name in unread(output, ("effort", "format"))]
    form = mapping(output.get("format") or document.get("output_format"))
    thinking = mapping(document.get("thinking"))
    return RequestParams(
        model=request.model,
        stream=request.stream,
        system=_system(document.get("system")),
        inputs=read_inputs(document["messages"], request.anchors, _input)[1],
        tools=tools,
        tool_choice=_choice(choice),
        parallel_calls=None if parallel is None else not parallel,
        effort=_effort(thinking, read_effort(output.get("effort"), left)),
        thinking=request.thinking is True,
        wants_thoughts=thinking.get("display") != "omitted",
        output_format=OutputFormat(schema=mapping(form.get("schema"))) if form else None,
        left=(*left, *hosted),
        refused=_forced(choice, sequence(document.get("tools")), tools),
        **read_plain(_PLAIN, document),
    )


def _forced(
    choice: dict[str, Any], declared: list[Any], tools: tuple[ToolSpec, ...]
) -> tuple[str, ...]:
    """The type of a tool that the answer must call, and that only its provider would run."""
    name = choice.get("name") if choice.get("type") == "tool" else None
    if name is None or name in [tool.name for tool in tools]:
        return ()
    return tuple(string(tool.get("type")) for tool in _blocks(declared) if tool.get("name") == name)


def _system(system: Any) -> str:
    texts = (
        [system] if isinstance(system, str) else [string(b.get("text")) for b in _blocks(system)]
    )
    return "\n\n".join(text for text in texts if text and not _BILLING.fullmatch(text))


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [block for block in sequence(content) if isinstance(block, dict)]


# -- the history's input -------------------------------------------------------------------------


def _input(message: Any) -> list[Part]:
    """What a message says that is not the model's."""
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ("system", "user"):
        return []
    parts = _content(message.get("content"))
    if role == "user":
        return parts
    text = "".join(part.text for part in parts if isinstance(part, Text))
    return [Note(text=text)] if text else []


def _content(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Text(text=content)] if content else []
    parts: list[Part] = []
    for block in sequence(content):
        match block:
            case {"type": "text", "text": str(text)}:
                parts.append(Text(text=text))
            case {"type": "tool_result"}:
                parts.append(_result(block))
            case {"type": "image" | "document" as kind, "source": dict(source)}:
                parts += _media(kind, source, string(block.get("title")))
            case {"type": "tool_reference", "tool_name": str(name)}:
                parts.append(Text(text=name))
    return parts


def _result(block: dict[str, Any]) -> Result:
    parts = _content(block.get("content"))
    return Result(
        content="".join(part.text for part in parts if isinstance(part, Text)),
        call=string(block.get("tool_use_id")),
        error=block.get("is_error") is True,
        media=tuple(part for part in parts if isinstance(part, Blob)),
    )


def _media(kind: str, source: dict[str, Any], title: str) -> list[Part]:
    kind = "image" if kind == "image" else "file"
    match source:
        case {"type": "base64", "data": str(data)}:
            mime = string(source.get("media_type"))
            return [media(kind=kind, data=data, mime=mime, name=title)]
        case {"type": "url", "url": str(url)}:
            return [media(kind=kind, url=url, name=title)]
        case {"type": "text", "data": str(text)}:
            return [Text(text=text)]
    return [media(kind=kind, name=title)]


# -- tools and effort ----------------------------------------------------------------------------


def _tools(declared: list[Any]) -> tuple[tuple[ToolSpec, ...], list[str]]:
    """The tools that a client runs itself, and the types of those that its provider would run."""
    tools: list[ToolSpec] = []
    hosted: list[str] = []
    for tool in _blocks(declared):
        kind = string(tool.get("type")) or "custom"
        if kind != "custom" and "input_schema" not in tool:
            hosted.append(kind)
            continue
        tools.append(
            ToolSpec(
                name=string(tool.get("name")),
                description=string(tool.get("description")),
                parameters=mapping(tool.get("input_schema")),
                strict=flag(tool.get("strict")),
            )
        )
    return tuple(tools), hosted


def _choice(choice: dict[str, Any]) -> ToolChoice | None:
    match choice.get("type"):
        case "auto" | "none" as mode:
            return ToolChoice(mode=mode)
        case "any":
            return ToolChoice(mode="required")
        case "tool":
            return ToolChoice(mode="required", names=(string(choice.get("name")),))
    return None


def _effort(thinking: dict[str, Any], effort: str) -> str:
    """The effort that is asked for; a budget of tokens stands for one."""
    if thinking.get("type") == "disabled":
        return "none"
    budget = whole_number(thinking.get("budget_tokens"))
    if effort:
        return effort
    return effort_of_budget(budget) if thinking.get("type") == "enabled" and budget else ""


# -- writing -------------------------------------------------------------------------------------


def write_fields(params: RequestParams, takes: Capabilities) -> ParamFields:
    """The members of a body that ask the same of a Messages provider."""
    limit = token_limit(params, takes) or takes.max_output or DEFAULT_MAX_TOKENS
    forced = params.tool_choice is not None and params.tool_choice.mode == "required"
    fields, left = _written_effort(params, takes, limit, forced=forced)
    refused: tuple[str, ...] = ()
    if fields.get("thinking", {}).get("type", "disabled") != "disabled":
        refused = _SAMPLING
    elif params.temperature is not None:
        refused = ("top_p",)  # newer models refuse both
    limited = replace(params, max_tokens=limit)
    plain, unsaid = write_plain(
        _PLAIN, limited, takes, refused=refused, by_hand=("parallel_calls",)
    )
    fields |= plain
    left += unsaid
    if params.tools:
        fields |= _written_choice(params.tool_choice, params.parallel_calls)
    if params.output_format is not None and params.output_format.schema is not None:
        schema = {"type": "json_schema", "schema": params.output_format.schema}
        fields["output_config"] = {**fields.get("output_config", {}), "format": schema}
    elif params.output_format is not None:
        left.append("response_format=json_object")
    return ParamFields(fields=fields, left=tuple(left))


def _written_effort(
    params: RequestParams, takes: Capabilities, limit: int, *, forced: bool
) -> tuple[dict[str, Any], list[str]]:
    adaptive = takes.effort_style is EffortStyle.ADAPTIVE
    always = adaptive and not takes.thinking_off
    effort, off = params.effort, params.effort == "none"
    left = [f"effort={effort}" if effort else "thinking"]
    if not (effort or params.thinking or always):
        return {}, []
    if off and not always:
        return ({"thinking": {"type": "disabled"}}, []) if takes.thinking_off else ({}, left)
    if forced and not always:  # what can be switched off is, beside a forced tool
        return {}, left
    if adaptive:
        thinking: dict[str, Any] = {"thinking": {"type": "adaptive", "display": "summarized"}}
        if off or not effort:
            return thinking, left if off else []
        step = nearest_effort(effort, takes.efforts or ("low", "medium", "high", "max"))
        return thinking | {"output_config": {"effort": step}}, []
    budget = budget_of_effort(effort or _UNSAID_EFFORT, max_tokens=limit)
    if budget >= limit:  # there is no room for the least that this API takes
        return {}, left
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}, []


def _written_choice(choice: ToolChoice | None, parallel: bool | None) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if choice is not None:
        made["type"] = "any" if choice.mode == "required" else choice.mode
        if choice.mode == "required" and len(choice.names) == 1:
            made = {"type": "tool", "name": choice.names[0]}
    if parallel is False and made.get("type") != "none":
        made = {"type": "auto"} | made | {"disable_parallel_tool_use": True}
    return {"tool_choice": made} if made else {}
