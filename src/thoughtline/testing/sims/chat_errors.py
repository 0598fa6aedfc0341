"""How each Chat Completions provider says no: the wording of type errors and the shape of bodies.

A `Refusal` is what went wrong; a `Complaint` words a `Flaw` of the request's shape as a refusal;
a `Shape` turns a refusal into the JSON that the provider answers with. Rows of `chat_rows` choose
one of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from thoughtline.testing.sims.chat_view import Flaw
from thoughtline.testing.sims.values import encode


class Refusal(NamedTuple):
    """Why a request is rejected, before it has a shape."""

    status: int
    message: Any
    """A sentence, or the structured detail that some providers put in its place."""
    kind: str | None = None
    code: str | int | None = None
    param: str | None = None


Complaint: TypeAlias = Callable[[Flaw], Refusal]
Shape: TypeAlias = Callable[[Refusal], Any]

_KINDS = {
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
}


def kind_of(refusal: Refusal) -> str:
    """The error type, where the refusal does not name one."""
    if refusal.kind is not None:
        return refusal.kind
    return _KINDS.get(refusal.status, "invalid_request_error")


# Complaints


def _dotted(flaw: Flaw) -> str:
    return ".".join(map(str, flaw.path))


def _indexed(flaw: Flaw) -> str:
    text = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in flaw.path)
    return text.removeprefix(".")


def _named(value: Any) -> str:
    names = {str: "a string", bool: "a boolean", int: "an integer", float: "a decimal"}
    names |= {list: "an array", dict: "an object", type(None): "null"}
    return names.get(type(value), "something else")


def openai_complaint(flaw: Flaw) -> Refusal:
    """As api.openai.com words it, and most who imitate it."""
    path = _indexed(flaw)
    if flaw.kind == "json":
        text = "We could not parse the JSON body of your request. The API expects a JSON payload."
        return Refusal(400, text)
    if flaw.kind == "missing":
        text = f"Missing required parameter: '{path}'."
        return Refusal(400, text, code="missing_required_parameter", param=path)
    if flaw.kind == "role":
        text = f"Invalid value: '{flaw.got}'. Supported values are: {flaw.expected}."
        return Refusal(400, text, code="invalid_value", param=path)
    text = f"Invalid type for '{path}': expected {flaw.expected}, but got {_named(flaw.got)}"
    return Refusal(400, f"{text} instead.", code="invalid_type", param=path)


def serde_complaint(flaw: Flaw) -> Refusal:
    """As a Rust server words it: DeepSeek (cc-switch#3330, forgecode#2008, deepseek4j#41)."""
    where = f"at line 1 column {flaw.size}"
    if flaw.kind == "json":
        return Refusal(400, f"Failed to parse the request body as JSON: {flaw.expected}")
    if flaw.kind == "missing":
        owner = _indexed(flaw._replace(path=flaw.path[:-1]))
        said = f"{owner + ': ' if owner else ''}missing field `{flaw.path[-1]}`"
    elif flaw.kind == "role":
        roles = flaw.expected.replace("'", "`")
        said = f"{_indexed(flaw)}: unknown variant `{flaw.got}`, expected one of {roles}"
    else:
        kinds = {list: "sequence", dict: "map", type(None): "null", bool: "boolean"}
        kinds |= {str: "string", int: "integer", float: "floating point"}
        got = kinds.get(type(flaw.got), "unknown")
        said = f"{_indexed(flaw)}: invalid type: {got}, expected {flaw.expected}"
    return Refusal(400, f"Failed to deserialize the JSON body into the target type: {said} {where}")


def joi_complaint(flaw: Flaw) -> Refusal:
    """As Groq and Cerebras word it: the path with dots, then the broken rule."""
    if flaw.kind == "json":
        return Refusal(400, f"invalid JSON: {flaw.expected}", code="wrong_api_format")
    said = {
        "missing": "property is missing",
        "role": f"discriminator property 'role' has invalid value, expected {flaw.expected}",
    }.get(flaw.kind, f"value must be {flaw.expected}")
    return Refusal(400, f"'{_dotted(flaw)}' : {said}", code="wrong_api_format")


def pydantic_complaint(flaw: Flaw) -> Refusal:
    """As pydantic words it: a list of details, status 422 (Mistral)."""
    kinds = {"json": "json_invalid", "missing": "missing", "role": "union_tag_invalid"}
    texts = {"json": "JSON decode error", "missing": "Field required"}
    said = texts.get(flaw.kind, f"Input should be {flaw.expected}")
    kind = kinds.get(flaw.kind, "type_error")
    return Refusal(422, {"detail": [detail(kind, flaw.path, said, flaw.got)]})


def vllm_complaint(flaw: Flaw) -> Refusal:
    """The same details, but status 400 and as text (vLLM)."""
    details = pydantic_complaint(flaw).message["detail"]
    return Refusal(400, f"{len(details)} validation error: {details}")


def detail(kind: str, path: tuple[str | int, ...], text: str, got: Any) -> dict[str, Any]:
    """One entry of a pydantic error."""
    return {"type": kind, "loc": ["body", *path], "msg": text, "input": got}


def glm_complaint(flaw: Flaw) -> Refusal:
    """Z.ai says no more than that (continue#13261, cline#9939)."""
    if flaw.path[:1] == ("messages",):
        text = "The messages parameter is illegal. Please check the documentation."
        return Refusal(400, text, code="1214")
    return Refusal(400, "Invalid API parameter, please check the documentation.", code="1210")


def minimax_complaint(flaw: Flaw) -> Refusal:
    """MiniMax ends every sentence with its code (CodexPlusPlus#267)."""
    if flaw.kind == "role":
        return Refusal(
            400, f"invalid params, chat content has invalid message role: {flaw.got} (2013)"
        )
    return Refusal(400, "invalid params, invalid chat setting (2013)")


# Shapes


def openai_shape(refusal: Refusal) -> Any:
    """`{"error": {message, type, param, code}}`."""
    return {
        "error": {
            "message": refusal.message,
            "type": kind_of(refusal),
            "param": refusal.param,
            "code": refusal.code,
        }
    }


def deepseek_shape(refusal: Refusal) -> Any:
    """The same; `code` repeats the type (oai-compatible-copilot#215)."""
    return openai_shape(refusal._replace(code=refusal.code or kind_of(refusal)))


def short_shape(refusal: Refusal) -> Any:
    """Only message and type: Kimi (FastGPT#6357), Groq (gptel#774)."""
    return {"error": {"message": refusal.message, "type": kind_of(refusal)}}


def mimo_shape(refusal: Refusal) -> Any:
    """The text is in `param` (chatbox#3716)."""
    said = {400: "Param Incorrect", 401: "Invalid API Key"}.get(refusal.status, refusal.message)
    param = refusal.message if refusal.status == 400 else ""
    return {"error": {"code": str(refusal.status), "message": said, "param": param, "type": ""}}


def glm_shape(refusal: Refusal) -> Any:
    """Code and message, the code as text (continue#13261)."""
    code = refusal.code or {401: "1000", 404: "1211", 429: "1302"}.get(refusal.status, "1234")
    return {"error": {"code": str(code), "message": refusal.message}}


def minimax_shape(refusal: Refusal) -> Any:
    """An envelope of its own (CodexPlusPlus#267)."""
    kind = "bad_request_error" if refusal.status == 400 else kind_of(refusal)
    inner = {"type": kind, "message": refusal.message, "http_code": str(refusal.status)}
    return {"type": "error", "error": inner, "request_id": "0660b098aa1e9dd5a6773a48c479fc89"}


def flat_shape(refusal: Refusal) -> Any:
    """No envelope: Cerebras (kilocode#10375)."""
    wrong = refusal.status == 400
    return {
        "message": refusal.message,
        "type": kind_of(refusal),
        "param": "validation_error" if wrong else refusal.param,
        "code": "wrong_api_format" if wrong else refusal.code,
    }


def mistral_shape(refusal: Refusal) -> Any:
    """Flat, with `object` (eca#231, zed#53034)."""
    body = {
        "object": "error",
        "message": refusal.message,
        "type": kind_of(refusal),
        "param": refusal.param,
        "code": refusal.code,
    }
    return body if refusal.status == 422 else {**body, "raw_status_code": refusal.status}


def vllm_shape(refusal: Refusal) -> Any:
    """The type is the name of an exception, the code is the status."""
    kinds = {400: "BadRequestError", 401: "Unauthorized", 404: "NotFoundError"}
    kind = refusal.kind or kinds.get(refusal.status, "InternalServerError")
    error = {"message": refusal.message, "type": kind, "param": refusal.param}
    return {"error": {**error, "code": refusal.status}}


def openrouter_shape(refusal: Refusal) -> Any:
    """An upstream's refusal is JSON inside `metadata.raw` (nagobot#21, OmniRoute#3044)."""
    if refusal.kind is None:
        return {"error": {"message": refusal.message, "code": refusal.status}}
    metadata = {
        "raw": encode(refusal.message).decode(),
        "provider_name": refusal.kind,
        "is_byok": False,
    }
    error = {"message": "Provider returned error", "code": refusal.status, "metadata": metadata}
    return {"error": error, "user_id": "user_2smDyoir6cVtTliFhxZDiolmcWC"}


def google_shape(refusal: Refusal) -> Any:
    """An array around the error, on the OpenAI-compatible endpoint only (openclaude#431)."""
    statuses = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND"}
    statuses |= {429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
    status = statuses.get(refusal.status, "INTERNAL")
    return [{"error": {"code": refusal.status, "message": refusal.message, "status": status}}]
