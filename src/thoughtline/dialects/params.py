"""What a request asks beside its history, in no dialect's spelling.

`Dialect.params` reads it from a client's body, `Dialect.param_fields` writes it for a provider.
Only a request that is translated is read this way. Whatever one dialect can say and another cannot
is named in `left`, so that it is never dropped in silence.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any

from msgspec import Struct

from thoughtline.dialects.values import flag, number, string, strings, whole_number
from thoughtline.log.capabilities import Capabilities
from thoughtline.log.parts import Note, Part, ToolKind

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""How hard a model is to think, in rising order."""

_NOTHING: tuple[Any, ...] = (None, False, "", [], {})
_BUDGETS = {"minimal": 512, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 32768}


class ToolSpec(Struct, frozen=True, kw_only=True):
    """A tool that a model may call, as its provider is told."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}  # JSON Schema of its arguments
    kind: ToolKind = ToolKind.FUNCTION
    namespace: str = ""  # the server or group that it belongs to
    grammar: str = ""  # of a custom tool's input, where it has one
    strict: bool | None = None  # whether the provider enforces the schema; None: not said


class ToolChoice(Struct, frozen=True, kw_only=True):
    """Which tools the model may or must call."""

    mode: str  # "auto", "none" or "required"
    names: tuple[str, ...] = ()  # only these; empty: any


class OutputFormat(Struct, frozen=True, kw_only=True):
    """The shape that the answer's text must have."""

    schema: Mapping[str, Any] | None = None  # None: any JSON object
    name: str = ""
    strict: bool | None = None


class RequestParams(Struct, frozen=True, kw_only=True):
    """What a request asks; None and empty values: it does not say."""

    model: str = ""
    stream: bool = False
    system: str = ""  # the instructions at the head
    inputs: tuple[tuple[Part, ...], ...] = ()  # per turn of the request: notes and media included
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_calls: bool | None = None
    effort: str = ""  # one of EFFORTS
    thinking: bool = False  # asked to think, or to show it; `effort` may say how hard
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    stop: tuple[str, ...] = ()
    output_format: OutputFormat | None = None
    verbosity: str = ""
    wants_thoughts: bool = True  # else the client is told their seals alone
    wants_summary: bool = False  # the client shows summaries of thoughts, not thoughts
    wants_usage: bool = True  # the client takes a last chunk that only counts tokens
    left: tuple[str, ...] = ()  # what no other dialect can say, by name
    refused: tuple[str, ...] = ()  # of that: what an answer without it would be wrong for


class ParamFields(Struct, frozen=True, kw_only=True):
    """The members of a body that say what a request asks, and what they cannot say."""

    fields: Mapping[str, Any]
    left: tuple[str, ...] = ()


def read_inputs(
    history: Sequence[Any],
    anchors: Sequence[Any],
    read: Callable[[Any], Sequence[Part]],
    *,
    instructed: bool = False,
) -> tuple[list[str], tuple[tuple[Part, ...], ...]]:
    """The instructions at the head, the input of every turn, and what is behind the last one.

    `anchors` say where outputs stand, as the dialect has read them: what is between is input, and
    `read` reads one element of it. `instructed`: notes before anything else are instructions.
    """
    places = [anchor if isinstance(anchor, tuple) else (anchor,) for anchor in anchors]
    outputs = [(place[0], place[-1] + 1) for place in places if place and place[0] >= 0]
    starts = [0, *(end for _, end in outputs)]
    ends = [*(start for start, _ in outputs), len(history)]
    inputs = [
        tuple([part for element in history[start:end] for part in read(element)])
        for start, end in zip(starts, ends, strict=True)
    ]
    notes = takewhile(lambda part: isinstance(part, Note), inputs[0] if instructed else ())
    head = [note.text for note in notes if isinstance(note, Note)]
    inputs[0] = inputs[0][len(head) :]
    return head, tuple(inputs if inputs[-1] else inputs[:-1])


def unread(
    members: Mapping[str, Any], read: Collection[str], usual: Mapping[str, Sequence[Any]] = {}
) -> list[str]:
    """The members that ask for something that nobody reads; of some, these values ask nothing."""
    return [
        name
        for name, value in members.items()
        if name not in read and value not in (*_NOTHING, *usual.get(name, ()))
    ]


_PLAIN: Mapping[str, Callable[[Any], Any]] = {
    "max_tokens": whole_number,
    "temperature": number,
    "top_p": number,
    "top_k": whole_number,
    "seed": whole_number,
    "frequency_penalty": number,
    "presence_penalty": number,
    "stop": strings,
    "verbosity": string,
    "parallel_calls": flag,
}
"""Fields of `RequestParams` that are one value, and how it is read from a member."""


def read_plain(names: Mapping[str, str], members: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `RequestParams` that have members of these names."""
    return {field: _PLAIN[field](members.get(name)) for field, name in names.items()}


def write_plain(
    names: Mapping[str, str],
    params: RequestParams,
    takes: Capabilities,
    *,
    refused: Collection[str] = (),
    by_hand: Collection[str] = (),
) -> tuple[dict[str, Any], list[str]]:
    """The members of these names, and the fields that are asked for and not written.

    `refused`: fields that this endpoint does not take; `by_hand`: those that need more than a name.
    """
    asked = {name: getattr(params, name) for name in _PLAIN}
    asked |= {"max_tokens": token_limit(params, takes), "stop": list(params.stop)}
    asked["parallel_calls"] = params.parallel_calls if params.tools else None
    said = {name: value for name, value in asked.items() if value not in (None, "", [])}
    written = {names[field]: said[field] for field in names if field in said.keys() - refused}
    return written, [field for field in said if field in refused or field not in (*names, *by_hand)]


def token_limit(params: RequestParams, takes: Capabilities) -> int | None:
    """The tokens that an answer may have: as asked, and not more than the endpoint gives."""
    if params.max_tokens is None or not takes.max_output:
        return params.max_tokens
    return min(params.max_tokens, takes.max_output)


def read_effort(value: Any, left: list[str]) -> str:
    """The effort that a client names; `left` gets the name of one that nobody else knows."""
    if value in EFFORTS:
        return str(value)
    if value == "ultra":
        return "max"
    if value:
        left.append(f"effort={value}")
    return ""


def nearest_effort(effort: str, steps: Sequence[str]) -> str:
    """The next step upwards that a provider knows, else its highest; empty steps: all are known."""
    if not effort or not steps or effort in steps:
        return effort
    rank = EFFORTS.index(effort)
    known = sorted((step for step in steps if step != "none"), key=EFFORTS.index)
    if effort == "none" or not known:
        return ""
    return next((step for step in known if EFFORTS.index(step) >= rank), known[-1])


def effort_of_budget(tokens: int) -> str:
    """The effort that a budget of thinking tokens stands for; negative: the model decides."""
    if tokens < 0:
        return ""
    if tokens == 0:
        return "none"
    return next((effort for effort, most in _BUDGETS.items() if tokens <= most), "max")


def budget_of_effort(effort: str, *, max_tokens: int | None = None) -> int:
    """The thinking tokens of an effort, at least 1024 and below the limit of the answer."""
    budget = max(_BUDGETS.get(effort, 64_000), 1024)
    return budget if max_tokens is None else max(min(budget, max_tokens - 1), 1024)
