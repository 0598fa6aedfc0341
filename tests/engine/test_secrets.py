"""The secret that credentials are hashed with: made once, for its owner alone."""

import os
import stat
import threading

import pytest

from support.built_gateway import configured
from thoughtline.engine import secrets
from thoughtline.errors import SettingsError
from thoughtline.gateway.build import build
from thoughtline.gateway.settings import (
    StoreSettings,
)

ENV = {"HOME": "/nowhere"}


def stored(path, **fields):
    return configured(store=StoreSettings(url=f"sqlite:///{path}", **fields))


def test_the_secret_lies_beside_the_database_for_its_user_alone(tmp_path):
    path = tmp_path / "data" / "thoughts.db"
    one = build(stored(path), env=ENV)
    secret = path.with_suffix(".secret")
    assert len(secret.read_bytes()) == 32
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(secret.parent.stat().st_mode) == 0o700
    two = build(stored(path), env=ENV)
    assert one.proxy.auth.fingerprint("key") == two.proxy.auth.fingerprint("key")
    other = build(stored(tmp_path / "else.db"), env=ENV)
    assert one.proxy.auth.fingerprint("key") != other.proxy.auth.fingerprint("key")
    assert list(tmp_path.rglob(".secret-*")) == []


def test_without_a_file_for_sessions_the_secret_is_in_the_users_folder(tmp_path):
    env = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "xdg")}
    assert secrets.place("memory://", env) is None
    assert secrets.place("sqlite:////a/b.db?timeout=3", env).as_posix() == "/a/b.secret"


def test_a_secret_that_others_can_read_is_closed(tmp_path):
    path = tmp_path / "a.secret"
    path.write_bytes(b"s" * 32)
    path.chmod(0o644)
    assert secrets.secret(path) == b"s" * 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_a_secret_that_is_none_is_refused_and_kept(tmp_path, content):
    path = tmp_path / "a.secret"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=r"a\.secret has \d+ bytes, expected 32; put back"):
        build(stored(tmp_path / "a.db"), env=ENV)
    assert path.read_bytes() == content


def test_a_secret_that_cannot_be_read_is_explained(tmp_path):
    (tmp_path / "a.secret").mkdir()
    with pytest.raises(
        SettingsError, match=r"a\.secret cannot be read or created \(Is a directory\)"
    ):
        build(stored(tmp_path / "a.db"), env=ENV)


def test_many_processes_at_once_have_one_secret(tmp_path):
    path = tmp_path / "a.secret"
    found, start = [], threading.Barrier(8)

    def make():
        start.wait()
        found.append(secrets.secret(path))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["a.secret"]


def test_on_a_disk_without_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "a.secret"
    assert secrets.secret(path) == path.read_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["a.secret"]


# -- shared stores -------------------------------------------------------------------------------

SHARED = "postgresql://me@db.test/log"


def test_machines_that_share_a_store_share_its_secret(tmp_path):
    file = tmp_path / "a.secret"
    file.write_bytes(bytes(range(32)))
    given = [
        secrets.store_secret(SHARED, {"S": bytes(range(32)).hex() + "\n"}, "env:S"),
        secrets.store_secret(SHARED, {}, f"file:{file}"),
        secrets.store_secret(SHARED, {"THOUGHTLINE_STORE__SECRET": f"file:{file}"}),
        secrets.store_secret(SHARED, {}, f"exec:echo {bytes(range(32)).hex()}"),
    ]
    assert given == [bytes(range(32))] * 4
    assert len({secrets.fingerprint(one) for one in given}) == 1
    assert secrets.fingerprint(bytes(32)) != secrets.fingerprint(given[0]) != given[0][:16]


def test_a_secret_for_a_shared_store_is_never_made_up(tmp_path):
    env = {"HOME": str(tmp_path)}
    with pytest.raises(SettingsError, match=r"store\.secret.*openssl rand -hex 32"):
        secrets.store_secret(SHARED, env)
    with pytest.raises(SettingsError, match=r"store\.secret"):
        build(configured(store=StoreSettings(url=SHARED)), env=env)
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("text", ["hush", "ab" * 31, "zz" * 32, ""])
def test_what_is_no_secret_is_not_shown(text):
    with pytest.raises(SettingsError, match=r"store\.secret") as caught:
        secrets.store_secret(SHARED, {"S": text}, "env:S")
    assert "hush" not in str(caught.value)


def test_the_secret_of_a_file_store_may_come_from_elsewhere(tmp_path):
    source = {"S": "cd" * 32}
    made = build(stored(tmp_path / "a.db", secret="env:S"), env={"HOME": str(tmp_path), **source})
    assert made.proxy.auth.fingerprint("key")
    assert not (tmp_path / "a.secret").exists()
