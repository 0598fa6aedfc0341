import json

from thoughtline.dialects.chat.errors import error_body
from thoughtline.dialects.upstream_errors import ErrorKind, UpstreamError


def test_an_error_has_a_type_and_a_code():
    error = UpstreamError(status=429, kind=ErrorKind.RATE_LIMIT, message="Slow down.")
    assert json.loads(error_body(error))["error"] == {
        "message": "Slow down.",
        "type": "rate_limit_error",
        "param": None,
        "code": "rate_limit_exceeded",
    }
