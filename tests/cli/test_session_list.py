"""What `thoughtline sessions` says of each session."""

import json

import pytest

from support.command_line import chat, run
from thoughtline.cli.session_list import ListedSession, session_lines, session_row
from thoughtline.clock import SystemClock
from thoughtline.log.events import Outcome, TurnEnded, TurnStarted, Usage, UserMessage, draft
from thoughtline.log.parts import Origin, Text
from thoughtline.stores.base import Batch
from thoughtline.stores.memory import MemoryStore


@pytest.mark.usefixtures("home")
def test_model_turns_and_tokens_are_shown():
    chat(says="One\nTwo\n")
    [row] = json.loads(run("sessions", "--json").stdout)
    assert (row["turns"], row["models"], row["words"]) == (2, ["deepseek-v4-flash"], "One")
    assert row["input"] > 0 and row["output"] > 0
    [line] = run("sessions").stdout.splitlines()
    tokens = f"{row['input']:,} in, {row['output']:,} out"
    assert "2 turns" in line and tokens in line and "deepseek-v4-flash" in line and "One" in line


def written(*bodies):
    clock = SystemClock()
    drafts = []
    for body in bodies:
        parent = drafts[-1].id if drafts and not isinstance(body, TurnStarted) else ""
        parent = next((d.id for d in reversed(drafts) if d.type == "turn_started"), "") or parent
        drafts.append(draft(body, id=clock.new_id(), parent=parent, at=1.0))
    return drafts


async def row_of(*bodies):
    store = MemoryStore()
    await store.append(Batch(session="s", tenant="t", drafts=tuple(written(*bodies))))
    [summary] = await store.sessions()
    return await session_row(store, summary)


async def test_the_model_that_answered_counts_else_the_one_that_was_asked():
    ended = TurnEnded(outcome=Outcome.COMPLETED, model="m-0513", usage=Usage(input=3, output=4))
    row = await row_of(
        TurnStarted(target=Origin(model="m")),
        UserMessage(parts=(Text(text="Hello\n  there"),)),
        ended,
        TurnStarted(target=Origin(model="m")),
        ended,
        TurnStarted(target=Origin(model="other")),
        TurnEnded(outcome=Outcome.FAILED),
        TurnStarted(),
    )
    assert (row.models, row.turns, row.words) == (["m-0513", "other"], 4, "Hello there")
    assert (row.input, row.output) == (6, 8)


def test_a_terminal_gets_a_head():
    row = ListedSession(session="s", tenant="t", created=0.0, touched=0.0, events=1, turns=1)
    assert [len(list(session_lines([row], head=head))) for head in (True, False)] == [2, 1]
    assert list(session_lines([], head=True)) == []


async def test_long_sessions_are_read_to_the_end():
    row = await row_of(*[TurnStarted(target=Origin(model="m"))] * 1203)
    assert row.turns == 1203
