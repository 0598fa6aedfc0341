"""Where a ring is read from: a file, a variable, a command; each failure says what to do."""

import os
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from thoughtline.errors import SealError
from thoughtline.stores.sealing.ring import MasterKey, new_key
from thoughtline.stores.sealing.sources import add_key, key_file, read_ring, remove_key

KEY = MasterKey("key-1", b"k" * 32)


def test_a_file_is_made_for_its_user_alone_and_grows(tmp_path):
    path = tmp_path / "ring.keys"
    add_key(path, KEY)
    assert path.stat().st_mode & 0o777 == 0o600
    other = new_key([KEY.id])
    add_key(path, other)
    assert read_ring(f"file:{path}", {}).ids == (KEY.id, other.id)
    assert [one.name for one in tmp_path.iterdir()] == ["ring.keys"]


def test_a_file_that_others_may_read_is_closed(tmp_path):
    path = tmp_path / "ring.keys"
    add_key(path, KEY)
    path.chmod(0o644)
    read_ring(f"file:{path}", {})
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_variable_and_a_command_give_the_same_ring():
    program = shlex.join([sys.executable, "-c", f"print({KEY.line()!r})"])
    for source in ("env:RING", f"exec:{program}"):
        assert read_ring(source, {"RING": KEY.line()}).newest.line() == KEY.line()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("file:/nowhere/ring.keys", "cannot be read (No such file"),
        ("env:RING", "the variable RING is not set"),
        ("env:BAD", "key 1 of the ring"),
        ("exec:false", "ended with 1"),
        ("exec:no-such-program-at-all", "cannot be run"),
        ("exec:true", "has no key"),
        ("exec:'", "cannot be run"),
        ("ring.keys", "expected"),
        ("file:", "expected"),
        (KEY.line(), "expected"),
    ],
)
def test_what_gives_no_ring_says_so_without_a_key(source, said):
    with pytest.raises(SealError) as caught:
        read_ring(source, {"BAD": "secret-stuff"})
    assert said in str(caught.value)
    assert KEY.line() not in str(caught.value) and "secret-stuff" not in str(caught.value)


def test_a_command_that_hangs_is_given_up(monkeypatch):
    monkeypatch.setattr("thoughtline.stores.secret_sources.COMMAND_SECONDS", 0.05)
    with pytest.raises(SealError, match="gave no answer"):
        read_ring("exec:sleep 60", {})


def test_the_file_of_a_source():
    assert str(key_file("file:a.keys")) == "a.keys"
    assert key_file("env:A") is None


def test_a_folder_that_cannot_be_written_to(tmp_path):
    with pytest.raises(SealError, match="cannot be written"):
        add_key(tmp_path / "no" / "ring.keys", KEY)


def test_of_keys_that_are_added_at_once_none_is_lost(tmp_path):
    path = tmp_path / "ring.keys"
    keys = [MasterKey(f"key-{n}", bytes([n]) * 32) for n in range(16)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: add_key(path, key), keys))
        list(pool.map(lambda key: remove_key(path, key.id), keys[:8]))
    assert set(read_ring(f"file:{path}", {}).ids) == {key.id for key in keys[8:]}


def test_the_file_of_a_service_stays_its_own(tmp_path):
    path, link = tmp_path / "ring.keys", tmp_path / "link.keys"
    add_key(path, KEY)
    path.chmod(0o640)
    if os.getuid() == 0:
        os.chown(path, 12, 34)
    owner = path.stat().st_uid, path.stat().st_gid, path.stat().st_mode
    link.symlink_to(path)
    add_key(link, new_key([KEY.id]))
    assert link.is_symlink() and len(read_ring(f"file:{path}", {}).ids) == 2
    assert (path.stat().st_uid, path.stat().st_gid, path.stat().st_mode) == owner


def test_a_file_that_was_copied_half_says_which_key(tmp_path):
    path = tmp_path / "ring.keys"
    add_key(path, KEY)
    add_key(path, MasterKey("key-2", b"2" * 32))
    path.write_text(path.read_text()[:-9])
    with pytest.raises(SealError, match="key 2 of the ring"):
        read_ring(f"file:{path}", {})
