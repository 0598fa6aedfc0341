"""Tokens of simulated log-ins."""

import pytest

from support.clients import client
from thoughtline.testing import simulator
from thoughtline.testing.sims.tokens import make_token, token_account

SECRET = b"of the provider"


def test_a_token_names_its_subject():
    first, next_one = (make_token(SECRET, "alice", iat=n) for n in (1, 2))
    assert first != next_one
    assert token_account(SECRET, first) == token_account(SECRET, next_one) == "alice"


@pytest.mark.parametrize("token", ["", "a key", "a.b.c", make_token(b"another secret", "alice")])
def test_what_is_not_signed_names_nobody(token):
    assert token_account(SECRET, token) == ""


def test_a_simulator_takes_the_subject_for_the_account_and_refuses_forgeries():
    sim = simulator("kimi-k3", token_secret=SECRET)
    talker = client("chat", sim, model="kimi-k3", key=make_token(SECRET, "alice", iat=1))
    talker.talk(2)
    talker.key = make_token(SECRET, "alice", iat=2)
    assert talker.turn().status == 200
    assert sim.requests[-1].audit.clean
    assert {record.account for record in sim.requests} == {"alice"}
    talker.key = make_token(b"another secret", "alice")
    assert talker.turn().status == 401


def test_a_header_may_name_the_account():
    sim = simulator("codex", account_header="chatgpt-account-id")
    sim.begin(sim.now.request._replace(headers={"authorization": "Bearer a"}))
    assert sim.now.account == "a"
    named = {"authorization": "Bearer b", "chatgpt-account-id": "acct"}
    sim.begin(sim.now.request._replace(headers=named))
    assert sim.now.account == "acct"
    sim.begin(sim.now.request._replace(headers={"chatgpt-account-id": "acct"}))
    assert sim.now.account == ""
