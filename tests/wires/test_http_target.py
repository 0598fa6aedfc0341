"""What a URL means for a request: address, request line and headers."""

import pytest

from thoughtline.errors import WireError
from thoughtline.wires.base import Outbound
from thoughtline.wires.http_target import parse_url, redacted, request_head


@pytest.mark.parametrize(
    ("url", "address", "authority", "path"),
    [
        ("http://a.test", ("a.test", 80, False), "a.test", "/"),
        ("https://a.test/v1?q=%2F", ("a.test", 443, True), "a.test", "/v1?q=%2F"),
        ("https://a.test:443/", ("a.test", 443, True), "a.test", "/"),
        ("http://a.test:443/", ("a.test", 443, False), "a.test:443", "/"),
        ("https://A.Test:8443/x", ("a.test", 8443, True), "a.test:8443", "/x"),
        ("http://[::1]:8080/", ("::1", 8080, False), "[::1]:8080", "/"),
        ("https://bücher.test/", ("xn--bcher-kva.test", 443, True), "xn--bcher-kva.test", "/"),
    ],
)
def test_where_a_url_leads(url, address, authority, path):
    target = parse_url(url)
    assert (target.host, target.port, target.tls) == address
    assert (target.authority, target.path) == (authority, path)
    assert target.pool_key == (*address, "")


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://a/b", "http:///x", "http://a:port/"])
def test_what_is_no_url(url):
    with pytest.raises(ValueError, match=r"expected a URL|Port"):
        parse_url(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://a.test/v1?key=secret", "https://a.test/v1"),
        ("https://me:secret@a.test:8443/v1", "https://a.test:8443/v1"),
        ("ws://me:secret@a.test", "ws://a.test"),
        ("https://a.test/@v1", "https://a.test/@v1"),
    ],
)
def test_messages_show_no_secret_of_a_url(url, shown):
    assert redacted(url) == shown


def head(method="POST", url="http://a.test/p", headers=(), body=b""):
    request = Outbound(method=method, url=url, headers=headers, body=body)
    return request_head(request, parse_url(url)).decode("latin-1").split("\r\n")[:-2]


def test_only_a_host_and_a_length_are_added():
    assert head(body=b"{}", headers=[("X-A", "1")]) == [
        "POST /p HTTP/1.1",
        "host: a.test",
        "X-A: 1",
        "content-length: 2",
    ]
    assert head(method="GET", headers=[("Host", "front")]) == ["GET /p HTTP/1.1", "Host: front"]
    assert head()[-1] == "content-length: 0"


def test_a_user_name_in_the_url_is_sent_unless_the_request_has_its_own():
    url = "http://me:a%40b@a.test/p"
    assert "authorization: Basic bWU6YUBi" in head(url=url)
    own = [("Authorization", "Bearer key")]
    assert not any("Basic" in line for line in head(url=url, headers=own))


def test_a_header_of_other_letters_is_sent_as_utf_8():
    request = Outbound(method="GET", url="http://a.test/", headers=[("x-a", "日本")])
    assert "日本".encode() in request_head(request, parse_url(request.url))


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\r\nx-b: c"])
def test_a_header_has_one_line(value):
    with pytest.raises(WireError, match="line break"):
        head(headers=[("x-a", value)])
