"""`thoughtline export`: sessions as lines of JSON."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import chat, run

pytestmark = pytest.mark.usefixtures("home")


def test_a_session_is_written_with_those_it_goes_on_from(home):
    chat()
    run("fork", "last")
    lines = run("export", "last").stdout
    assert len(lines.splitlines()) > 5
    result = run("export", "last", "-o", "it.jsonl")
    assert "events in it.jsonl" in result.stderr
    assert (home / "here" / "it.jsonl").read_text() == lines
    assert len(run("export", "last", "--alone").stdout.splitlines()) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_a_sentence():
    chat()
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "thoughtline", "export", "last"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ") and "Traceback" not in done.stderr
