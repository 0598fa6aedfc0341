"""The gateway of a run: the one that is there, and what was kept in it."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from thoughtline.cli.launch_gateway import LaunchGateway, ensure_gateway
from thoughtline.errors import SettingsError
from thoughtline.gateway.settings import load


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


def settings_for(url):
    return load({"port": int(url.rpartition(":")[2])}, {}, Path())


def test_one_that_runs_is_used(answering, home):
    url = answering({"/version": (200, {"name": "thoughtline"})})
    running = ensure_gateway(settings_for(url))
    assert (running.url, running.started, running.state) == (url, False, None)


@pytest.mark.parametrize("answer", [(200, {"name": "other"}), (404, {}), (200, [])])
def test_another_program_at_the_address(answering, home, answer):
    with pytest.raises(SettingsError, match="another program answers"):
        ensure_gateway(settings_for(answering({"/version": answer})))


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
