"""Odd shapes of Gemini: pure functions over the parts to be made, or over chunks and bodies.

`PARTS` add what the server does by itself, `CHUNKS` leave parts as they are. The last of each table
change what a client sees, or cannot be read by every client: only where a test names them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

from thoughtline.testing.sims.oddities import Oddity
from thoughtline.testing.sims.spelling import Fragment

Part = dict[str, Any]
Answers = list[dict[str, Any]]
QUERY = "$query"
"""Under this name an oddity finds the query of a request, beside the members of its body."""
UNSIGNED = "unsigned"
"""Stands for a signature that is still to be made."""
_NUMBERS = {"STOP": 1, "MAX_TOKENS": 2, "SAFETY": 3, "UNEXPECTED_TOOL_CALL": 12}


class Made(NamedTuple):
    """One part of an answer."""

    part: Part
    signature: str = ""
    slot: str = ""
    """Where it is signed: `text`, or `call:0`."""


def code_parts(made: list[Made], _dice: Random) -> list[Made]:
    """Code that the server has run, signed, and what came of it."""
    code = {"executableCode": {"language": "PYTHON", "code": "print(1 + 1)\n"}}
    result = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2\n"}}
    at = next((n for n, one in enumerate(made) if not one.part.get("thought")), len(made))
    return [*made[:at], Made(code, UNSIGNED, "text"), Made(result), *made[at:]]


def signed_parts(made: list[Made], _dice: Random) -> list[Made]:
    """Every part has a signature, thoughts and texts too."""
    return [one if one.signature else Made(one.part, UNSIGNED, _slot(made, one)) for one in made]


def _slot(made: list[Made], one: Made) -> str:
    if "functionCall" not in one.part:
        return "text"
    calls = [other for other in made if "functionCall" in other.part]
    return f"call:{[id(other) for other in calls].index(id(one))}"


def _runs_code(body: Mapping[str, Any]) -> bool:
    return any("codeExecution" in tool for tool in body.get("tools") or ())


def _searches(body: Mapping[str, Any]) -> bool:
    return any("googleSearch" in tool for tool in body.get("tools") or ())


PARTS: Mapping[str, Oddity] = {
    "code_parts": Oddity(code_parts, _runs_code),
    "signed_parts": Oddity(signed_parts),
}


def _candidates(answers: Answers, change: Callable[[Part], Part]) -> Answers:
    return [
        {**one, "candidates": [change(candidate) for candidate in one["candidates"]]}
        if "candidates" in one
        else one
        for one in answers
    ]


def signature_on_text(answers: Answers, _dice: Random) -> Answers:
    """The signature stands on the last piece of a text instead of behind it."""
    out: Answers = []
    for answer in answers:
        part = _only_part(answer)
        before = _only_part(out[-1]) if out else {}
        joins = part.get("text") == "" and "thoughtSignature" in part and set(before) == {"text"}
        if joins:
            joined = {**before, "thoughtSignature": part["thoughtSignature"]}
            [candidate] = answer["candidates"]
            content = {**candidate["content"], "parts": [joined]}
            out[-1] = {**answer, "candidates": [{**candidate, "content": content}]}
        else:
            out.append(answer)
    return out


def _parts(answer: Part) -> list[Part]:
    return [
        part
        for one in answer.get("candidates", ())
        for part in one.get("content", {}).get("parts", ())
    ]


def _only_part(answer: Part) -> Part:
    parts = _parts(answer)
    return parts[0] if len(parts) == 1 else {}


def empty_end(answers: Answers, dice: Random) -> Answers:
    """The end comes by itself, with an empty content or with none."""
    if len(answers) == 1:
        return answers
    *rest, last = answers
    [candidate] = last["candidates"]
    content: Part = dice.choice(({"content": {"role": "model"}}, {"content": {}}, {}))
    end = {**content, "finishReason": candidate["finishReason"], "index": 0}
    went_on = {name: one for name, one in candidate.items() if name != "finishReason"}
    return [*rest, {**last, "candidates": [went_on]}, {**last, "candidates": [end]}]


def two_ends(answers: Answers, _dice: Random) -> Answers:
    """The end is said before the last part as well (code execution)."""
    kinds = [_kind(_only_part(answer)) for answer in answers]
    at = next((n for n, kind in enumerate(kinds[1:]) if kind != kinds[n]), None)
    if at is None:
        return answers
    early = _candidates([answers[at]], lambda one: {**one, "finishReason": "STOP"})
    return [*answers[:at], *early, *answers[at + 1 :]]


def _kind(part: Part) -> tuple[bool, bool]:
    return "functionCall" in part, bool(part.get("thought"))


def usage_first(answers: Answers, _dice: Random) -> Answers:
    """A chunk that only counts the prompt."""
    if len(answers) == 1:
        return answers
    kept = {name: one for name, one in answers[0].items() if name != "candidates"}
    counted = kept["usageMetadata"]["promptTokenCount"]
    usage = {"promptTokenCount": counted, "totalTokenCount": counted}
    return [{**kept, "usageMetadata": usage}, *answers]


def late_counts(answers: Answers, _dice: Random) -> Answers:
    """Only the last chunk counts what was written."""
    names = ("candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount")

    def without(answer: Part) -> Part:
        usage = answer["usageMetadata"]
        return {**answer, "usageMetadata": {k: v for k, v in usage.items() if k not in names}}

    return [*map(without, answers[:-1]), answers[-1]]


def usage_details(answers: Answers, _dice: Random) -> Answers:
    """Tokens by modality, and which kind of traffic they were."""
    details = [{"modality": "TEXT", "tokenCount": 10}]
    more = {
        "promptTokensDetails": details,
        "trafficType": "ON_DEMAND",
        "toolUsePromptTokenCount": 0,
    }
    return [{**one, "usageMetadata": {**one["usageMetadata"], **more}} for one in answers]


def ratings(answers: Answers, _dice: Random) -> Answers:
    """How safe the answer and the prompt are, and how likely."""
    rated = [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}]
    first, *rest = _candidates(
        answers, lambda one: {**one, "safetyRatings": rated, "avgLogprobs": -0.25}
    )
    return [{**first, "promptFeedback": {"safetyRatings": rated}}, *rest]


def grounding(answers: Answers, _dice: Random) -> Answers:
    """Where an answer comes from."""
    found = {
        "webSearchQueries": ["weather"],
        "searchEntryPoint": {"renderedContent": "<div>weather</div>"},
        "groundingChunks": [{"web": {"uri": "https://example.com/", "title": "example.com"}}],
        "groundingSupports": [
            {"segment": {"endIndex": 4, "text": "  Al"}, "groundingChunkIndices": [0]}
        ],
    }
    *rest, last = answers
    return [*rest, *_candidates([last], lambda one: {**one, "groundingMetadata": found})]


def numbers(answers: Answers, _dice: Random) -> Answers:
    """Enumerations are numbers."""

    def numbered(candidate: Part) -> Part:
        reason = candidate.get("finishReason")
        return {**candidate, "finishReason": _NUMBERS[reason]} if reason else candidate

    return _candidates(answers, numbered)


def snake_case(answers: Answers, _dice: Random) -> Answers:
    """Names as the protocol's own definition writes them."""
    return [_snake(one) for one in answers]


def _snake(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", name): _snake(one)
            for name, one in value.items()
        }
    return value if isinstance(value, Fragment | str) else _listed(value)


def _listed(value: Any) -> Any:
    return [_snake(one) for one in value] if isinstance(value, list) else value


def unexpected_call(answers: Answers, _dice: Random) -> Answers:
    """The end is an error, although the call is complete and signed."""
    if not any("functionCall" in part for answer in answers for part in _parts(answer)):
        return answers
    reason = {"finishReason": "UNEXPECTED_TOOL_CALL", "finishMessage": "Model tried to call"}
    return _candidates(answers, lambda one: {**one, **reason} if "finishReason" in one else one)


def blocked(answers: Answers, _dice: Random) -> Answers:
    """The prompt is not answered at all."""
    kept = {name: one for name, one in answers[-1].items() if name != "candidates"}
    return [{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **kept}]


CHUNKS: Mapping[str, Oddity] = {
    "signature_on_text": Oddity(signature_on_text),
    "empty_end": Oddity(empty_end),
    "two_ends": Oddity(two_ends, _runs_code),
    "ratings": Oddity(ratings),
    "grounding": Oddity(grounding, _searches),
    "late_counts": Oddity(late_counts),
    "usage_details": Oddity(usage_details),
    "usage_first": Oddity(usage_first),
    "unexpected_call": Oddity(unexpected_call),
    "blocked": Oddity(blocked),
    "numbers": Oddity(numbers, lambda body: "enum-encoding=int" in str(body.get(QUERY))),
    "snake_case": Oddity(snake_case),
}

_OWN = ("code_parts", "two_ends", "grounding", "ratings", "empty_end", "late_counts", "numbers")
EMITS: Mapping[str, tuple[str, ...]] = {
    "gemini": (*_OWN, "usage_details"),
    "gemini-vertex": (*_OWN, "usage_details", "usage_first", "signature_on_text"),
}
"""What each provider's answers have."""
