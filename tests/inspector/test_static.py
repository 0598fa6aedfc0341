"""The page's files: right types, a strict policy, and nothing but what is in the folder."""

import re
import signal

import pytest

from support.built_gateway import BuiltGateway, with_token


@pytest.fixture
def client():
    with BuiltGateway().client() as client:
        yield client


def test_the_page(client):
    answer = client.get("/inspect")
    assert str(answer.url).endswith("/inspect/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    policy = answer.headers["content-security-policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_it_is_sent_again_only_when_it_changed(client):
    first = client.get("/inspect/index.html")
    assert first.headers["cache-control"] == "no-cache"
    again = client.get("/inspect/", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    [
        "no.html",
        "%2e%2e/static.py",
        "%2e%2e/%2e%2e/py.typed",
        "..%5c__init__.html",
        "/etc/hosts.html",
        ".hidden.js",
        "x%00.js",
        "index",
        "%2f%2fetc/x.css",
    ],
)
def test_nothing_else_is_shown(client, path):
    assert client.get(f"/inspect/{path}").status_code == 404


def test_with_a_token_the_shell_is_open_and_the_data_is_not():
    built = BuiltGateway(with_token())
    with built.client(peer="203.0.113.9", host="gateway.test") as client:
        assert client.get("/inspect/").status_code == 200
        assert client.get("/api/sessions").status_code == 401


def test_without_a_token_others_see_nothing():
    with BuiltGateway().client(peer="203.0.113.9", host="gateway.test") as client:
        assert client.get("/inspect/").status_code == 403
        assert client.get("/api/sessions").status_code == 403


async def test_whoever_streams_is_told_of_the_end_at_once():
    from thoughtline.gateway.app import on_stop_signal

    heard, kept = [], signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *_: heard.append("the server"))
    kept_too = signal.getsignal(signal.SIGINT)
    try:
        on_stop_signal(lambda: heard.append("we"))
        signal.raise_signal(signal.SIGTERM)
        import asyncio

        await asyncio.sleep(0)
        await asyncio.sleep(0)
    finally:
        signal.signal(signal.SIGTERM, kept)
        signal.signal(signal.SIGINT, kept_too)
    assert heard == ["the server", "we"]


def test_the_page_is_five_files(client):
    """As many as there were modules, each asked for in turn, was a second on a slow line."""
    page = client.get("/inspect/").text
    names = re.findall(r'(?:src|href)="\./([\w.]+)"', page)
    assert names == ["mark.svg", "early.js", "page.css", "page.js"]
    for name in names:
        answer = client.get(f"/inspect/{name}")
        assert answer.status_code == 200
        again = client.get(f"/inspect/{name}", headers={"if-none-match": answer.headers["etag"]})
        assert again.status_code == 304
