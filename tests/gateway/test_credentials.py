"""Whatever may name an account makes the tenant."""

import pytest

from thoughtline.gateway.auth import Auth
from thoughtline.gateway.credentials import credentials, without_key

AUTH = Auth(b"secret" * 8)
PLACES = [
    ([], "access_token={}"),
    ([], "api_key={}"),
    ([], "api-key={}"),
    ([], "k%65y={}"),
    ([], "x=1&token={}"),
    ([], "code={}"),
    ([], "X-Amz-Security-Token={}"),
    ([], "subscription-key={}"),
    ([], "key=same&key={}"),
    ([], "key={}&key=same"),
    ([(b"ocp-apim-subscription-key", b"{}")], ""),
    ([(b"x-auth-token", b"{}")], ""),
    ([(b"x-access-token", b"{}")], ""),
    ([(b"cookie", b"theme=dark; session={}")], ""),
    ([(b"helicone-auth", b"Bearer {}")], ""),
    ([(b"x-portkey-api-key", b"{}")], ""),
    ([(b"x-amz-security-token", b"{}")], ""),
    ([(b"x-portkey-virtual-key", b"{}")], ""),
    ([(b"x-rapidapi-key", b"{}")], ""),
    ([(b"x-functions-key", b"{}")], ""),
    ([(b"modal-key", b"{}")], ""),
    ([(b"x-apitoken", b"{}")], ""),
    ([], "authKey={}"),
    ([], "clientSecret={}"),
    ([(b"authorization", b"Bearer dummy"), (b"x-auth-token", b"{}")], ""),
    ([(b"authorization", b"Bearer dummy")], "access_token={}"),
]


def _tenant(headers, query, who):
    filled = [(name, value.replace(b"{}", who)) for name, value in headers]
    return AUTH.authenticate(filled, query.replace("{}", who.decode())).tenant


@pytest.mark.parametrize(("headers", "query"), PLACES)
def test_two_accounts_are_two_tenants_wherever_the_credential_is(headers, query):
    nobody = AUTH.authenticate([], "").tenant
    one, two = (_tenant(headers, query, who) for who in (b"alice", b"bob"))
    assert one == _tenant(headers, query, b"alice")
    assert len({one, two, nobody}) == 3


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ([(b"idempotency-key", b"{}")], ""),
        ([(b"x-cache-key", b"{}"), (b"x-session-affinity-key", b"{}")], ""),
        ([(b"x-csrf-token", b"{}")], ""),
        ([(b"sec-websocket-key", b"{}")], ""),
        ([(b"cookie", b"__cf_bm={}; _cfuvid={}")], ""),
        ([(b"x-request-id", b"{}")], "alt=sse&beta=true&api-version={}"),
        ([(b"x-stainless-retry-count", b"{}"), (b"user-agent", b"{}")], ""),
    ],
)
def test_what_changes_with_every_request_is_none(headers, query):
    known = [(b"authorization", b"Bearer me"), *headers]
    assert _tenant(known, query, b"1") == _tenant(known, query, b"2")
    assert _tenant(known, query, b"1") == AUTH.authenticate(known[:1], "").tenant


def test_known_places_keep_their_tenants():
    """Stores that were written before are found again."""
    for headers, query in (
        ([(b"authorization", b"Bearer me")], ""),
        ([(b"x-api-key", b"me")], "beta=true"),
        ([], "alt=sse&key=me"),
    ):
        assert credentials(headers, query) == ["me"]
        assert AUTH.authenticate(headers, query).tenant == AUTH.fingerprint("me")


def test_a_key_in_the_query_stays_here_however_it_is_spelled():
    assert without_key("a=1&k%65y=secret&key=x&alt=sse") == "a=1&alt=sse"
    assert without_key("") == ""
    assert without_key("alt=sse") == "alt=sse"
