"""The index is made from the log, as it was."""

import pytest

import thoughtline
from support.agents import lines_of, talking
from thoughtline.engine.reindex import index_entries


@pytest.mark.parametrize("name", ["deepseek", "openai", "gemini"])
async def test_index_entries_are_made_anew_as_they_were(name):
    """A gateway on the other store finds the same thoughts under the same names."""
    async with talking(name) as (chat, sim):
        await chat.run("One")
        sim.fail_next("500")
        await chat.run("Two")
        await chat.run("Three")
        lines = await lines_of(chat.log, chat.id)
        here = chat.log.store
        async with thoughtline.open() as other:
            await other.import_lines(lines)
            made = index_entries([await chat.log.read(chat.id)])
            names = [n for entry in made for n in entry.keys]
            mine = await here.find("local", names)
            yours = await other.store.find("local", names)
            assert mine.keys() == yours.keys()
            assert {n: [m.turn for m in found] for n, found in mine.items()} == {
                n: [m.turn for m in found] for n, found in yours.items()
            }
            for n, entries in mine.items():
                for a, b in zip(entries, yours[n], strict=True):
                    assert (a.thoughts, a.parent, a.skipped) == (b.thoughts, b.parent, b.skipped)
