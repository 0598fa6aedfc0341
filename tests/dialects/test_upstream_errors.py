import json

import pytest

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.upstream_errors import ErrorKind, upstream_error

TOO_LONG = "This model's maximum context length is 131072 tokens."
SHAPES = {
    "object": {"error": {"message": TOO_LONG, "code": "context_length_exceeded"}},
    "detail": {"detail": TOO_LONG},
    "base_resp": {"base_resp": {"status_code": 2013, "status_msg": TOO_LONG}},
    "string": TOO_LONG,
    "param": {"error": {"message": "", "param": TOO_LONG}},
    "list": [{"error": {"message": TOO_LONG}}],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_history_that_is_too_long_is_said_in_the_words_that_clients_act_upon(shape, dialect):
    error = upstream_error(400, json.dumps(SHAPES[shape]).encode())
    assert (error.kind, error.message) == (ErrorKind.CONTEXT, TOO_LONG)
    told = DIALECTS[dialect].upstream_error(error).decode()
    assert TOO_LONG in json.loads(told)["error"]["message"]
    expected = {"messages": "prompt is too long", "gemini": "INVALID_ARGUMENT"}
    assert expected.get(dialect, "context_length_exceeded") in told


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (401, "no", ErrorKind.AUTHENTICATION),
        (402, "no", ErrorKind.QUOTA),
        (403, "no", ErrorKind.PERMISSION),
        (404, "no", ErrorKind.NOT_FOUND),
        (413, "no", ErrorKind.TOO_LARGE),
        (429, "slow down", ErrorKind.RATE_LIMIT),
        (429, "You exceeded your current quota", ErrorKind.QUOTA),
        (500, "no", ErrorKind.SERVER),
        (503, "no", ErrorKind.OVERLOADED),
        (529, "no", ErrorKind.OVERLOADED),
        (422, "no", ErrorKind.INVALID),
    ],
)
def test_a_kind_follows_from_status_and_words(status, text, kind):
    error = upstream_error(status, text.encode())
    assert (error.kind, error.message, error.status) == (kind, text, status)


def test_an_error_without_words_says_its_status():
    assert "503" in upstream_error(503, b"").message
