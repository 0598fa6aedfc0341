"""Errors in the shape that `generateContent` clients expect."""

from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.upstream_errors import ErrorKind, UpstreamError

_STATUSES = {
    ErrorKind.AUTHENTICATION: "UNAUTHENTICATED",
    ErrorKind.PERMISSION: "PERMISSION_DENIED",
    ErrorKind.NOT_FOUND: "NOT_FOUND",
    ErrorKind.QUOTA: "RESOURCE_EXHAUSTED",
    ErrorKind.RATE_LIMIT: "RESOURCE_EXHAUSTED",
    ErrorKind.OVERLOADED: "UNAVAILABLE",
    ErrorKind.SERVER: "INTERNAL",
}


def error_body(error: UpstreamError) -> bytes:
    """Return the body of an error."""
    said: dict[str, Any] = {
        "code": error.status,
        "message": error.message,
        "status": _STATUSES.get(error.kind, "INVALID_ARGUMENT"),
    }
    if error.retry_after is not None:
        info = {"@type": "type.googleapis.com/google.rpc.RetryInfo"}
        said["details"] = [info | {"retryDelay": f"{error.retry_after:g}s"}]
    return splice.dumps({"error": said})
