"""Clients that run in a browser: what a page may ask, and what it may read."""

import http.server
import threading
from contextlib import contextmanager

import httpx2
import pytest

from inspector.browsers import browsing
from support.gateway_server import running, upstreams
from thoughtline.testing import serving

ASKED = {"model": "deepseek-chat", "messages": [{"role": "user", "content": "hi"}]}
PAGE = "http://localhost:3000"
QUESTION = {
    "origin": PAGE,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,x-stainless-os",
}


@pytest.fixture(scope="module")
def sims():
    with serving("deepseek") as sims:
        yield sims


@pytest.fixture(scope="module")
def gateway(sims):
    with running(upstreams(sims, "deepseek", key="sk-ours")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def keyed(sims):
    with running(upstreams(sims, "deepseek", key="sk-ours"), clients={"web": "k-web"}) as gateway:
        yield gateway


@pytest.mark.parametrize("path", ["/u/deepseek/v1/chat/completions", "/v1/responses", "/v1/models"])
def test_the_browser_s_question_is_answered_here(gateway, sims, path):
    before = len(sims["deepseek"].requests)
    answer = httpx2.options(gateway.url + path, headers=QUESTION)
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["access-control-allow-methods"] == "POST"
    assert (
        answer.headers["access-control-allow-headers"] == QUESTION["access-control-request-headers"]
    )
    assert answer.headers["vary"] == "origin"
    assert "access-control-allow-private-network" not in answer.headers
    assert len(sims["deepseek"].requests) == before


def test_from_a_site_to_this_machine(keyed):
    asked = {**QUESTION, "access-control-request-private-network": "true"}
    answer = httpx2.options(f"{keyed.url}/v1/responses", headers=asked)
    assert answer.headers["access-control-allow-private-network"] == "true"


def test_whoever_shows_a_key_later_may_come_from_anywhere(keyed):
    asked = {**QUESTION, "origin": "https://chat.test"}
    url = f"{keyed.url}/u/deepseek/v1/chat/completions"
    assert httpx2.options(url, headers=asked).status_code == 204
    said = {"origin": "https://chat.test"}
    refused = httpx2.post(url, json=ASKED, headers=said)
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == "https://chat.test"  # it can be read
    answer = httpx2.post(url, json=ASKED, headers={**said, "authorization": "Bearer k-web"})
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://chat.test"


def test_a_question_without_a_browser_goes_on(gateway, sims):
    before = len(sims["deepseek"].requests)
    url = f"{gateway.url}/u/deepseek/v1/chat/completions"
    assert httpx2.options(url).status_code != 204
    assert httpx2.options(url, headers={"origin": PAGE}).status_code != 204  # asks for nothing
    assert len(sims["deepseek"].requests) == before + 2


def test_foreign_origins_get_no_leave(gateway):
    asked = {**QUESTION, "origin": "https://evil.test"}
    answer = httpx2.options(f"{gateway.url}/u/deepseek/v1/chat/completions", headers=asked)
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", ["/api/sessions", "/inspect", "/metrics", "/health", "/"])
def test_our_own_pages_are_shared_with_nobody(gateway, path):
    answer = httpx2.get(gateway.url + path, headers={"origin": PAGE})
    assert "access-control-allow-origin" not in answer.headers
    asked = httpx2.options(gateway.url + path, headers=QUESTION)
    assert "access-control-allow-origin" not in asked.headers


def test_what_an_upstream_says_about_sharing_is_left_out():
    class Upstream(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("access-control-allow-origin", "https://provider.test")
            self.send_header("access-control-allow-credentials", "true")
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    from thoughtline.engine.endpoints import Upstream as Row

    with listening(Upstream) as url, running([Row(name="u", base_url=url)]) as gateway:
        asked = f"{gateway.url}/u/u/v1/chat/completions"
        answer = httpx2.post(asked, json=ASKED, headers={"origin": PAGE})
        assert answer.headers.get_list("access-control-allow-origin") == [PAGE]
        assert "access-control-allow-credentials" not in answer.headers
        plain = httpx2.post(asked, json=ASKED)  # without a browser everything is passed on
        assert plain.headers["access-control-allow-origin"] == "https://provider.test"


@contextmanager
def listening(handler):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


class Blank(http.server.BaseHTTPRequestHandler):
    """A page of another origin."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>a client</title>")

    def log_message(self, *_):
        pass


ASK = """async ([url, body, key]) => {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
  return [answer.status, answer.headers.get("x-thoughtline-session"), await answer.text()];
}"""


@pytest.mark.slow
def test_a_page_in_a_real_browser(keyed, gateway):
    with listening(Blank) as url, browsing() as browser:
        page = browser.new_page()
        page.goto(url)
        for one, key in ((gateway, "anything"), (keyed, "k-web")):
            where = f"{one.url}/u/deepseek/v1/chat/completions"
            status, session, text = page.evaluate(ASK, [where, ASKED, key])
            assert (status, bool(session)) == (200, True)
            assert "reasoning_content" in text
            streamed = page.evaluate(ASK, [where, {**ASKED, "stream": True}, key])
            assert streamed[0] == 200
            assert "[DONE]" in streamed[2]
        refused = page.evaluate(ASK, [f"{keyed.url}/u/deepseek/v1/chat/completions", ASKED, "no"])
        assert refused[0] == 401
        assert "client keys" in refused[2]
