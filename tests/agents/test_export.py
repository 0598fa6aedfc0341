"""Sessions as lines of JSON, out of one store and into another."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thoughtline
from support.agents import TOOLS, check, lines_of, provider, talking, wired
from thoughtline.agents import export
from thoughtline.log.events import Event


async def test_an_imported_session_goes_on_as_if_nothing_had_happened():
    async with talking("claude-bound") as (chat, sim):
        await chat.run("One")
        fork = await chat.fork()
        await fork.run("Two")
        lines = await lines_of(chat.log, fork.id)
        async with thoughtline.open(wire=wired(sim), secret=b"secret") as other:
            assert await other.import_lines(line.encode() for line in lines) == [chat.id, fork.id]
            moved = await other.resume(
                fork.id, provider=provider(sim), tools=TOOLS, system="Be brief."
            )
            assert moved.turns == fork.turns
            await moved.run("Three")
            check(sim, moved.turns)


async def test_importing_again_extends_and_never_overwrites():
    async with talking("deepseek") as (chat, _), thoughtline.open() as other:
        await chat.run("One")
        early = await lines_of(chat.log, chat.id)
        await chat.run("Two")
        late = await lines_of(chat.log, chat.id)
        for lines in (early, late, late, early):
            assert await other.import_lines(lines) == [chat.id]
        assert await lines_of(other, chat.id) == late


async def test_an_id_that_is_taken_is_a_conflict_or_gets_another_name():
    async with talking("deepseek") as (chat, _), thoughtline.open() as other:
        await chat.run("One")
        fork = await chat.fork()
        await fork.run("Two")
        lines = await lines_of(chat.log, fork.id)
        taken = [line.replace('"One"', '"Eins"') for line in lines]
        await other.import_lines(taken[: len(await chat.log.store.read(chat.id)) + 1])
        with pytest.raises(thoughtline.Conflict, match=r"differs from event 1 on; nothing was"):
            await other.import_lines(lines)
        assert len(await other.sessions()) == 1
        first, second = await other.import_lines(lines, rename=True)
        assert first != chat.id
        assert second == fork.id
        moved = await other.resume(second)
        assert [t.id for t in moved.turns] == [t.id for t in fork.turns]
        assert (await other.store.read(second))[0].body().session == first


async def test_an_export_without_its_origin_needs_it_there():
    async with talking("deepseek") as (chat, _), thoughtline.open() as other:
        await chat.run("One")
        fork = await chat.fork()
        await fork.run("Two")
        alone = await lines_of(chat.log, fork.id, alone=True)
        with pytest.raises(
            thoughtline.ThoughtlineError, match="neither in these lines nor in this store"
        ):
            await other.import_lines(alone)
        await other.import_lines(await lines_of(chat.log, chat.id))
        assert await other.import_lines(alone) == [fork.id]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["{"], "line 1 is not an event"),
        (['{"thoughtline_export": 2}'], "export version 2"),
        (['{"session":"s"}'], "line 1 is not an event of a session"),
        (["", '{"thoughtline_export":1}'], "line 2 is not an event"),
    ],
)
async def test_lines_that_are_no_export(lines, says):
    async with thoughtline.open() as log:
        with pytest.raises(thoughtline.Unreadable, match=says):
            await log.import_lines(lines)


async def test_missing_lines_are_noticed():
    async with talking("deepseek") as (chat, _), thoughtline.open() as other:
        await chat.run("One")
        lines = await lines_of(chat.log, chat.id)
        with pytest.raises(thoughtline.Unreadable, match=r"line 3.*event 2, expected 1"):
            await other.import_lines([*lines[:2], *lines[3:]])
        assert await other.sessions() == []


TEXT = st.text(max_size=8) | st.text(alphabet='a\\u"\n\x85\u2028\u20290528n', max_size=9)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


DATA = JSON.map(json.dumps) | JSON.map(lambda v: json.dumps(v, indent=1, ensure_ascii=False))


@given(st.lists(st.tuples(st.text(min_size=1, max_size=9), DATA), min_size=1, max_size=6))
def test_every_event_comes_back_to_the_byte(facts):
    events = [
        Event(
            session="s",
            seq=seq,
            id=f"e{seq}",
            parent="",
            at=0.1 + seq,
            type=type,
            version=3,
            data=data,
        )
        for seq, (type, data) in enumerate(facts)
    ]
    lines = [export.line(event) for event in events]
    assert all(len(line.splitlines()) == 1 for line in lines)
    assert export.read_lines(lines) == {"s": events}


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
@pytest.mark.parametrize("text", ["a{}b", "\\{}", "{}{}\\u2028x\\\\"])
def test_data_stays_json_when_a_text_has_a_line_separator(separator, text):
    body = {"parts": [{"type": "text", "text": text.format(separator, separator)}]}
    data = json.dumps(body, ensure_ascii=False)
    event = Event("s", 0, "e", "", 0.5, "user_message", 1, data)
    line = export.line(event)
    assert len(line.splitlines()) == 1
    assert json.loads(line)["data"] == body
    assert export.read_lines([line]) == {"s": [event]}


def test_data_with_both_spellings_of_a_separator_comes_back_as_it_was():
    event = Event("s", 0, "e", "", 0.5, "user_message", 1, '["\u2028", "\\u2028"]')
    assert export.read_lines([export.line(event)]) == {"s": [event]}
