"""Errors in the shape that Chat Completions clients expect."""

from thoughtline.dialects import splice
from thoughtline.dialects.upstream_errors import ErrorKind, UpstreamError

_CODES = {
    ErrorKind.CONTEXT: "context_length_exceeded",
    ErrorKind.QUOTA: "insufficient_quota",
    ErrorKind.RATE_LIMIT: "rate_limit_exceeded",
    ErrorKind.AUTHENTICATION: "invalid_api_key",
    ErrorKind.NOT_FOUND: "model_not_found",
}
_TYPES = {
    ErrorKind.QUOTA: "insufficient_quota",
    ErrorKind.RATE_LIMIT: "rate_limit_error",
    ErrorKind.SERVER: "server_error",
    ErrorKind.OVERLOADED: "server_error",
}


def error_body(error: UpstreamError) -> bytes:
    """Return the body of an error."""
    kind = _TYPES.get(error.kind, "invalid_request_error")
    code = _CODES.get(error.kind)
    return splice.dumps(
        {"error": {"message": error.message, "type": kind, "param": None, "code": code}}
    )
