"""What a provider's error means, for a client that expects it in another dialect's words."""

import re
from enum import StrEnum
from typing import Any

from msgspec import Struct

from thoughtline.dialects import splice
from thoughtline.dialects.values import mapping, string
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
    message = _message(text) or text[:2000] or f"the provider answered {status}"
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
    return _KINDS.get(status, ErrorKind.SERVER if status >= 500 else ErrorKind.INVALID)


def _message(text: str) -> str:
    try:
        value: Any = splice.loads(text.removeprefix("data:").strip().encode())
    except Unreadable:
        return ""
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, str):
        return value
    document = mapping(value)
    error = document.get("error", document.get("detail"))
    if isinstance(error, str):
        return error
    inner, base = mapping(error), mapping(document.get("base_resp"))
    found = (inner.get("message"), inner.get("param"), base.get("status_msg"))
    return next((one for one in map(string, (*found, document.get("message"))) if one), "")
