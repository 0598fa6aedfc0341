"""Whose names count as an account."""

import pytest

from thoughtline.providers.accounts import ACCOUNT_HEADERS, checks_tokens
from thoughtline.providers.catalogue import infer_policy
from thoughtline.providers.contracts import policy_names
from thoughtline.providers.known_providers import PROVIDERS


def policy_of(known):
    return known.policy or infer_policy(known.base_url)


@pytest.mark.parametrize(
    "known",
    [p for p in PROVIDERS if p.base_url.startswith("https:")],
    ids=lambda known: known.name,
)
def test_providers_that_are_known_by_name_check_their_tokens(known):
    shared = policy_of(known) in ("generic", "ollama")  # with strangers, and with engines
    assert checks_tokens(policy_of(known)) is not shared


@pytest.mark.parametrize("policy", ["vllm", "sglang", "llamacpp", "ollama", "lmstudio", "generic"])
def test_engines_and_strangers_may_accept_anything(policy):
    assert policy in policy_names()
    assert not checks_tokens(policy)


def test_a_header_names_an_account_at_its_own_provider():
    assert ACCOUNT_HEADERS == {"codex": "chatgpt-account-id"}
    assert set(ACCOUNT_HEADERS) <= set(policy_names())
