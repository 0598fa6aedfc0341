"""The store's file is locked, damaged or full, and the gateway is killed: no turn is lost."""

import json
import os
import subprocess
import sys

import httpx2
import pytest

from support.gateway_process import Process
from support.sqlite_files import damage, held
from thoughtline.testing import Say, Think, serving


@pytest.fixture
def gateway(tmp_path):
    with serving("deepseek") as sims:
        root = sims.root("deepseek")
        store = f"{tmp_path}/t.db?timeout=0.2"
        process = Process(tmp_path, root, store=store, commit_wait=1.0)
        yield process
        process.kill()


def replayed(reply):
    return reply.headers["x-thoughtline-replay"]


def ready(gateway):
    answer = httpx2.get(gateway.url + "/ready")
    return answer.status_code, " ".join(answer.json()["reasons"])


def command(folder, *arguments):
    clean = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    run = [sys.executable, "-m", *arguments]
    return subprocess.run(run, cwd=folder, env=clean, capture_output=True, text=True, check=False)


def test_what_was_received_while_the_file_was_locked_survives_a_kill(gateway, tmp_path):
    _, messages = gateway.talk(1)
    with held(tmp_path / "t.db"):
        reply, messages = gateway.talk(3, messages)
        assert "restored=3; missed=0" in replayed(reply)
        status, reasons = ready(gateway)
        assert status == 503
        assert "3 turns wait" in reasons
        gateway.kill()
    gateway.start()
    reply, messages = gateway.talk(1, messages)
    assert "restored=4; missed=0" in replayed(reply)
    assert ready(gateway)[0] == 200
    gateway.kill()
    gateway.start()
    assert "restored=5; missed=0" in replayed(gateway.exchange(messages))


@pytest.mark.parametrize("letters", [100, 200_000])
def test_what_was_received_while_a_commit_waits_for_the_lock_survives_a_kill(tmp_path, letters):
    def script(turn, sim):
        return Think("T" * letters), Say("Done.")

    with serving("deepseek", script=script) as sims:
        gateway = Process(tmp_path, sims.root("deepseek"), commit_wait=1.0)
        with held(tmp_path / "t.db"):
            _, messages = gateway.talk(1)
            gateway.kill()
        gateway.start()
        reply = gateway.exchange(messages)
        gateway.kill()
    assert "restored=1; missed=0" in replayed(reply)


def test_what_was_received_over_a_damaged_file_is_found_after_it_was_salvaged(gateway, tmp_path):
    for number in range(5):
        gateway.talk(2, [{"role": "user", "content": f"before {number}"}])
    gateway.kill()
    path = tmp_path / "t.db"
    damage(path)
    gateway.start()
    reply, messages = gateway.talk(4, [{"role": "user", "content": "a new one"}])
    assert "restored=3; missed=0" in replayed(reply)
    status, reasons = ready(gateway)
    assert status == 503
    assert "is damaged" in reasons
    assert "salvage" in reasons
    assert "thoughtline_store_trouble 1.0" in httpx2.get(gateway.url + "/metrics").text
    report = json.loads(command(tmp_path, "thoughtline", "doctor", "--json", "--offline").stdout)
    assert any(one["level"] == "problem" and "damaged" in one["text"] for one in report["findings"])
    gateway.kill()
    done = command(tmp_path, "thoughtline.stores.sqlite.salvage", "t.db", "rescued.db")
    assert done.returncode == 0, done.stderr
    for left in ("t.db", "t.db-wal", "t.db-shm"):
        (tmp_path / left).unlink(missing_ok=True)
    (tmp_path / "rescued.db").rename(path)
    gateway.start()
    assert "restored=4; missed=0" in replayed(gateway.exchange(messages))
    assert ready(gateway)[0] == 200
    assert not list(tmp_path.glob("t.db-spill-*"))
