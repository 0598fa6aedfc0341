"""Generates the tables of what clients of other dialects are told of an answer.

Nothing in them is written by hand: each answer is translated twice, the second time with one thing
in it said otherwise, and what differs in the client's body is where that thing stands. What differs
nowhere is left out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from thoughtline.clock import SystemClock
from thoughtline.dialects import DIALECTS
from thoughtline.dialects.answer_blocks import AnswerBlocks
from thoughtline.dialects.answers import AnswerEnd, AnswerHead, stop_reason
from thoughtline.dialects.tool_names import ToolNames
from thoughtline.dialects.upstream_errors import upstream_error
from thoughtline.log.events import TurnEnded
from thoughtline.log.parts import Origin
from thoughtline.log.usage import Usage

Said = Mapping[str, Any]
"""What an answer says, in no dialect's words."""

SAID: Said = {
    "text": "Size counts.",
    "refusal": "",
    "stop": "end",
    "stop text": None,
    "links": True,
    "url": "https://a.example",
    "title": "A",
    "quote": "It counts.",
    "end": 12,
    "tool": "",
    "prompt": 1310,
    "answer": 300,
    "thoughts": 250,
    "cached": 1000,
    "written": 110,
}

# -- answers of providers ------------------------------------------------------------------------


def chat(said: Said) -> dict[str, Any]:
    """What OpenAI says in Chat Completions; Groq's tools."""
    link = {"url": said["url"], "title": said["title"], "content": said["quote"]}
    link |= {"start_index": 0, "end_index": said["end"]}
    message = {"role": "assistant", "content": None if said["refusal"] else said["text"]}
    message["refusal"] = said["refusal"] or None
    if said["links"]:
        message["annotations"] = [{"type": "url_citation", "url_citation": link}]
    if said["tool"]:
        message["executed_tools"] = [{"type": "search", "arguments": said["tool"]}]
    stop = {"end": "stop", "filter": "content_filter", "length": "length"}
    return {
        "id": "c1",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": stop[said["stop"]]}],
        "usage": {
            "prompt_tokens": said["prompt"],
            "completion_tokens": said["answer"],
            "prompt_tokens_details": {
                "cached_tokens": said["cached"],
                "cache_write_tokens": said["written"],
            },
            "completion_tokens_details": {"reasoning_tokens": said["thoughts"]},
        },
    }


def responses(said: Said) -> dict[str, Any]:
    """What OpenAI says in the Responses API."""
    link = {"type": "url_citation", "url": said["url"], "title": said["title"]}
    link |= {"start_index": 0, "end_index": said["end"]}
    part: dict[str, Any] = {"type": "output_text", "text": said["text"], "annotations": []}
    if said["links"]:
        part["annotations"].append(link)
    if said["refusal"]:
        part = {"type": "refusal", "refusal": said["refusal"]}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": [part]}
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed"}
    search["action"] = {"type": "search", "query": said["tool"]}
    stop = {"filter": "content_filter", "length": "max_output_tokens"}.get(said["stop"])
    return {
        "id": "resp_1",
        "object": "response",
        "model": "m",
        "status": "incomplete" if stop else "completed",
        "incomplete_details": {"reason": stop} if stop else None,
        "output": [search, item] if said["tool"] else [item],
        "usage": {
            "input_tokens": said["prompt"],
            "input_tokens_details": {
                "cached_tokens": said["cached"],
                "cache_write_tokens": said["written"],
            },
            "output_tokens": said["answer"],
            "output_tokens_details": {"reasoning_tokens": said["thoughts"]},
        },
    }


def messages(said: Said) -> dict[str, Any]:
    """What Claude says in the Messages API."""
    link = {"type": "web_search_result_location", "url": said["url"], "title": said["title"]}
    link |= {"cited_text": said["quote"], "encrypted_index": "Eo8BCio"}
    block = {"type": "text", "text": said["text"]}
    if said["links"]:
        block["citations"] = [link]
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search"}
    search["input"] = {"query": said["tool"]}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    stops = {"end": "end_turn", "filter": "refusal", "length": "max_tokens"}
    stop = "stop_sequence" if said["stop text"] else stops[said["stop"]]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [search, found, block] if said["tool"] else [block],
        "stop_reason": stop,
        "stop_sequence": said["stop text"],
        "usage": {
            "input_tokens": said["prompt"] - said["cached"] - said["written"],
            "cache_read_input_tokens": said["cached"],
            "cache_creation_input_tokens": said["written"],
            "output_tokens": said["answer"],
            "output_tokens_details": {"thinking_tokens": said["thoughts"]},
        },
    }


def gemini(said: Said) -> dict[str, Any]:
    """What Gemini says in `generateContent`."""
    words = said["text"].encode()[: said["end"]].decode()
    support = {"segment": {"startIndex": 0, "endIndex": said["end"], "text": words}}
    support["groundingChunkIndices"] = [0]
    grounding = {
        "groundingChunks": [{"web": {"uri": said["url"], "title": said["title"]}}],
        "groundingSupports": [support],
    }
    code = {"executableCode": {"language": "PYTHON", "code": said["tool"]}}
    result = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
    parts = [code, result] if said["tool"] else []
    stop = {"end": "STOP", "filter": "SAFETY", "length": "MAX_TOKENS"}[said["stop"]]
    candidate = {
        "content": {"role": "model", "parts": [*parts, {"text": said["text"]}]},
        "finishReason": stop,
    }
    if said["links"]:
        candidate["groundingMetadata"] = grounding
    return {
        "candidates": [candidate],
        "modelVersion": "m",
        "responseId": "r1",
        "usageMetadata": {
            "promptTokenCount": said["prompt"],
            "cachedContentTokenCount": said["cached"],
            "candidatesTokenCount": said["answer"] - said["thoughts"],
            "thoughtsTokenCount": said["thoughts"],
        },
    }


PROVIDERS = {"chat": chat, "responses": responses, "messages": messages, "gemini": gemini}
"""Whole answers, by dialect."""

# -- one answer, told again ----------------------------------------------------------------------


def told(speaks: str, client: str, body: Any) -> Any:
    """A provider's whole answer, as a client of another dialect gets it."""
    reader = DIALECTS[speaks].reader(stream=False, clock=SystemClock(), origin=Origin(), sent=0)
    head = AnswerHead(id="t" * 32, model="m", created=0, stream=False, handle=str)
    writer = DIALECTS[client].answer_writer(head)
    blocks = AnswerBlocks(ToolNames([]), lambda nth: f"call_{nth}")
    events = [*reader.feed(json.dumps(body).encode()), *reader.close()]
    ended = next(event for event in events if isinstance(event, TurnEnded))
    writer.write([*blocks.feed(events), *blocks.end(complete=True)])
    stop = stop_reason(ended, called=blocks.called)
    usage = ended.usage or Usage()
    return json.loads(writer.finish(AnswerEnd(stop=stop, stop_text=ended.stop_text, usage=usage)))


def differences(one: Any, other: Any) -> dict[str, Any]:
    """Where the second body says something else than the first, and what."""
    before, after = dict(_leaves(one)), dict(_leaves(other))
    return {path: value for path, value in after.items() if before.get(path, ...) != value}


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from _leaves(inner, f"{path}[]")
    else:
        yield path, value


# -- the tables ----------------------------------------------------------------------------------


class Row(NamedTuple):
    """One thing that answers say: what differs between two answers that say it differently."""

    name: str
    one: Said
    other: Said
    words: bool = False  # the value is a word of its dialect
    only: tuple[str, ...] = ()  # the dialects whose providers say it


REFUSED = {"refusal": "I cannot.", "links": False}
ROWS = (
    Row("link: address", {}, {"url": "https://b.example"}),
    Row("link: title", {}, {"title": "B"}),
    Row("link: words of the source", {}, {"quote": "So it is."}),
    Row("link: passage", {}, {"end": 4}),
    Row("refusal", REFUSED, REFUSED | {"refusal": "I will not."}),
    Row("filter", {}, {"stop": "filter"}, words=True),
    Row("limit of tokens", {}, {"stop": "length"}, words=True),
    Row("text that stopped it", {"stop text": "END"}, {"stop text": "STOP"}),
    Row("tokens: prompt", {}, {"prompt": 1311}),
    Row("tokens: answer", {}, {"answer": 301}),
    Row("tokens: thoughts", {}, {"thoughts": 251}),
    Row("tokens: read from a cache", {}, {"cached": 1001}),
    Row("tokens: written to a cache", {}, {"written": 111}),
    Row("a tool of the provider", {"tool": "one"}, {"tool": "two"}),
)
NOWHERE = "left out"


def answers() -> list[Sequence[str]]:
    """Where clients find what answers say."""
    return [row for one in ROWS for row in _lines(one)]


def _lines(row: Row) -> list[Sequence[str]]:
    """One line per provider's dialect that says such a thing; those that are alike in one."""
    made: dict[tuple[str, ...], list[str]] = {}
    for speaks, body in PROVIDERS.items():
        one, other = body({**SAID, **row.one}), body({**SAID, **row.other})
        if one == other:
            continue
        cells = tuple(
            ""
            if client == speaks
            else _cell(row, told(speaks, client, one), told(speaks, client, other))
            for client in DIALECTS
        )
        made.setdefault(cells, []).append(speaks)
    return _joined(row.name, made)


def _joined(name: str, made: Mapping[tuple[str, ...], list[str]]) -> list[Sequence[str]]:
    """The lines of a row: providers that are told alike stand in one."""
    lines: list[tuple[list[str], list[str]]] = []
    for cells, speakers in made.items():
        for others, merged in lines:
            if all(not a or not b or a == b for a, b in zip(merged, cells, strict=True)):
                others.extend(speakers)
                merged[:] = [a or b for a, b in zip(merged, cells, strict=True)]
                break
        else:
            lines.append(([*speakers], [*cells]))
    return [(name, ", ".join(speakers), *cells) for speakers, cells in lines]


def _cell(row: Row, one: Any, other: Any) -> str:
    found = differences(one, other)
    shown = [f"`{path}: {said}`" if row.words else f"`{path}`" for path, said in found.items()]
    return ", ".join(dict.fromkeys(shown)) or NOWHERE


ERRORS = (
    ("a wrong request", 400, {"message": "No."}),
    ("a full window", 400, {"message": "Too long.", "code": "context_length_exceeded"}),
    ("a filter", 400, {"message": "Not this.", "code": "content_filter"}),
    ("a wrong key", 401, {"message": "No key."}),
    ("nothing left to spend", 402, {"message": "Pay."}),
    ("no permission", 403, {"message": "Not you."}),
    ("no such model", 404, {"message": "Not here."}),
    ("too large", 413, {"message": "Too large."}),
    ("a rate limit", 429, {"message": "Slow down."}),
    ("a fault", 500, {"message": "Oops."}),
    ("an overload", 503, {"message": "Too busy."}),
)
"""Errors of a provider: what happened, the status, and what the body says."""


def errors() -> list[Sequence[str]]:
    """What clients are told of a provider's error."""
    made: list[Sequence[str]] = []
    for name, status, words in ERRORS:
        error = upstream_error(status, json.dumps({"error": words}).encode())
        bodies = [json.loads(dialect.upstream_error(error)) for dialect in DIALECTS.values()]
        made.append((name, f"{error.status}", *map(_error_words, bodies)))
    return made


def _error_words(body: Any) -> str:
    names = ("error.type", "error.code", "error.status")
    leaves = dict(_leaves(body))
    return ", ".join(f"`{leaves[name]}`" for name in names if isinstance(leaves.get(name), str))
