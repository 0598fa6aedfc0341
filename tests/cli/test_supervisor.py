"""What keeps the gateway in the background: its log, and how often it is started."""

import json
import os
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtline.cli.background import KEPT_LOGS, log_files
from thoughtline.cli.supervisor import CRASHES, LogFile, Supervisor


@given(lines=st.lists(st.binary(min_size=1, max_size=30), max_size=40))
@settings(max_examples=40)
def test_the_last_of_what_was_written_is_kept_in_order(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("logs") / "a.log"
    log = LogFile(path, max_bytes=64)
    for line in lines:
        log.write(line)
    kept = b"".join(file.read_bytes() for file in log_files(path))
    assert b"".join(lines).endswith(kept)
    assert len(kept) >= min(sum(map(len, lines)), KEPT_LOGS * 34)
    assert all(file.stat().st_size <= 64 for file in log_files(path))
    assert len(log_files(path)) <= KEPT_LOGS + 1


def test_a_log_is_gone_on_with(tmp_path):
    path = tmp_path / "a.log"
    LogFile(path).write(b"one\n")
    LogFile(path).write(b"two\n")
    assert path.read_bytes() == b"one\ntwo\n"
    assert path.stat().st_mode & 0o777 == 0o600


LISTENS = "import json, sys; print(json.dumps({'url': 'http://127.0.0.1:9', 'store': 's'}));"


@pytest.fixture
def supervise(tmp_path):
    def run(code):
        lock = os.open(tmp_path / "state.json", os.O_RDWR | os.O_CREAT)
        log = LogFile(tmp_path / "a.log")
        ended = Supervisor(lock, log, [sys.executable, "-c", code]).run()
        os.close(lock)
        return ended, json.loads((tmp_path / "state.json").read_text())

    run.log = tmp_path / "a.log"
    return run


def test_one_that_crashes_again_and_again_is_given_up(supervise):
    code, state = supervise(f"{LISTENS} sys.exit(1)")
    assert code == 1 and state["url"] == "http://127.0.0.1:9"
    events = [json.loads(line) for line in supervise.log.read_text().splitlines()]
    crashes = [one for one in events if "crashed" in one.get("event", "")]
    assert len(crashes) == CRASHES and "too often" in crashes[-1]["event"]


def test_one_that_ends_by_itself_is_not_started_again(supervise):
    assert supervise(f"{LISTENS} sys.exit(0)")[0] == 0
    assert len(supervise.log.read_text().splitlines()) == 1


def test_one_that_never_listened_leaves_its_words(supervise):
    code, state = supervise("import sys; sys.exit('the port is taken')")
    assert code == 1 and state["error"] == "the port is taken"
