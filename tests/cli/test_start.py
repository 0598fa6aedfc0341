"""`thoughtline start`, `stop`, `status` and `logs`."""

import json
import signal
import subprocess

import pytest

from support.background import Home
from support.postgres_server import free_port


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path, free_port())
    yield home
    home.close()


def test_from_start_to_stop(home):
    port = home.env["THOUGHTLINE_PORT"]
    url = f"http://127.0.0.1:{port}"
    code, out, _ = home.run("status")
    assert code == 3 and "thoughtline start" in out
    code, out, err = home.run("start", "--log-level", "debug")
    assert code == 0, err
    assert out.startswith(f"Thoughtline runs in the background at {url}\n")
    assert f"{url}/inspect" in out
    code, out, _ = home.run("status")
    assert code == 0 and "in the background, pid " in out and "ready" in out
    assert home.run("start")[1].startswith(f"Thoughtline runs already at {url}\n")
    assert json.loads(home.run("logs")[1].splitlines()[0])["url"] == url
    assert home.run("stop")[1] == f"Stopped the gateway at {url}\n"
    code, out, _ = home.run("status", "--json")
    assert code == 3 and json.loads(out)["running"] is False
    assert "No gateway runs in the background." in home.run("stop")[1]
    assert "logs" in home.run("logs", "--lines", "0")[2] + "logs"


def test_one_in_a_terminal_is_seen_and_left_alone(home):
    serve = home.start("serve", "--json")
    url = json.loads(serve.stdout.readline())["url"]
    assert home.run("start")[1].startswith(f"Thoughtline runs already at {url}\n")
    status = home.status()
    assert status["running"] and not status["background"] and status["version"]
    code, _, err = home.run("stop")
    assert code == 1 and "in a terminal or as a service" in err
    serve.send_signal(signal.SIGTERM)
    serve.wait(60)
    assert home.run("stop")[0] == 0


def test_one_for_another_port_is_another_one(home):
    other = str(free_port())
    try:
        assert home.run("start")[0] == 0
        assert home.run("start", "--port", other)[0] == 0
        assert json.loads(home.run("status", "--json")[1])["others"] == [
            f"http://127.0.0.1:{other}"
        ]
        assert f"at http://127.0.0.1:{other} (pid" in home.run("status")[1]
    finally:
        assert home.run("stop", "--port", other)[0] == 0
    assert home.status()["running"]


def test_flags_are_those_of_serve(home, tmp_path):
    store = f"sqlite:///{tmp_path}/own.db"
    home.run("start", "--store", store, "--strict", "--workers", "2")
    status = home.status()
    assert status["store"] == store and (tmp_path / "own.db").exists()
    assert home.run("stop")[0] == 0


def test_without_any_log(home):
    code, _, err = home.run("logs")
    assert code == 1 and "there is no log" in err


def test_a_gateway_that_all_may_reach_is_refused_as_serve_refuses_it(home):
    code, _, err = home.run("start", "--host", "0.0.0.0")
    assert code == 1 and "--allow-remote" in err
    assert subprocess.run(["true"], check=True) and not home.status()["running"]
