import json

import pytest

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.error_bodies import anthropic_error, google_error, openai_error
from thoughtline.dialects.upstream_errors import ErrorKind, UpstreamError


@pytest.mark.parametrize("kind", ErrorKind)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_kind_of_error_has_a_body(dialect, kind):
    error = UpstreamError(status=400, kind=kind, message="No.")
    assert json.loads(DIALECTS[dialect].upstream_error(error))["error"]["message"].endswith("No.")


def test_an_error_has_a_type_and_a_code():
    error = UpstreamError(status=429, kind=ErrorKind.RATE_LIMIT, message="Slow down.")
    assert json.loads(openai_error(error))["error"] == {
        "message": "Slow down.",
        "type": "rate_limit_error",
        "param": None,
        "code": "rate_limit_exceeded",
    }


def test_an_error_says_when_to_try_again():
    error = UpstreamError(
        status=429, kind=ErrorKind.RATE_LIMIT, message="Slow down.", retry_after=1.5
    )
    told = json.loads(google_error(error))["error"]
    assert (told["code"], told["status"]) == (429, "RESOURCE_EXHAUSTED")
    assert told["details"][0]["retryDelay"] == "1.5s"


def test_an_error_has_its_type():
    error = UpstreamError(status=529, kind=ErrorKind.OVERLOADED, message="Busy.")
    told = {"type": "error", "error": {"type": "overloaded_error", "message": "Busy."}}
    assert json.loads(anthropic_error(error)) == told


def test_the_words_that_clients_look_for_are_not_said_twice():
    message = "Prompt is too long: 210000 tokens"
    error = UpstreamError(status=400, kind=ErrorKind.CONTEXT, message=message)
    assert json.loads(anthropic_error(error))["error"]["message"] == message
