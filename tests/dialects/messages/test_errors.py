import json

from thoughtline.dialects.messages.errors import error_body
from thoughtline.dialects.upstream_errors import ErrorKind, UpstreamError


def test_an_error_has_its_type():
    error = UpstreamError(status=529, kind=ErrorKind.OVERLOADED, message="Busy.")
    told = {"type": "error", "error": {"type": "overloaded_error", "message": "Busy."}}
    assert json.loads(error_body(error)) == told


def test_the_words_that_clients_look_for_are_not_said_twice():
    message = "Prompt is too long: 210000 tokens"
    error = UpstreamError(status=400, kind=ErrorKind.CONTEXT, message=message)
    assert json.loads(error_body(error))["error"]["message"] == message
