import json

from thoughtline.dialects.gemini.errors import error_body
from thoughtline.dialects.upstream_errors import ErrorKind, UpstreamError


def test_an_error_says_when_to_try_again():
    error = UpstreamError(
        status=429, kind=ErrorKind.RATE_LIMIT, message="Slow down.", retry_after=1.5
    )
    told = json.loads(error_body(error))["error"]
    assert (told["code"], told["status"]) == (429, "RESOURCE_EXHAUSTED")
    assert told["details"][0]["retryDelay"] == "1.5s"
