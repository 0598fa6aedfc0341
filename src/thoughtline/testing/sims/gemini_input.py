"""A Gemini request, read as protobuf JSON: every name and type is checked against a schema.

Names may be written in camel or snake case, `null` is as good as nothing, and bytes are base64 in
either alphabet. `read` gives the request in camel case, so that nobody else has to know.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, NamedTuple

import msgspec

from thoughtline.testing.sims.gemini_rows import ROLE
from thoughtline.testing.sims.problems import Problem
from thoughtline.testing.sims.values import Tool, decode

_STRING, _BYTES, _BOOL, _INT = "TYPE_STRING", "TYPE_BYTES", "TYPE_BOOL", "TYPE_INT32"
_ANY, _STRUCT = "any", "google.protobuf.Struct"
_SCHEMAS = "Schema by name"

# message → field → type; a list means repeated. What is not looked into is `any`.
SCHEMA: dict[str, dict[str, str | list[str]]] = {
    "Request": {
        "contents": ["Content"],
        "systemInstruction": "Content",
        "tools": ["Tool"],
        "generationConfig": "GenerationConfig",
        "model": _STRING,
        "cachedContent": _STRING,
        "generateContentRequest": _ANY,
        **dict.fromkeys(("toolConfig", "safetySettings", "labels", "serviceTier", "store"), _ANY),
    },
    "Content": {"role": _STRING, "parts": ["Part"]},
    "Part": {
        "text": _STRING,
        "thought": _BOOL,
        "thoughtSignature": _BYTES,
        "functionCall": "FunctionCall",
        "functionResponse": "FunctionResponse",
        **dict.fromkeys(
            (
                "inlineData",
                "fileData",
                "executableCode",
                "codeExecutionResult",
                "toolCall",
                "toolResponse",
                "videoMetadata",
                "mediaResolution",
                "partMetadata",
            ),
            _ANY,
        ),
    },
    "FunctionCall": {"id": _STRING, "name": _STRING, "args": _STRUCT},
    "FunctionResponse": {
        "id": _STRING,
        "name": _STRING,
        "response": _STRUCT,
        **dict.fromkeys(("parts", "willContinue", "scheduling"), _ANY),
    },
    "Tool": {
        "functionDeclarations": ["FunctionDeclaration"],
        **dict.fromkeys(
            (
                "googleSearch",
                "googleSearchRetrieval",
                "codeExecution",
                "urlContext",
                "computerUse",
                "fileSearch",
                "googleMaps",
                "mcpServers",
            ),
            _ANY,
        ),
    },
    "FunctionDeclaration": {
        "name": _STRING,
        "description": _STRING,
        "parameters": "Schema",
        **dict.fromkeys(
            (
                "parametersJsonSchema",
                "response",
                "responseJsonSchema",
                "behavior",
            ),
            _ANY,
        ),
    },
    "Schema": {
        "items": "Schema",
        "anyOf": ["Schema"],
        "properties": _SCHEMAS,
        "type": _STRING,
        **dict.fromkeys(
            (
                "format",
                "title",
                "description",
                "nullable",
                "enum",
                "required",
                "propertyOrdering",
                "default",
                "example",
                "pattern",
                "minimum",
                "maximum",
                "minItems",
                "maxItems",
                "minLength",
                "maxLength",
                "minProperties",
                "maxProperties",
            ),
            _ANY,
        ),
    },
    "GenerationConfig": {
        "thinkingConfig": "ThinkingConfig",
        **dict.fromkeys(
            (
                "temperature",
                "topP",
                "topK",
                "candidateCount",
                "maxOutputTokens",
                "stopSequences",
                "responseMimeType",
                "responseSchema",
                "responseJsonSchema",
                "responseFormat",
                "presencePenalty",
                "frequencyPenalty",
                "seed",
                "responseLogprobs",
                "logprobs",
                "speechConfig",
                "mediaResolution",
                "responseModalities",
                "imageConfig",
            ),
            _ANY,
        ),
    },
    "ThinkingConfig": {"includeThoughts": _BOOL, "thinkingBudget": _INT, "thinkingLevel": _STRING},
}
_TYPES: dict[str, tuple[type, ...]] = {
    _STRING: (str,),
    _BYTES: (str,),
    _BOOL: (bool,),
    _INT: (int,),
    _STRUCT: (dict,),
}
# One of these is what a part is.
DATA = (
    "text",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)
Part = dict[str, Any]


class Content(NamedTuple):
    """One content of the conversation."""

    role: str
    parts: tuple[Part, ...]

    def of(self, name: str) -> list[Any]:
        """The values of this kind among its parts."""
        return [part[name] for part in self.parts if name in part]

    @property
    def text(self) -> str:
        """What is visible of it."""
        return "".join(part["text"] for part in self.parts if "text" in part and not part["hidden"])


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What a request asks for."""

    body: dict[str, Any]
    contents: tuple[Content, ...]
    tools: tuple[Tool, ...]
    told: bool
    """Summaries of thoughts are wanted."""


def read(raw: bytes) -> Call:
    """Read a request body.

    Raises:
        Problem: it is not what the API documents.
    """
    try:
        given = decode(raw)
    except ValueError as error:
        raise Problem(400, f"Invalid JSON payload received. {error}") from None
    if not isinstance(given, dict):
        raise Problem(400, "Invalid JSON payload received. Root element must be a message.")
    body = _message(given, "Request", "")
    if not body.get("contents"):
        raise Problem(400, "* GenerateContentRequest.contents: contents is not specified\n")
    contents = tuple(_content(one, at) for at, one in enumerate(body["contents"]))
    config = body.get("generationConfig", {}).get("thinkingConfig", {})
    return Call(
        body=body,
        contents=contents,
        tools=_tools(body),
        told=config.get("includeThoughts", False),
    )


def normal(signature: str) -> str:
    """A signature in the standard alphabet, with its padding: the same bytes, the same text."""
    text = signature.replace("-", "+").replace("_", "/").rstrip("=")
    return text + "=" * (-len(text) % 4)


def _message(value: dict[str, Any], kind: str, path: str) -> dict[str, Any]:
    schema, out = SCHEMA[kind], {}
    for name, one in value.items():
        camel = re.sub(r"_([a-z])", lambda match: match[1].upper(), name)
        if camel not in schema:
            where = f" at '{path}'" if path else ""
            text = (
                f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'
            )
            raise Problem(400, text, param=path)
        if one is not None:
            snake = re.sub(r"([A-Z])", lambda match: f"_{match[1].lower()}", camel)
            inner = f"{path}.{snake}" if path else snake
            out[camel] = _value(one, schema[camel], inner)
    return out


def _value(value: Any, kind: str | list[str], path: str) -> Any:
    if isinstance(kind, list):
        if not isinstance(value, list):
            raise _wrong(value, kind[0], path)
        return [_value(one, kind[0], f"{path}[{at}]") for at, one in enumerate(value)]
    if kind == _ANY:
        return value
    if kind == _SCHEMAS:
        if not isinstance(value, dict):
            raise _wrong(value, _STRUCT, path)
        entries = enumerate(value.items())
        return {name: _value(one, "Schema", f"{path}[{at}].value") for at, (name, one) in entries}
    if kind in SCHEMA:
        if not isinstance(value, dict):
            raise _wrong(value, kind, path)
        return _message(value, kind, path)
    if not isinstance(value, _TYPES[kind]) or (kind == _INT and isinstance(value, bool)):
        raise _wrong(value, kind, path)
    if kind == _BYTES and not _is_base64(str(value)):
        text = f"Invalid value at '{path}' ({kind}), Base64 decoding failed for \"{value}\""
        raise Problem(400, text, param=path)
    return value


def _wrong(value: Any, kind: str, path: str) -> Problem:
    if kind in SCHEMA:
        kind = f"type.googleapis.com/google.ai.generativelanguage.v1beta.{kind}"
    if isinstance(value, list):
        text = f'Invalid JSON payload received. Unknown name "{path.rpartition(".")[2]}": Proto'
        return Problem(400, f"{text} field is not repeating, cannot start list.", param=path)
    shown = f'"{value}"' if isinstance(value, str) else "Starting an object on a scalar field"
    if isinstance(value, bool | int | float):
        shown = str(value).lower()
    return Problem(400, f"Invalid value at '{path}' ({kind}), {shown}", param=path)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(normal(text), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _content(value: dict[str, Any], at: int) -> Content:
    path = f"* GenerateContentRequest.contents[{at}].parts"
    role = value.get("role") or "user"
    if role not in ("user", "model", "function"):
        raise Problem(400, ROLE)
    if not value.get("parts"):
        raise Problem(400, f"{path}: contents.parts must not be empty.\n")
    for index, part in enumerate(value["parts"]):
        if sum(name in part for name in DATA) != 1:
            text = "required oneof field 'data' must have one initialized field"
            raise Problem(400, f"{path}[{index}].data: {text}\n")
        for name in ("functionCall", "functionResponse"):
            if name in part and not part[name].get("name"):
                snake = "function_call" if name == "functionCall" else "function_response"
                raise Problem(400, f"{path}[{index}].{snake}.name: Name cannot be empty.\n")
        part["hidden"] = part.get("thought", False)
    return Content(role, tuple(value["parts"]))


def _tools(body: dict[str, Any]) -> tuple[Tool, ...]:
    config = body.get("toolConfig")
    calling = config.get("functionCallingConfig") if isinstance(config, dict) else None
    if isinstance(calling, dict) and calling.get("mode") == "NONE":
        return ()
    declared = [
        one for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ()
    ]
    for at, one in enumerate(declared):
        if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", one.get("name", "")):
            where = f"GenerateContentRequest.tools[0].function_declarations[{at}].name"
            raise Problem(
                400,
                f"* {where}: [FIELD_INVALID] Invalid function name. Must start with a letter or an"
                " underscore.",
            )
    return tuple(
        Tool(one["name"], one.get("parametersJsonSchema") or one.get("parameters"))
        for one in declared
    )
