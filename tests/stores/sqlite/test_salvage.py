"""Damaged files: an error that names the file and the way out, and the rest stays readable."""

import asyncio
import random
import shlex
import subprocess
import sys

import pytest

from stores.samples import appended, notes, thought, turn
from support.sqlite_files import look
from thoughtline.errors import Corrupt, StoreError, Unavailable
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.stores.sqlite.salvage import SalvageReport, main, salvage

PAGE = 4096
SCHEMA_PAGES = "SELECT pageno FROM dbstat WHERE name = 'sqlite_schema'"
SESSIONS = [f"session-{n}" for n in range(60)]


def name(session, n):
    return f"{session}/{n}".encode()


@pytest.fixture
async def filled(tmp_path):
    """A file with many sessions, and what is in it."""
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    for n in range(4):
        for session in SESSIONS:
            raw = f'"{session} {n} {"x" * 600}"'
            await store.append(turn(session, f"{session}.{n}", raw, keys=[name(session, n)]))
    events = {session: await store.read(session) for session in SESSIONS}
    await store.close()
    return path, events


def overwrite(path, pages):
    with path.open("r+b") as file:
        for page in pages:
            file.seek(page * PAGE)
            file.write(random.Random(page).randbytes(PAGE))


async def readable(path, events):
    """The sessions that can still be read; the others must say clearly why not."""
    store = SqliteStore(path)
    fine = set()
    for session in SESSIONS:
        try:
            assert await store.read(session) == events[session]
            fine.add(session)
        except Corrupt as error:
            assert_clear(error, path)
    await store.close()
    return fine


def assert_clear(error, path):
    assert f"{path} is damaged" in str(error)
    assert f"salvage {shlex.quote(str(path))} " in str(error)
    assert "move the damaged file away" in str(error)


async def check_salvaged(path, into, events):
    """Everything in the new file is true, and everything that is missing is reported."""
    done = await salvage(path, into)
    store = SqliteStore(into)
    lost = {loss.session: loss for loss in done.losses}
    count = 0
    for session in SESSIONS:
        kept = await store.read(session)
        assert kept == events[session][: len(kept)]
        if len(kept) < len(events[session]) and session in lost:
            assert lost[session].kept == len(kept)
            assert lost[session].lost == len(events[session]) - len(kept)
        count += len(kept)
        for n in range(4):
            found = await store.find("T", [name(session, n)])
            for indexed in found.get(name(session, n), []):
                assert indexed.turn == f"{session}.{n}"
                assert indexed.thoughts == (thought(f'"{session} {n} {"x" * 600}"'),)
    assert done.events == count == (await store.stats()).events
    assert done.sessions == (await store.stats()).sessions
    (event,) = await appended(store, notes("goes on"))
    assert event.seq == 0
    await store.close()
    return done


async def test_overwritten_pages(filled, tmp_path):
    path, events = filled
    pages = path.stat().st_size // PAGE
    overwrite(path, random.Random(1).sample(range(pages // 3, pages), 6))
    fine = await readable(path, events)
    assert 0 < len(fine) < len(SESSIONS)
    done = await check_salvaged(path, tmp_path / "new.db", events)
    assert 0 < done.events < sum(map(len, events.values()))
    assert done.index > 0


@pytest.mark.parametrize("seed", range(4))
async def test_any_overwritten_page(filled, tmp_path, seed):
    path, events = filled
    schema = {page - 1 for (page,) in look(path, SCHEMA_PAGES)}  # without it there are no tables
    pages = [page for page in range(path.stat().st_size // PAGE) if page not in schema]
    overwrite(path, [random.Random(seed).choice(pages)])
    await readable(path, events)
    await check_salvaged(path, tmp_path / "new.db", events)


async def test_a_truncated_file(filled, tmp_path):
    path, events = filled
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size * 6 // 10)
    store = SqliteStore(path)
    for call in (store.append(notes("s")), store.read("session-1"), store.stats()):
        with pytest.raises(Corrupt) as caught:
            await call
        assert_clear(caught.value, path)
    await store.close()
    done = await check_salvaged(path, tmp_path / "new.db", events)
    assert 0 < done.events < sum(map(len, events.values()))


async def test_garbled_text_is_noticed(filled, tmp_path):
    path, events = filled
    content = path.read_bytes()
    assert b"session-7 2 xxx" in content
    path.write_bytes(content.replace(b"session-7 2 xxx", b"session-7 2 x\xffx"))
    store = SqliteStore(path)
    events_7 = await store.read("session-7")
    assert [e.seq for e in events_7] == list(range(12)) and "session-7" in store.damage
    assert await store.read("session-8") == events["session-8"]
    await store.close()
    done = await check_salvaged(path, tmp_path / "new.db", events)
    assert [loss.session for loss in done.losses] == ["session-7"]
    assert done.sessions == len(SESSIONS)


async def test_an_undamaged_file_is_copied_whole(filled, tmp_path):
    path, _ = filled
    before = path.read_bytes()
    done = await salvage(path, tmp_path / "new.db")
    assert done == SalvageReport(sessions=60, events=720, index=240)
    assert path.read_bytes() == before
    old, new = SqliteStore(path), SqliteStore(tmp_path / "new.db")
    assert await new.stats() == await old.stats()
    assert await new.sessions(limit=100) == await old.sessions(limit=100)
    keys = [name(session, n) for session in SESSIONS for n in range(4)]
    assert await new.find("T", keys) == await old.find("T", keys)
    await old.close()
    await new.close()


async def test_what_is_still_in_the_log_is_salvaged_too(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    written = await appended(store, notes("s", 3))  # not closed: the log is not in the file yet
    done = await salvage(tmp_path / "store.db", tmp_path / "new.db")
    assert done.events == len(written)
    await store.close()


@pytest.mark.parametrize("content", [b"no database at all" * 300, bytes(8192)])
async def test_what_is_no_database(tmp_path, content):
    path = tmp_path / "store.db"
    path.write_bytes(content)
    store = SqliteStore(path)
    for call in (store.append(notes("s")), store.read("s")):
        with pytest.raises(Corrupt) as caught:
            await call
        assert_clear(caught.value, path)
    await store.close()
    with pytest.raises(Corrupt, match=r"nothing of .* can be read"):
        await salvage(path, tmp_path / "new.db")
    assert path.read_bytes() == content


async def test_the_way_out_works_while_the_store_runs(filled):
    path, events = filled
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    store = SqliteStore(path)
    with pytest.raises(Corrupt):
        await store.append(notes("s"))
    new = path.with_name("store.db.salvaged")
    await salvage(path, new)
    new.replace(path)
    await store.append(notes("s"))
    kept = await store.read("session-0")
    assert kept == events["session-0"][: len(kept)]
    await store.close()


async def test_damage_in_one_session_does_not_stop_others_from_being_written(filled):
    path, _ = filled
    content = path.read_bytes()
    path.write_bytes(content.replace(b"turn\xabsession-7.", b"turn\xabsession\xff7."))
    store = SqliteStore(path)
    batches = [turn(session, f"{session}.1", keys=[b"again"]) for session in SESSIONS[5:10]]
    outcomes = await asyncio.gather(*map(store.append, batches), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [int] * 5
    found = (await store.find("T", [b"again"]))[b"again"]
    assert {entry.session for entry in found} == set(SESSIONS[5:10])
    await store.close()


async def test_salvage_says_no(tmp_path):
    with pytest.raises(Unavailable, match="not there"):
        await salvage(tmp_path / "nothing.db", tmp_path / "new.db")
    (tmp_path / "old.db").touch()
    (tmp_path / "new.db").touch()
    with pytest.raises(StoreError, match="exists already"):
        await salvage(tmp_path / "old.db", tmp_path / "new.db")


def test_the_command(tmp_path, capsys):
    assert main([]) == 2
    assert main([str(tmp_path / "nothing.db"), str(tmp_path / "new.db")]) == 1
    assert "usage" in (said := capsys.readouterr().err)
    assert "nothing.db is not there" in said


async def test_the_command_as_the_error_spells_it(filled):
    path, _ = filled
    overwrite(path, range(30, 36))
    command = [sys.executable, "-m", "thoughtline.stores.sqlite.salvage"]
    done = subprocess.run(  # noqa: ASYNC221 — nothing else runs in this loop
        [*command, path, f"{path}.salvaged"], capture_output=True, text=True, check=True
    )
    assert "events kept" in done.stdout or "cannot be read" in done.stdout
    assert "copied" in done.stdout
    assert done.stderr == ""
