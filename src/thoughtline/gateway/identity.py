"""Who a client is where its credential changes: the account behind a token that is renewed.

A token's subject is read and not verified, because only the provider can do that. So it counts
only where the provider gets this very token and nothing else to go by, and refuses a forged one:
then a forger gets nothing back (docs/adr/0004).
"""

from msgspec import Struct

from thoughtline.engine.endpoints import Upstream
from thoughtline.engine.tokens import token_subject
from thoughtline.gateway.asgi import RawHeaders
from thoughtline.gateway.credentials import CREDENTIALS, is_secret
from thoughtline.providers.accounts import ACCOUNT_HEADERS, checks_tokens
from thoughtline.providers.catalogue import infer_policy

_HEADERS = {name.encode(): name for name in ACCOUNT_HEADERS.values()}


class Claims(Struct, frozen=True, kw_only=True):
    """What a request says about its account, beside its only credential."""

    subject: str = ""
    headers: tuple[tuple[str, str], ...] = ()

    def names(self, upstream: Upstream) -> tuple[str, ...]:
        """What names the account at this upstream; empty: the credential does.

        An upstream with a key of its own, or with a configured credential, or that is not the
        client's provider, does not see the client's token, and what stands at another host than a
        provider's own may take any.
        """
        unseen = upstream.key or upstream.foreign or _replaces(upstream)
        if unseen or upstream.identity == "credential":
            return ()
        policy = upstream.policy_name
        at_home = checks_tokens(policy) and checks_tokens(infer_policy(upstream.base_url))
        if not at_home and upstream.identity != "token":
            return ()
        subject = self.subject
        account = dict(self.headers).get(ACCOUNT_HEADERS.get(policy, ""), "")
        return (policy, subject, account) if subject or account else ()


def _replaces(upstream: Upstream) -> bool:
    """Whether an upstream's configured headers stand for what a client says about itself."""
    names = (name.lower().encode() for name in upstream.headers)
    return any(name in CREDENTIALS or name in _HEADERS or is_secret(name) for name in names)


def read_claims(credential: str, headers: RawHeaders) -> Claims | None:
    """What a request with this credential says about its account; None: nothing."""
    subject = token_subject(credential)
    named = [(_HEADERS[n], v.decode("latin-1")) for n, v in headers if n in _HEADERS and v]
    if len(named) > 1:  # nobody knows which one the provider takes
        return None
    return Claims(subject=subject, headers=tuple(named)) if subject or named else None
