"""Where a secret is read from."""

import errno
import os
import sys
from pathlib import Path

import pytest

from support.waiting import until
from thoughtline.errors import StoreError
from thoughtline.stores.secret_sources import is_source, read_source


def test_a_file_a_variable_and_a_command(tmp_path):
    file = tmp_path / "secret"
    file.write_bytes(b"of a file")
    file.chmod(0o644)
    assert read_source(f"file:{file}", {}) == b"of a file"
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_source("env:NAME", {"NAME": "of a variable"}) == b"of a variable"
    assert read_source(f"exec:{sys.executable} -c 'print(42)'", {}).strip() == b"42"


@pytest.mark.parametrize("text", ["", "file:", "hush", "env: ", "vault:x"])
def test_what_names_no_place(text):
    assert not is_source(text)
    with pytest.raises(StoreError, match="expected file:PATH"):
        read_source(text, {})


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("file:/not/there", "cannot be read"),
        ("env:NOT_SET", "NOT_SET is not set"),
        ("exec:/not/there", "cannot be run"),
        ("exec:false", "ended with 1"),
        ("exec:'", "cannot be run"),
    ],
)
def test_a_place_with_nothing_in_it(source, why):
    with pytest.raises(StoreError, match=why):
        read_source(source, {})


def test_a_file_on_a_disk_that_is_only_read_is_read(tmp_path, monkeypatch):
    """A secret that a container gets lies on such a disk, and its group may read it."""
    file = tmp_path / "secret"
    file.write_bytes(b"of a file")
    file.chmod(0o444)

    def refuse(self, mode):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "chmod", refuse)
    assert read_source(f"file:{file}", {}) == b"of a file"


def test_a_file_that_a_group_may_read_stays_so(tmp_path):
    file = tmp_path / "secret"
    file.write_bytes(b"of a service")
    file.chmod(0o640)
    assert read_source(f"file:{file}", {}) == b"of a service"
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_command_that_never_stops_printing_is_stopped():
    with pytest.raises(StoreError, match="prints more than 1024 KB"):
        read_source("exec:yes", {})


def test_a_command_that_is_given_up_leaves_nothing_running(tmp_path, monkeypatch):
    monkeypatch.setattr("thoughtline.stores.secret_sources.COMMAND_SECONDS", 0.5)
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {tmp_path}/child\necho half\nwait\n")
    script.chmod(0o700)
    with pytest.raises(StoreError, match="gave no answer"):
        read_source(f"exec:{script}", {})
    child = int((tmp_path / "child").read_text())
    until(lambda: not _runs(child))


def _runs(pid):
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (OSError, IndexError):
        return False
