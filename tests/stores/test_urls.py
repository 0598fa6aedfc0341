"""Which store a URL names."""

import pytest

from stores.samples import notes
from thoughtline.errors import StoreError
from thoughtline.stores import open_store
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.sqlite import SqliteStore


def test_memory():
    assert isinstance(open_store("memory://"), MemoryStore)


async def test_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///some file.db")
    assert isinstance(store, SqliteStore)
    monkeypatch.chdir("/")  # what counts is where it was opened
    await store.append(notes("s"))
    await store.close()
    assert (tmp_path / "some file.db").exists()


async def test_an_absolute_path_and_options(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/a?b.db".replace("?b", "#%20"))
    await store.append(notes("s"))
    await store.close()
    assert [f.name for f in tmp_path.iterdir()] == ["a#%20.db"]
    store = open_store(f"sqlite:///{tmp_path}/b.db?synchronous=full&timeout=0.5")
    assert store._file.timeout == 0.5
    await store.append(notes("s"))
    (level,) = await store._writer.run(lambda db: db.execute("PRAGMA synchronous").fetchone())
    assert level == 2
    await store.close()


def test_opening_does_no_io(tmp_path):
    open_store(f"sqlite:///{tmp_path}/not/there/x.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "thoughtline.db",
        "sqlite://",
        "sqlite:///",
        "sqlite:////directory/",
        "sqlite:relative.db",
        "memory://name",
        "memory://?a=b",
        "mysql://u:secret@host/db",
        "/absolute/path.db",
    ],
)
def test_anything_else_names_what_is_supported(url):
    with pytest.raises(StoreError, match=r"memory://, sqlite:///rel.* sqlite:////abs") as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("query", ["timeout=soon", "sync=full", "synchronous=off", "timeout="])
def test_wrong_options_are_named(query):
    with pytest.raises(StoreError, match=r"timeout|synchronous"):
        open_store(f"sqlite:///x.db?{query}")
