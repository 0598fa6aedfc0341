"""What a `generateContent` request asks beside its contents, read from one, written for another."""

import re
from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.base import Request
from thoughtline.dialects.gemini.parts import member, result_content
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
    mapping,
    sequence,
    string,
    strings,
    whole_number,
)
from thoughtline.log.capabilities import Capabilities, EffortStyle
from thoughtline.log.parts import Part, Result, Text

_READ = frozenset(
    "model contents systemInstruction tools toolConfig generationConfig labels".split()  # noqa: SIM905 (a list of a word per line is longer)
)
_PLAIN = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
    "stop": "stopSequences",
}
"""Params that are one value, by the members that say them."""
_READ_CONFIG = frozenset(_PLAIN.values()) | frozenset(
    """candidateCount responseMimeType responseSchema responseJsonSchema thinkingConfig""".split()  # noqa: SIM905 (a list of a word per line is longer)
)
"""Members that are read, or that only say whose a request is."""
_USUAL = {"responseModalities": (["TEXT"],)}
_SNAKE = re.compile("_([a-z])")
_MODES = {"AUTO": "auto", "NONE": "none", "ANY": "required", "VALIDATED": "auto"}


def read_params(request: Request) -> RequestParams:
    """Read a request once more, for another dialect. Members come in camel or in snake case."""
    document = splice.loads(request.body)
    config = _camel(mapping(member(document, "generationConfig")))
    tools, hosted = _tools(member(document, "tools"))
    left = unread(_camel(document), _READ) + unread(config, _READ_CONFIG, _USUAL)
    calling = mapping(member(document, "toolConfig"))
    left += unread(_camel(calling), ("functionCallingConfig",))
    if string(member(config, "responseMimeType")) not in ("", "text/plain", "application/json"):
        left.append("responseMimeType")
    thinking = mapping(member(config, "thinkingConfig"))
    several = member(config, "candidateCount")
    return RequestParams(
        model=request.model,
        stream=request.stream,
        system=_system(member(document, "systemInstruction")),
        inputs=read_inputs(sequence(document.get("contents")), request.anchors, _input)[1],
        tools=tools,
        tool_choice=_choice(calling),
        effort=_effort(thinking, left),
        thinking=request.thinking is True,
        wants_thoughts=member(thinking, "includeThoughts") is not False,
        output_format=_format(config),
        left=(*left, *hosted),
        refused=() if several in (None, 1) else (f"candidateCount={several}",),
        **read_plain(_PLAIN, config),
    )


def _camel(members: dict[str, Any]) -> dict[str, Any]:
    """Members by their names in camel case, which counts where a member comes in both."""
    names = {name: _SNAKE.sub(lambda found: found[1].upper(), name) for name in members}
    return {camel: member(members, camel) for camel in names.values()}


def _system(instruction: Any) -> str:
    if isinstance(instruction, str):
        return instruction
    parts = sequence(mapping(instruction).get("parts")) or [instruction]
    texts = [string(mapping(part).get("text")) for part in parts]
    return "\n\n".join(text for text in texts if text)


# -- the history's input -------------------------------------------------------------------------


def _input(content: Any) -> list[Part]:
    """What a content says that is not the model's."""
    parts = sequence(mapping(content).get("parts"))
    return [found for part in parts for found in _part(mapping(part))]


def _part(part: dict[str, Any]) -> list[Part]:
    if isinstance(part.get("text"), str):
        return [Text(text=part["text"])]
    if isinstance(answer := member(part, "functionResponse"), dict):
        return [_result(answer)]
    if inline := mapping(member(part, "inlineData")):
        return [media(data=string(inline.get("data")), mime=string(member(inline, "mimeType")))]
    if file := mapping(member(part, "fileData")):
        return [media(url=string(member(file, "fileUri")), mime=string(member(file, "mimeType")))]
    return []


def _result(answer: dict[str, Any]) -> Result:
    content, error = result_content(answer.get("response"))
    parts = [found for part in sequence(answer.get("parts")) for found in _part(mapping(part))]
    return Result(
        content=content,
        call=string(answer.get("id")),
        name=string(answer.get("name")),
        error=error,
        media=tuple(part for part in parts if not isinstance(part, Text)),  # type: ignore[misc]
    )


# -- tools, effort, format -----------------------------------------------------------------------


def _tools(declared: Any) -> tuple[tuple[ToolSpec, ...], list[str]]:
    """The tools that a client runs itself, and the names of those that its provider would run."""
    tools: list[ToolSpec] = []
    hosted: list[str] = []
    for group in sequence(declared) or [declared]:
        functions = sequence(member(group, "functionDeclarations"))
        tools += [_tool(function) for function in functions if isinstance(function, dict)]
        known = ("functionDeclarations", "function_declarations")
        hosted += [name for name in mapping(group) if name not in known]
    return tuple(tools), hosted


def _tool(function: dict[str, Any]) -> ToolSpec:
    schema = member(function, "parametersJsonSchema")
    return ToolSpec(
        name=string(function.get("name")),
        description=string(function.get("description")),
        parameters=mapping(schema) or _lower_types(mapping(function.get("parameters"))),
    )


def _lower_types(schema: Any) -> Any:
    """A schema with the types of JSON Schema: this API spells them in capitals."""
    if isinstance(schema, list):
        return [_lower_types(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else _lower_types(value)
        for key, value in schema.items()
    }


def _choice(config: dict[str, Any]) -> ToolChoice | None:
    calling = mapping(member(config, "functionCallingConfig"))
    mode = _MODES.get(string(calling.get("mode")))
    names = strings(member(calling, "allowedFunctionNames"))
    return ToolChoice(mode=mode, names=names) if mode else None


def _effort(thinking: dict[str, Any], left: list[str]) -> str:
    level = string(member(thinking, "thinkingLevel")).lower()
    if level and level != "thinking_level_unspecified":
        return read_effort(level, left)
    budget = whole_number(member(thinking, "thinkingBudget"))
    return effort_of_budget(budget) if budget is not None else ""


def _format(config: dict[str, Any]) -> OutputFormat | None:
    if member(config, "responseMimeType") != "application/json":
        return None
    plain = member(config, "responseJsonSchema")
    schema = plain if plain is not None else _lower_types(member(config, "responseSchema"))
    return OutputFormat(schema=schema if isinstance(schema, dict) else None)


# -- writing -------------------------------------------------------------------------------------


def write_fields(params: RequestParams, takes: Capabilities) -> ParamFields:
    """The members of a body that ask the same of a `generateContent` provider."""
    config, unsaid = write_plain(_PLAIN, params, takes, by_hand=("parallel_calls",))
    thinking, left = _written_effort(params, takes)
    config["thinkingConfig"] = thinking
    if params.output_format is not None:
        config["responseMimeType"] = "application/json"
        if params.output_format.schema is not None:
            config["responseJsonSchema"] = params.output_format.schema
    fields: dict[str, Any] = {"generationConfig": config}
    if params.tool_choice is not None and params.tools:
        fields["toolConfig"] = _written_choice(params.tool_choice)
    left += unsaid
    if params.parallel_calls is False and params.tools:
        left.append("parallel_tool_calls")
    return ParamFields(fields=fields, left=tuple(left))


def _written_effort(params: RequestParams, takes: Capabilities) -> tuple[dict[str, Any], list[str]]:
    shown = {"includeThoughts": True}
    budgeted = takes.effort_style is EffortStyle.BUDGET
    if not params.effort:
        asked = {"thinkingBudget": -1} if budgeted and params.thinking else {}
        return shown | asked, []
    if budgeted:
        off = params.effort == "none"
        if off and not takes.thinking_off:
            return shown, ["effort=none"]
        return ({"thinkingBudget": 0} if off else shown | _budget(params.effort)), []
    effort = nearest_effort(params.effort, takes.efforts or ("low", "medium", "high"))
    return (
        (shown | {"thinkingLevel": effort}, []) if effort else (shown, [f"effort={params.effort}"])
    )


def _budget(effort: str) -> dict[str, int]:
    return {"thinkingBudget": min(budget_of_effort(effort), 24576)}


def _written_choice(choice: ToolChoice) -> dict[str, Any]:
    modes = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
    calling: dict[str, Any] = {"mode": modes[choice.mode]}
    if choice.names and choice.mode == "required":
        calling["allowedFunctionNames"] = list(choice.names)
    return {"functionCallingConfig": calling}
