"""What names an account at a provider beside its credential, which an OAuth client renews.

A name counts only where the provider refuses a credential that does not belong to it: otherwise
anybody could claim to be somebody else.
"""

from collections.abc import Mapping

ACCOUNT_HEADERS: Mapping[str, str] = {"codex": "chatgpt-account-id"}
"""Policy → the header that names the account, and that the provider holds against the token."""

_UNCHECKED = frozenset({"generic", "vllm", "sglang", "llamacpp", "ollama", "lmstudio"})
"""Policies of servers that may accept any credential."""


def checks_tokens(policy: str) -> bool:
    """Return whether a provider refuses tokens that it did not issue."""
    return policy not in _UNCHECKED
