"""A provider's error in the shape and in the words that clients of each API act upon."""

from typing import Any, NamedTuple

from thoughtline.dialects import splice
from thoughtline.dialects.upstream_errors import ErrorKind, UpstreamError


class _Names(NamedTuple):
    """What one kind of error is called in each API."""

    openai_type: str = "invalid_request_error"
    openai_code: str | None = None
    anthropic_type: str = "invalid_request_error"
    google_status: str = "INVALID_ARGUMENT"


_OPENAI, _GOOGLE = _Names().openai_type, _Names().google_status
_NAMES = {
    ErrorKind.INVALID: _Names(),
    ErrorKind.CONTEXT: _Names(openai_code="context_length_exceeded"),
    ErrorKind.AUTHENTICATION: _Names(
        _OPENAI, "invalid_api_key", "authentication_error", "UNAUTHENTICATED"
    ),
    ErrorKind.PERMISSION: _Names(_OPENAI, None, "permission_error", "PERMISSION_DENIED"),
    ErrorKind.NOT_FOUND: _Names(_OPENAI, "model_not_found", "not_found_error", "NOT_FOUND"),
    ErrorKind.QUOTA: _Names(
        "insufficient_quota", "insufficient_quota", "billing_error", "RESOURCE_EXHAUSTED"
    ),
    ErrorKind.TOO_LARGE: _Names(_OPENAI, None, "request_too_large", _GOOGLE),
    ErrorKind.FILTERED: _Names(openai_code="content_filter"),
    ErrorKind.RATE_LIMIT: _Names(
        "rate_limit_error", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"
    ),
    ErrorKind.OVERLOADED: _Names("server_error", None, "overloaded_error", "UNAVAILABLE"),
    ErrorKind.SERVER: _Names("server_error", None, "api_error", "INTERNAL"),
}
_TOO_LONG = "prompt is too long"
"""The words by which Messages clients know that they must make the history shorter."""


def openai_error(error: UpstreamError) -> bytes:
    """The body of an error, for clients of Chat Completions and Responses."""
    names = _NAMES[error.kind]
    return openai_body(error.message, names.openai_type, names.openai_code)


def openai_body(message: str, type: str, code: str | None, param: str | None = None) -> bytes:
    """An error as Chat Completions and Responses spell it."""
    error = {"message": message, "type": type, "param": param, "code": code}
    return splice.dumps({"error": error})


def anthropic_error(error: UpstreamError) -> bytes:
    """The body of an error, for Messages clients."""
    message = error.message
    if error.kind is ErrorKind.CONTEXT and _TOO_LONG not in message.lower():
        message = f"{_TOO_LONG}: {message}"
    said = {"type": _NAMES[error.kind].anthropic_type, "message": message}
    return splice.dumps({"type": "error", "error": said})


def google_error(error: UpstreamError) -> bytes:
    """The body of an error, for `generateContent` clients."""
    status = _NAMES[error.kind].google_status
    said: dict[str, Any] = {"code": error.status, "message": error.message, "status": status}
    if error.retry_after is not None:
        info = {"@type": "type.googleapis.com/google.rpc.RetryInfo"}
        said["details"] = [info | {"retryDelay": f"{error.retry_after:g}s"}]
    return splice.dumps({"error": said})
