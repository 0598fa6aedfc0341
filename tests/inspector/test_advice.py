"""What to do about a failed request."""

import re
from pathlib import Path

import pytest

import thoughtline.gateway
from thoughtline.cli import COMMANDS
from thoughtline.inspector.advice import _BY_CODE, _BY_STATUS, _BY_WORDS, advice


@pytest.mark.parametrize(
    ("status", "code", "words", "expected"),
    [
        (401, "invalid_api_key", "", "access.clients"),
        (401, "", "Incorrect API key: insufficient_permissions", "does not accept the API key"),
        (400, "", "Invalid signature in thinking block", "did not accept a thought"),
        (429, "", "You exceeded your current quota", "billing page"),
        (429, "", "Rate limit reached", "wait a little"),
        (400, "", "This model's maximum context length is 8192", "too long"),
        (404, "", "The model `x` does not exist", "list of models"),
        (502, "", "the upstream broke off", "ended its answer early"),
        (599, "", "?", "ask again"),
        (418, "", "?", ""),
        (200, "", "quota", ""),
    ],
)
def test_advice(status, code, words, expected):
    given = advice(status, code, words)
    assert expected in given
    assert bool(given) == bool(expected)


def test_every_code_of_the_gateway_that_people_can_do_something_about_has_advice():
    folder = Path(thoughtline.gateway.__file__).parent
    text = "".join(
        file.read_text("utf-8") for file in (folder / "errors.py", folder / "proxy.py", folder / "hosts.py", folder / "auth.py")
    )  # fmt: skip
    codes = set(re.findall(r'^\s+"([a-z]+_[a-z_]+)",\n\s+\)', text, re.MULTILINE))
    codes |= set(re.findall(r', "([a-z]+_[a-z_]+)"\)', text))
    assert {"invalid_api_key", "unknown_upstream", "upstream_unreachable"} <= codes
    assert codes <= _BY_CODE.keys()


def test_every_command_that_is_named_exists():
    texts = " ".join([*_BY_CODE.values(), *_BY_WORDS.values(), *_BY_STATUS.values()])
    named = set(re.findall(r"`thoughtline (\w+)", texts))
    assert named and named <= COMMANDS.keys()
