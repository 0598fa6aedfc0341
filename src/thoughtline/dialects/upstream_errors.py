"""What a provider's error means, for a client that expects it in another dialect's words."""

import re
from enum import StrEnum
from typing import Any

from msgspec import Struct

from thoughtline.dialects import splice
from thoughtline.errors import Unreadable


class ErrorKind(StrEnum):
    """Kinds of errors that clients act upon."""

    INVALID = "invalid"
    CONTEXT = "context"  # the history is too long: clients make it shorter
    AUTHENTICATION = "authentication"
    PERMISSION = "permission"
    NOT_FOUND = "not_found"
    QUOTA = "quota"  # no money left: trying again does not help
    TOO_LARGE = "too_large"
    FILTERED = "filtered"  # what was asked is not answered: trying again does not help
    RATE_LIMIT = "rate_limit"  # trying again later helps
    OVERLOADED = "overloaded"
    SERVER = "server"


class UpstreamError(Struct, frozen=True, kw_only=True):
    """An error in no dialect's shape; the sentence is the provider's own."""

    status: int
    kind: ErrorKind
    message: str
    retry_after: float | None = None  # seconds


_CONTEXT = re.compile(
    r"context_length_exceeded|model_max_prompt_tokens_exceeded|maximum context length"
    r"|exceeds the context window|context window (?:is )?exceeded|prompt is too long"
    r"|too large for model context window|input token count .* exceeds|exceed(?:s|ed)? .*context",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient_quota|insufficient balance|billing|exceeded your current quota", re.IGNORECASE
)
_FILTERED = re.compile(
    r'"(?:code|type)"\s*:\s*"(?:content_filter|data_?inspection_?failed|content_policy_violation)"',
    re.IGNORECASE,
)
_RETRY_DELAY = re.compile(r'"retryDelay"\s*:\s*"([0-9]{1,6}(?:\.[0-9]{1,9})?)s"')
"""Where Google says when to come back."""
_KINDS = {
    401: ErrorKind.AUTHENTICATION,
    402: ErrorKind.QUOTA,
    403: ErrorKind.PERMISSION,
    404: ErrorKind.NOT_FOUND,
    413: ErrorKind.TOO_LARGE,
    429: ErrorKind.RATE_LIMIT,
    503: ErrorKind.OVERLOADED,
    529: ErrorKind.OVERLOADED,
}


def upstream_error(status: int, body: bytes, *, retry_after: float | None = None) -> UpstreamError:
    """Understand an error's body, in any of the shapes that providers use."""
    text = body.decode("utf-8", "replace").strip()
    if retry_after is None and (delay := _RETRY_DELAY.search(text)):
        retry_after = float(delay[1])
    message = error_text(body) or f"the provider answered {status}"
    return UpstreamError(
        status=status,
        kind=error_kind(status, text),
        message=message,
        retry_after=retry_after,
    )


def error_kind(status: int, text: str) -> ErrorKind:
    """What kind of error it is, by its status and its words."""
    if status in (400, 413, 422) and _CONTEXT.search(text):
        return ErrorKind.CONTEXT
    if status in (400, 403, 429) and _QUOTA.search(text):
        return ErrorKind.QUOTA
    if status in (400, 403) and _FILTERED.search(text):
        return ErrorKind.FILTERED
    return _KINDS.get(status, ErrorKind.SERVER if status >= 500 else ErrorKind.INVALID)


def error_under_200(words: str) -> UpstreamError:
    """Understand an error that came where an answer was expected: only its words say what it is."""
    kind = error_kind(400, words)
    if kind is ErrorKind.CONTEXT:
        return UpstreamError(status=400, kind=kind, message=words)
    if kind is ErrorKind.QUOTA:
        return UpstreamError(status=402, kind=kind, message=words)
    return UpstreamError(status=502, kind=ErrorKind.SERVER, message=words)


_WORDS = (
    *("error", "detail", "message", "msg", "param", "base_resp", "status_msg", "errors"),
    *("error_msg", "error_message", "errorMessage", "error_description", "description", "reason"),
)
"""Members in which providers have been seen to say what is wrong, the likeliest first."""
_DATA = ("{", "[", '"', "data:", "event:", "id:", "retry:", ":")
"""How JSON and streams of events begin, whole or cut."""
_MAX_DEPTH = 4
_MAX_WORDS = 2000


def error_words(value: Any, depth: int = 0) -> str:
    """The provider's sentence in an error of any shape; empty: there is none."""
    if isinstance(value, str):
        return value
    if depth > _MAX_DEPTH:
        return ""
    if isinstance(value, list):
        return error_words(value[0], depth + 1) if value else ""
    if not isinstance(value, dict):
        return ""
    found = (error_words(value[name], depth + 1) for name in _WORDS if name in value)
    return next((words for words in found if words), "")


def error_text(body: bytes) -> str:
    """What an error's body says is wrong: its sentence, or the beginning of the body as it is."""
    text = body.decode("utf-8", "replace").strip()
    return _message(text) or text[:_MAX_WORDS]


def unexpected_error(body: bytes) -> str:
    """What a body says is wrong that came where an answer was expected; empty: it says nothing.

    Only prose is told as it is: anything else may be a piece of an answer.
    """
    text = body.decode("utf-8", "replace").strip()
    return _message(text) or ("" if text.startswith(_DATA) else text[:_MAX_WORDS])


def _message(text: str) -> str:
    try:
        return error_words(splice.loads(text.removeprefix("data:").strip().encode()))
    except Unreadable:
        return ""
