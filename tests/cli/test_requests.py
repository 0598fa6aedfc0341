"""`thoughtline requests`: the requests of the gateway that runs, and why some failed."""

import json

import httpx2
import pytest

from support.background import Home
from support.postgres_server import free_port
from thoughtline.cli.requests import request_lines


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path, free_port())
    yield home
    home.close()


def test_what_was_asked_and_what_failed(home):
    code, _, err = home.run("requests")
    assert code == 1 and "thoughtline start" in err
    home.run("start")
    url = home.status()["url"]
    assert home.run("requests")[1] == "No requests yet.\n"
    body = {"model": "deepseek", "messages": [{"role": "user", "content": "What is up?"}]}
    assert httpx2.post(f"{url}/u/sim/v1/chat/completions", json=body).status_code == 200
    assert httpx2.post(f"{url}/u/nobody/v1/chat/completions", json=body).status_code == 404
    code, out, err = home.run("requests")
    assert code == 0, err
    refused, reason, advice, answered = out.splitlines()
    assert "refused 404" in refused and "POST /v1/chat/completions" in refused
    assert "no upstream is called 'nobody'" in reason and "thoughtline doctor" in advice
    assert "completed" in answered and "deepseek" in answered and "What is up?" in answered
    (row,) = json.loads(home.run("requests", "--failed", "--json")[1])
    assert row["status"] == 404
    (row,) = json.loads(home.run("requests", "--limit", "1", "--json")[1])
    assert row["outcome"] == "refused"


def test_columns():
    row = {"at": 0, "outcome": "running", "status": None, "model": "m", "provider": "p"}
    (head, line) = request_lines([row], head=True)
    assert "outcome" in head and "p/m" in line
    assert [*request_lines([], head=True)] == []
