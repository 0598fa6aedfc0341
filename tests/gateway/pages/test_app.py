"""Who may see the pages of the administrator."""

import pytest

from support.built_gateway import TOKEN, BuiltGateway, configured, with_token
from thoughtline.gateway.auth import Auth
from thoughtline.gateway.settings import AccessSettings, ClientSettings, Secret

CACHE = "/api/cache/reasoning"

BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", CACHE), ("DELETE", CACHE), ("DELETE", "/api/tenants/t"), ("GET", "/api/sessions")],
)
def test_with_a_token_only_the_token_opens(method, path):
    with BuiltGateway(with_token()).client() as client:
        for wrong in ({}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN + "x"}):
            answer = client.request(method, path, headers=wrong)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            problem = answer.json()["error"]
            assert problem["code"] == "admin_token_needed"
            assert "access.admin_token" in problem["message"]
            assert TOKEN not in answer.text
        assert client.request(method, path, headers=BEARER).status_code in (200, 404)


def test_the_token_opens_from_elsewhere():
    with BuiltGateway(with_token()).client(peer="203.0.113.9", host="gateway.test") as client:
        assert client.get(CACHE, headers=BEARER).status_code == 200
        assert client.get(CACHE).status_code == 401


@pytest.mark.parametrize(
    ("peer", "host", "headers"),
    [
        ("203.0.113.9", "127.0.0.1:7337", {}),  # another machine
        ("127.0.0.1", "evil.test", {}),  # a web page that points its own name here
        ("127.0.0.1", "evil.test:7337", {}),
        ("127.0.0.1", "127.0.0.1", {"origin": "https://evil.test"}),  # through somebody's browser
        ("127.0.0.1", "127.0.0.1", {"origin": "null"}),
        ("127.0.0.1", "127.0.0.1", {"x-forwarded-for": "203.0.113.9"}),  # through a proxy
        ("127.0.0.1", "127.0.0.1", {"forwarded": "for=203.0.113.9"}),
        ("127.0.0.1", "127.0.0.1", {"x-forwarded-proto": "https"}),
        ("127.0.0.1", "127.0.0.1", {"x-forwarded-host": "gateway.test"}),
        ("127.0.0.1", "127.0.0.1", {"x-original-forwarded-for": "203.0.113.9"}),
        ("127.0.0.1", "127.0.0.1", {"via": "1.1 varnish"}),
        ("127.0.0.1", "127.0.0.1", {"cf-connecting-ip": "203.0.113.9"}),
        ("127.0.0.1", "127.0.0.1", {"true-client-ip": "203.0.113.9"}),
        ("127.0.0.1", "127.0.0.1", {"x-real-ip": "203.0.113.9"}),
        ("127.0.0.1", "127.0.0.1", {"fastly-client-ip": "203.0.113.9"}),
        ("127.0.0.1", "127.0.0.1", {"x-client-ip": "203.0.113.9"}),
    ],
)
def test_without_a_token_it_opens_on_the_machine_itself_only(peer, host, headers):
    with BuiltGateway().client(peer=peer, host=host) as client:
        for method in ("GET", "DELETE"):
            answer = client.request(method, CACHE, headers=headers)
            assert answer.status_code == 403
            assert answer.json()["error"]["code"] == "loopback_only"


@pytest.mark.parametrize("host", ["127.0.0.1:7337", "localhost:7337", "localhost", "[::1]:7337"])
@pytest.mark.parametrize("peer", ["127.0.0.1", "::1"])
def test_on_the_machine_itself_no_token_is_needed(host, peer):
    with BuiltGateway().client(peer=peer, host=host) as client:
        assert client.get(CACHE).status_code == 200
        assert client.delete(CACHE, headers={"origin": f"http://{host}"}).status_code == 200


def test_nor_does_it_open_behind_a_proxy_that_adds_nothing():
    """nginx's `proxy_pass` without further settings: its own Host, no header, HTTP/1.0."""
    headers = [(b"host", b"127.0.0.1:7337"), (b"connection", b"close")]
    assert not Auth(b"s" * 32).is_admin(headers, "127.0.0.1", "1.0")
    assert Auth(b"s" * 32).is_admin(headers, "127.0.0.1", "1.1")
    token = [*headers, (b"authorization", b"Bearer t")]
    assert Auth(b"s" * 32, admin_token="t").is_admin(token, "127.0.0.1", "1.0")


def test_a_local_socket_is_the_machine_itself():
    assert Auth(b"s" * 32).is_admin([(b"host", b"localhost")], "")
    assert Auth(b"s" * 32).is_admin([], "127.0.0.1")


def test_a_clients_key_is_not_the_administrators():
    access = AccessSettings(
        admin_token=Secret(TOKEN), clients={"alice": ClientSettings(key=Secret("alice-key"))}
    )
    with BuiltGateway(configured(access=access)).client() as client:
        head = {"authorization": "Bearer alice-key"}
        assert client.get(CACHE, headers=head).status_code == 401
        assert client.get("/v1/models", headers=BEARER).status_code == 401
