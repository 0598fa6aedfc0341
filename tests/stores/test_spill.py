"""Files of batches beside a store: private, whole lines, and what is damaged is skipped."""

import os
import subprocess
import sys

import pytest

from stores.samples import notes, refusal, turn
from support.fragile_store import A, B
from thoughtline.errors import SealError
from thoughtline.stores import spill
from thoughtline.stores.sealing.keychain import Keychain
from thoughtline.stores.sealing.ring import KeyRing, MasterKey
from thoughtline.stores.spill import SpillFile


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store.db"


BATCHES = [
    turn("s", "t1", '"secret\u2028\\n"', keys=(A, B), calls=("c",), skipped={"k": "why"}),
    refusal("s", "t1", 0, 2),
    notes("z", 3, expect=4),
]


def test_what_is_appended_is_read(store):
    file = SpillFile.create(store)
    lines = [file.append(batch) for batch in BATCHES]
    assert [file.read(line) for line in lines] == BATCHES
    assert list(file.scan()) == list(zip(lines, BATCHES, strict=True))
    assert file.damaged == 0
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert spill.count_waiting(store) == 3
    file.remove()
    assert spill.count_waiting(store) == 0


@pytest.mark.parametrize("damage", ["cut", "flip", "tail"])
def test_damaged_lines_are_skipped_and_counted(store, damage):
    file = SpillFile.create(store)
    lines = [file.append(batch) for batch in BATCHES]
    text = bytearray(file.path.read_bytes())
    if damage == "cut":
        text = text[:-5]
    elif damage == "flip":
        text[lines[1].offset + 30] ^= 1
    else:
        text += b'00000000 {"session":'
    file.close()
    file.path.write_bytes(text)
    [again] = spill.adopt(store)
    missing = {"cut": 2, "flip": 1, "tail": 3}[damage]
    assert [b for _, b in again.scan()] == [b for n, b in enumerate(BATCHES) if n != missing]
    assert again.damaged == 1
    again.remove()


def test_files_that_somebody_holds_are_not_adopted(store):
    script = (
        "import sys\nfrom pathlib import Path\nfrom thoughtline.stores.spill import SpillFile\n"
        "from thoughtline.stores.base import Batch\n"
        "file = SpillFile.create(Path(sys.argv[1]))\n"
        "file.append(Batch(session='s', tenant='T', drafts=()))\n"
        "print('held', flush=True)\nsys.stdin.readline()\n"
    )
    command = [sys.executable, "-c", script, store]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout.readline() == "held\n"
        assert spill.adopt(store) == []
        process.kill()
    [left] = spill.adopt(store)
    assert [batch.session for _, batch in left.scan()] == ["s"]
    assert spill.adopt(store) == []  # it is held now
    left.remove()


def test_an_erased_batch_is_overwritten(store):
    file = SpillFile.create(store)
    lines = [file.append(batch) for batch in BATCHES]
    size = file.path.stat().st_size
    shorter = notes("s")
    assert file.replace(lines[0], shorter) == lines[0]
    assert file.replace(lines[1], None) == lines[1]
    assert b"secret" not in file.path.read_bytes()
    assert file.path.stat().st_size == size
    assert [batch for _, batch in file.scan()] == [shorter, BATCHES[2]]
    longer = notes("s", 50)
    assert file.replace(lines[2], longer).offset == size
    assert [batch for _, batch in file.scan()] == [shorter, longer]
    assert file.damaged == 0
    assert spill.count_waiting(store) == 2
    file.remove()


def test_a_batch_that_does_not_fit_leaves_no_half(store, monkeypatch):
    file = SpillFile.create(store)
    file.append(BATCHES[0])
    before, write = file.path.read_bytes(), os.pwrite

    def full(fd, data, offset):
        if len(data) > 10:
            return write(fd, data[:10], offset)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space"):
        file.append(BATCHES[1])
    monkeypatch.undo()
    assert file.path.read_bytes() == before
    file.append(BATCHES[1])
    assert [batch for _, batch in file.scan()] == BATCHES[:2]
    file.remove()


def test_without_locks_nothing_is_saved(store, monkeypatch):
    monkeypatch.setattr(spill, "fcntl", None)
    with pytest.raises(OSError, match="no locks"):
        SpillFile.create(store)
    assert spill.adopt(store) == []


ONE, TWO = MasterKey("one", b"1" * 32), MasterKey("two", b"2" * 32)


def test_with_keys_no_word_and_no_look_up_key_is_in_the_file(store):
    file = SpillFile.create(store, Keychain(KeyRing([ONE])))
    lines = [file.append(batch) for batch in BATCHES]
    assert [file.read(line) for line in lines] == BATCHES
    assert [batch for _, batch in file.scan()] == BATCHES
    text = file.path.read_bytes()
    assert b"secret" not in text and b"reasoning" not in text and b'"t1"' not in text
    assert file.replace(lines[0], BATCHES[1]) == lines[0]  # it fits, and is read as before
    assert file.read(lines[0]) == BATCHES[1]
    file.close()
    assert spill.sealed_with(store) == {"one"}
    assert spill.count_waiting(store) == 3


@pytest.mark.parametrize("keychain", [None, Keychain(KeyRing([TWO]))], ids=["none", "another"])
def test_a_sealed_line_says_which_key_it_wants(store, keychain):
    file = SpillFile.create(store, Keychain(KeyRing([ONE])))
    file.append(BATCHES[0])
    file.close()
    [left] = spill.adopt(store, keychain)
    with pytest.raises(SealError, match="the key one"):
        list(left.scan())
    left.close()


def test_lines_from_before_there_were_keys_are_read(store):
    file = SpillFile.create(store)
    file.append(BATCHES[0])
    file.close()
    [left] = spill.adopt(store, Keychain(KeyRing([ONE])))
    left.append(BATCHES[1])
    assert [batch for _, batch in left.scan()] == BATCHES[:2]
    assert spill.sealed_with(store) == {"one"}
    left.remove()
