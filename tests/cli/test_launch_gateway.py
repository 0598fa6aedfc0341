"""The gateway of a run: the one that is there, or one that comes and goes with it."""

import json
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from thoughtline.cli.launch_gateway import LaunchGateway, address, gateway
from thoughtline.errors import SettingsError, ThoughtlineError


@pytest.fixture
def answering():
    """A server with one answer per path."""
    servers = []

    def serve(answers):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                status, body = answers.get(self.path.partition("?")[0], (404, {}))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:7337"),
        ("0.0.0.0", "http://127.0.0.1:7337"),
        ("::", "http://[::1]:7337"),
        ("localhost", "http://localhost:7337"),
    ],
)
def test_an_address_that_can_be_reached(host, url):
    assert address(host, 7337) == url


def test_one_that_runs_is_used_and_left_running(answering):
    answers = {"/version": (200, {"name": "thoughtline"})}
    url = answering(answers)
    with gateway(url, models={}) as running:
        assert (running.url, running.started) == (url, False)
    with gateway(url, models={}) as running:
        assert not running.started


@pytest.mark.parametrize("answer", [(200, {"name": "other"}), (404, {}), (200, [])])
def test_another_program_at_the_address(answering, answer):
    with (
        pytest.raises(SettingsError, match="another program answers"),
        gateway(answering({"/version": answer}), models={}),
    ):
        pass


def test_one_is_started_with_the_rows_and_stopped(home, monkeypatch):
    monkeypatch.setenv("THOUGHTLINE_PORT", "0")
    with gateway("http://127.0.0.1:0", models={"claude-*": "sim/deepseek"}) as running:
        assert running.started
        with urllib.request.urlopen(f"{running.url}/ready") as answer:
            assert answer.status == 200
        body = {"model": "claude-haiku-9", "messages": [{"role": "user", "content": "hi"}]}
        asked = urllib.request.Request(
            f"{running.url}/u/sim/v1/chat/completions",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        running.begin()
        with urllib.request.urlopen(asked) as answer:
            assert answer.status == 200
        kept = running.kept()
        assert kept.thoughts == 1 and len(kept.sessions) == 1
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"{running.url}/ready")


def test_one_that_cannot_start_says_why(home, monkeypatch):
    monkeypatch.setenv("THOUGHTLINE_PORT", "0")
    monkeypatch.setenv("THOUGHTLINE_LOG_LEVEL", "loud")
    with (
        pytest.raises(ThoughtlineError, match="thoughtline doctor") as error,
        gateway("http://127.0.0.1:0", models={}),
    ):
        pass
    assert "loud" in str(error.value)


def session(id, created, touched, thoughts):
    return {"id": id, "created": created, "touched": touched, "thoughts": thoughts}


def test_only_what_this_run_kept_is_counted(answering):
    answers = {"/api/sessions": (200, {"now": 100.0, "sessions": [session("old", 1, 50, 5)]})}
    running = LaunchGateway(answering(answers))
    running.begin()
    after = [
        session("new", 110, 120, 2),
        session("old", 1, 115, 8),
        session("long ago", 1, 112, 900),  # not seen before: what is new in it is not known
        session("untouched", 1, 60, 7),
    ]
    answers["/api/sessions"] = (200, {"now": 130.0, "sessions": after})
    kept = running.kept()
    assert kept.thoughts == 2 + 3
    assert kept.sessions == ("new", "old", "long ago")


def test_a_gateway_that_does_not_tell(answering):
    running = LaunchGateway(answering({"/api/sessions": (403, {})}))
    running.begin()
    assert running.kept() is None
