"""Events of an earlier version are imported, fold, are found and are replayed.

`sessions.jsonl` and `folded.json` were written by version 98340cd, before the modules were put into
layers: four conversations through the gateway (`GATEWAY`), one with a thought that was refused, one
with an endpoint that wants something of its own, and a session of the library with a fork.
`folded.json` has for every head its turns: id, outcome, digests of the thoughts, calls, texts.
`log.db.gz` is the file that they lay in, whose layout is not read any more.
"""

import gzip
import hashlib
import json
from pathlib import Path

import pytest

import thoughtline
from stores.samples import notes
from support.agents import TOOLS, provider, wired
from support.clients import client
from support.gateway import InProcessGateway, SimWire
from thoughtline.agents import export
from thoughtline.agents.export import import_lines
from thoughtline.agents.log import TENANT
from thoughtline.cli.session_list import session_row
from thoughtline.clock import SystemClock
from thoughtline.errors import StoreError
from thoughtline.stores.base import INTERNAL_PREFIX, EntryFilter
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.testing import Reply, simulator
from thoughtline.testing.sims.spelling import write
from upstream_bytes.recording import FIELDS

HERE = Path(__file__).parent
GATEWAY = {"deepseek": "deepseek", "openai": "openai", "claude": "anthropic", "gemini": "gemini"}
FOLDED = json.loads((HERE / "folded.json").read_text())
LINES = (HERE / "sessions.jsonl").read_text().splitlines()


STARTS = [at for at, line in enumerate(LINES) if "thoughtline_export" in line]
SESSIONS = [LINES[a:b] for a, b in zip(STARTS, [*STARTS[1:], None], strict=True)]
SESSIONS.sort(key=lambda lines: any('"session_forked"' in line for line in lines))


def owner(lines):
    """The tenant of a session: that of the gateway's client, of all, or of the library."""
    first = json.loads(lines[1])
    if first["session"].startswith(INTERNAL_PREFIX):
        return ""
    account = first["data"].get("target", {}).get("account") if first["seq"] == 0 else None
    return account if account and first["session"] != "agent" else TENANT


@pytest.fixture
async def file(tmp_path):
    place = tmp_path / "log.db"
    store = SqliteStore(place)
    for lines in SESSIONS:
        await import_lines(store, lines, tenant=owner(lines), clock=SystemClock())
    await store.close()
    return place


async def folded(log):
    """All sessions of a log, as `folded.json` has them."""
    told = {}
    for id in sorted(summary.session for summary in await log.store.sessions(limit=100)):
        chat = await log.resume(id)
        told[id] = {head: [row(turn) for turn in chat.switch(head).turns] for head in chat.heads}
    return told


def row(turn):
    thoughts = [hashlib.sha256(one.raw.encode()).hexdigest()[:12] for one in turn.thoughts]
    texts = [part.text for part in turn.output if isinstance(part, thoughtline.Text)]
    return [turn.id, str(turn.outcome), thoughts, [call.name for call in turn.calls], texts]


async def exported(log):
    lines = []
    for id in FOLDED:
        lines += [line async for line in log.export_lines(id, alone=True)]
    return [line.strip() for line in lines]


def unescaped(lines):
    """Lines as they were written before: data with a line separator in it was a string."""
    written = []
    for line in lines:
        members = json.loads(line)
        if members.pop("escaped", False):
            event = export._event(export._lines.decode(line))
            line = json.dumps(members | {"data": event.data})  # noqa: PLW2901
        written.append(line)
    return written


async def test_a_file_of_before_is_refused_and_left_as_it_is(tmp_path):
    place = tmp_path / "log.db"
    place.write_bytes(gzip.decompress((HERE / "log.db.gz").read_bytes()))
    before = place.read_bytes()
    async with thoughtline.open(f"sqlite:///{place}") as log:
        for work in (log.sessions(), log.store.append(notes("s"))):
            with pytest.raises(
                StoreError, match=r"log\.db was written before .*thoughtline export"
            ):
                await work
    assert place.read_bytes() == before


async def test_the_events_fold(file):
    async with thoughtline.open(f"sqlite:///{file}") as log:
        assert await folded(log) == FOLDED


async def test_what_is_counted_and_listed_of_the_events_stays(file):
    store = SqliteStore(file)
    stats = await store.stats()
    assert (stats.sessions, stats.events, stats.turns) == (9, 170, 29)
    assert (stats.entries, stats.chars) == (29, 8755)
    listed = await store.entries(limit=100, thoughts=True)
    assert len({entry.turn for entry in listed}) == 29
    assert all(entry.thoughts for entry in listed)
    feed = await store.history(None, limit=1000)
    assert (len(feed.events), feed.position) == (170, 170)
    call = next(entry.call for entry in listed if entry.call)
    same = {entry.turn for entry in listed if entry.call == call}
    assert {entry.turn for entry in await store.entries(EntryFilter(call=call))} == same
    await store.close()


async def test_the_events_are_exported_as_they_were(file):
    async with thoughtline.open(f"sqlite:///{file}") as log:
        assert unescaped(await exported(log)) == LINES


async def test_exported_sessions_are_imported_fold_and_are_exported_again(tmp_path):
    async with thoughtline.open(f"sqlite:///{tmp_path}/new.db") as log:
        for lines in SESSIONS:
            await log.import_lines(lines)
        assert await folded(log) == FOLDED
        assert unescaped(await exported(log)) == LINES


async def through(gateway, talker):
    """One exchange of a client through a gateway in this process."""
    head = {"authorization": f"Bearer {talker.key}", **talker.headers}
    answer = await gateway.post(talker.path, write(talker.request()), head)
    assert answer.status == 200, answer.body
    talker.absorb(Reply(status=200, headers=dict(answer.headers), chunks=(answer.body,)))


@pytest.mark.parametrize("name", GATEWAY)
async def test_thoughts_in_the_file_are_found_and_replayed(file, name):
    """The provider has emitted them again, and judges what comes back."""
    sim, store = simulator(name), SqliteStore(file)
    talker = client(
        sim.dialect,
        sim,
        model=sim.models()[0],
        opening=f"Please mend {name}",
        **FIELDS.get(name, {}),
    )
    talker.talk(4)
    talker.echo = "strip"
    gateway = InProcessGateway(SimWire(sim), GATEWAY[name], store=store, url=f"http://{name}")
    before = {summary.session for summary in await store.sessions(limit=100)}
    for _ in range(2):
        await through(gateway, talker)
        audit = sim.requests[-1].audit
        assert (audit.altered, audit.missing, audit.misplaced, audit.foreign) == (0, 0, 0, 0)
        assert audit.exact >= 3
    assert {summary.session for summary in await store.sessions(limit=100)} == before
    await store.close()


async def test_what_an_endpoint_wants_is_still_known(file):
    sim, store = simulator("deepseek", seed=7), SqliteStore(file)
    opening = "Please mend what is missing"
    talker = client("chat", sim, model=sim.models()[0], opening=opening)
    talker.talk(2)
    talker.echo = "strip"
    gateway = InProcessGateway(SimWire(sim), "generic", store=store, url="http://quirk")
    await through(gateway, talker)
    assert [reply.status for reply in gateway.wire.replies] == [200]
    await store.close()


async def test_a_session_of_the_library_goes_on(file):
    sim = simulator("kimi-k3")
    given = {"provider": provider(sim), "tools": TOOLS, "system": "Be brief."}
    async with thoughtline.open(wire=wired(sim), secret=b"secret") as log:
        chat = await log.create(**given)  # the provider emits the same thoughts again
        await chat.run("One")
        await chat.run("Two")
    async with thoughtline.open(f"sqlite:///{file}", wire=wired(sim), secret=b"secret") as log:
        chat = await log.resume("agent", **given)
        answer = await chat.run("Three")
        assert answer.outcome is thoughtline.Outcome.COMPLETED
    audit = sim.requests[-1].audit
    assert (audit.altered, audit.missing, audit.misplaced, audit.foreign) == (0, 0, 0, 0)
    assert audit.exact >= 6


async def test_tokens_have_the_meaning_of_today(file):
    """Claude's prompt was counted without its cache, Gemini's output without its thoughts."""
    async with thoughtline.open(f"sqlite:///{file}") as log:
        turns = []
        for summary in await log.store.sessions(limit=100):
            chat = await log.resume(summary.session)
            turns += [t for head in chat.heads for t in chat.switch(head).turns if t.usage]
    assert {turn.target.dialect for turn in turns} == {"chat", "responses", "messages", "gemini"}
    for turn in turns:
        assert (turn.usage.cached or 0) <= turn.usage.input
        assert (turn.usage.reasoning or 0) <= turn.usage.output


async def test_the_command_line_counts_tokens_as_the_library_does(file):
    async with thoughtline.open(f"sqlite:///{file}") as log:
        for summary in await log.store.sessions(limit=100):
            row = await session_row(log.store, summary)
            chat = await log.resume(summary.session)
            own = [t.usage for t in chat.tree if t.usage and t.session == summary.session]
            assert row.input == sum(usage.input or 0 for usage in own)
            assert row.output == sum(usage.output or 0 for usage in own)
