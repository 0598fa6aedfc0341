"""The gateway in the background: it is there once, and its file says so only while it is."""

import json
import os
import select
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.background import Home, children
from support.postgres_server import free_port
from thoughtline.cli.background import BackgroundGateway, GatewayState
from thoughtline.cli.local_gateway import ask
from thoughtline.errors import WireError


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path, 0)  # any port
    yield home
    home.close()


def test_many_that_start_it_at_once_get_the_same(home):
    with ThreadPoolExecutor(4) as many:
        said = list(many.map(lambda _: home.run("start", "--json"), range(4)))
    assert [code for code, _, _ in said] == [0] * 4, said
    found = {(one["url"], one["pid"]) for one in (json.loads(out) for _, out, _ in said)}
    ((url, pid),) = found
    assert len(children(pid)) == 1
    assert ask(f"{url}/ready")["status"] == "ready"


def test_a_file_that_was_left_behind_is_no_gateway(home):
    background = home.background()
    background.file.parent.mkdir(parents=True)
    left = GatewayState(url="http://127.0.0.1:1", pid=os.getpid())
    background.file.write_text(json.dumps({"url": left.url, "pid": left.pid}))
    assert background.state() is None
    assert "No gateway runs" in home.run("stop")[1]  # and this process is not ended
    assert home.run("start")[0] == 0
    assert background.state().pid != os.getpid()


def test_one_that_crashes_is_started_again_where_it_was(home):
    home.run("start")
    before = home.status()
    (gateway,) = children(before["pid"])
    follow = home.start("logs", "--follow", "--lines", "1")
    assert json.loads(follow.stdout.readline())["url"] == before["url"]
    os.kill(gateway, signal.SIGKILL)
    crash = json.loads(follow.stdout.readline())
    assert crash["event"] == "the gateway crashed and is started again"
    assert crash["exit_code"] == -signal.SIGKILL
    assert json.loads(follow.stdout.readline())["url"] == before["url"]
    assert ask(f"{before['url']}/health", timeout=60) == {"status": "ok"}
    after = home.status()
    assert (after["url"], after["pid"]) == (before["url"], before["pid"])


def test_it_ends_with_its_supervisor_however_that_ends(home):
    home.run("start")
    status = home.status()
    (gateway,) = children(status["pid"])
    ended = os.pidfd_open(gateway)
    os.kill(status["pid"], signal.SIGKILL)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    assert poll.poll(60_000)
    os.close(ended)
    assert not home.status()["running"]
    assert home.run("start")[0] == 0


def test_one_that_cannot_start_says_why(tmp_path):
    home = Home(tmp_path, 0)
    code, _, err = home.run("start", env={"THOUGHTLINE_STORE__KEYS": "file:/nowhere/keys"})
    assert code == 1 and "/nowhere/keys" in err and "thoughtline doctor" in err
    assert home.background().state() is None


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    background = BackgroundGateway(0, {"XDG_STATE_HOME": str(tmp_path / "file")})
    with pytest.raises(Exception, match="XDG_STATE_HOME"):
        background.ensure()


def test_one_that_never_listens_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr("thoughtline.cli.background.START_SECONDS", 0.0)
    background = BackgroundGateway(free_port(), {"XDG_STATE_HOME": str(tmp_path)})
    with pytest.raises(WireError, match="not ready in time"):
        background.ensure()
