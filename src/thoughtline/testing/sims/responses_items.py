"""The items of a Responses input, each checked by itself: required fields, types, lengths, ids.

What an item needs is a table by its type. What items need from one another is in
`responses_rules`.
"""

from __future__ import annotations

from typing import Any

from thoughtline.testing.sims.problems import Problem
from thoughtline.testing.sims.responses_input import (
    ARRAY,
    NULL,
    OBJECT,
    STRING,
    Item,
    choose,
    expect,
    missing,
)
from thoughtline.testing.sims.responses_rows import XAI_COMPACTION, Row

_OPTIONAL = (STRING, NULL)

# type → field → what it may be; a field that may not be null is required.
FIELDS: dict[str, dict[str, tuple[str, ...]]] = {
    "message": {"role": (STRING,), "content": (STRING, ARRAY), "id": _OPTIONAL},
    "reasoning": {
        "summary": (ARRAY,),
        "content": (ARRAY, NULL),
        "encrypted_content": _OPTIONAL,
        "id": _OPTIONAL,
    },
    "function_call": {
        "call_id": (STRING,),
        "name": (STRING,),
        "arguments": (STRING,),
        "id": _OPTIONAL,
    },
    "function_call_output": {
        "call_id": (STRING,),
        "output": (STRING, ARRAY),
        "id": _OPTIONAL,
    },
    "custom_tool_call": {"call_id": (STRING,), "name": (STRING,), "input": (STRING,)},
    "custom_tool_call_output": {"call_id": (STRING,), "output": (STRING, ARRAY)},
    "item_reference": {"id": (STRING,)},
    "compaction": {"encrypted_content": (STRING,), "id": _OPTIONAL},
    # openai-python 3.51, types/responses/response_input_item_param.py
    "configuration_update": {"id": _OPTIONAL},
}
# Items of hosted tools: passed by, not looked into.
OTHERS = (
    "additional_tools",
    "apply_patch_call",
    "apply_patch_call_output",
    "code_interpreter_call",
    "computer_call",
    "computer_call_output",
    "file_search_call",
    "image_generation_call",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "mcp_list_tools",
    "shell_call",
    "shell_call_output",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
)
KINDS = tuple(sorted((*FIELDS, *OTHERS)))
ROLES = ("assistant", "system", "developer", "user")
PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc"}
# github.com/decolua/9router/issues/393: ids that carried a signature were too long.
LONGEST_ID = 64


def check(item: Item, row: Row) -> None:
    """Check one item.

    Raises:
        Problem: it is not what the API documents.
    """
    where = item.where
    if item.value.get("type") is not None:
        expect(item.value["type"], (STRING,), f"{where}.type")
        choose(item.kind, KINDS, f"{where}.type")
    for name, kinds in FIELDS.get(item.kind, {}).items():
        _field(item, name, kinds, row)
    if item.kind == "message":
        _message(item)
    if item.kind == "reasoning":
        _reasoning(item, row)
    if row.pairing and item.id:
        prefix = PREFIXES.get(item.kind, "")
        if not item.id.startswith(prefix):
            raise Problem(
                400,
                f"Invalid '{where}.id': '{item.id}'. Expected an ID that begins with '{prefix}'.",
                code="invalid_value",
                param=f"{where}.id",
            )


def _field(item: Item, name: str, kinds: tuple[str, ...], row: Row) -> None:
    param = f"{item.where}.{name}"
    if name not in item.value:
        if NULL in kinds or (name == "summary" and row.shape == "deepseek"):
            return
        if name == "summary" and row.shape == "xai":
            raise _no_summary(item)
        raise missing(param)
    value = item.value[name]
    expect(value, kinds, param)
    if name in ("id", "call_id") and isinstance(value, str):
        _length(value, param)


def _no_summary(item: Item) -> Problem:
    if item.value.get("encrypted_content"):
        return Problem(400, XAI_COMPACTION)
    # Agora#141: the words of servers that are compatible with this API.
    index = item.where.removeprefix("input[").removesuffix("]")
    return Problem(400, f"Input[{index}] missing required field `summary`")


def _length(value: str, param: str) -> None:
    if not value:
        raise Problem(
            400,
            f"Invalid '{param}': empty string. Expected a string with minimum length 1, but got an"
            " empty string instead.",
            code="empty_string",
            param=param,
        )
    if len(value) > LONGEST_ID:
        raise Problem(
            400,
            f"Invalid '{param}': string too long. Expected a string with maximum length"
            f" {LONGEST_ID}, but got a string with length {len(value)} instead.",
            code="string_above_max_length",
            param=param,
        )


def _message(item: Item) -> None:
    role, content = item.value["role"], item.value["content"]
    choose(role, ROLES, f"{item.where}.role")
    if isinstance(content, str):
        return
    for at, part in enumerate(content):
        where = f"{item.where}.content[{at}]"
        _part(part, where)
        if role == "assistant" and part["type"] not in ("output_text", "refusal"):
            choose(part["type"], ("output_text", "refusal"), where)


def _reasoning(item: Item, row: Row) -> None:
    for name, kind in (("summary", "summary_text"), ("content", "reasoning_text")):
        for at, part in enumerate(item.value.get(name) or ()):
            where = f"{item.where}.{name}[{at}]"
            _part(part, where)
            choose(part["type"], (kind,), f"{where}.type")
            if "text" not in part:
                raise missing(f"{where}.text")
    sealed = bool(item.value.get("encrypted_content"))
    if row.pairing and not item.id and not sealed:
        raise missing(f"{item.where}.id")


def _part(part: Any, where: str) -> None:
    expect(part, (OBJECT,), where)
    if "type" not in part:
        raise missing(f"{where}.type")
    expect(part["type"], (STRING,), f"{where}.type")
    if "text" in part:
        expect(part["text"], (STRING,), f"{where}.text")
