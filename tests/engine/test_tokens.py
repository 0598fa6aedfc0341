"""The subject of a token, and everything that has none."""

import base64
import json

import pytest

from thoughtline.engine.tokens import token_subject
from thoughtline.testing.sims.tokens import ISSUER, make_token


def token(subject="alice", n=1, **claims):
    return make_token(b"of the provider", subject, iat=n, **claims)


def jwt(payload, head=b'{"alg":"none"}'):
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    parts = [base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in (head, raw)]
    return ".".join([*parts, "sig"])


def test_the_subject_of_a_token():
    assert token_subject(token("alice", n=1)) == token_subject(token("alice", n=2)) != ""
    assert token_subject(token("alice")) != token_subject(token("bob"))
    assert token_subject(token("alice", iss="other")) != token_subject(token("alice", iss=ISSUER))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sk-proj-0123",
        "a.b.c",
        "eyJ.eyJ.sig",
        jwt({"sub": "alice"}),  # without an expiry it is a key, and not renewed
        jwt({"exp": 1}),
        jwt({"exp": 1, "sub": ""}),
        jwt({"exp": 1, "sub": ["alice"]}),
        jwt([1]),
        jwt(b"\xff\xfe"),
        jwt(b"[" * 100_000),
        "eyJ" + "a" * 200_000 + "..",
    ],
)
def test_what_is_no_token_has_no_subject(text):
    assert token_subject(text) == ""


def test_issuer_and_subject_do_not_run_into_one_another():
    assert token_subject(jwt({"exp": 1, "iss": "a", "sub": "b c"})) != token_subject(
        jwt({"exp": 1, "iss": "a b", "sub": "c"})
    )
