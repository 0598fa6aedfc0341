"""Errors in the shape and in the words that Messages clients act upon."""

from thoughtline.dialects import splice
from thoughtline.dialects.upstream_errors import ErrorKind, UpstreamError

_TYPES = {
    ErrorKind.AUTHENTICATION: "authentication_error",
    ErrorKind.PERMISSION: "permission_error",
    ErrorKind.NOT_FOUND: "not_found_error",
    ErrorKind.QUOTA: "billing_error",
    ErrorKind.TOO_LARGE: "request_too_large",
    ErrorKind.RATE_LIMIT: "rate_limit_error",
    ErrorKind.OVERLOADED: "overloaded_error",
    ErrorKind.SERVER: "api_error",
}
_TOO_LONG = "prompt is too long"
"""The words by which clients know that they must make the history shorter."""


def error_body(error: UpstreamError) -> bytes:
    """Return the body of an error."""
    message = error.message
    if error.kind is ErrorKind.CONTEXT and _TOO_LONG not in message.lower():
        message = f"{_TOO_LONG}: {message}"
    said = {"type": _TYPES.get(error.kind, "invalid_request_error"), "message": message}
    return splice.dumps({"type": "error", "error": said})
