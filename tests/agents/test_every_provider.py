"""With every strict simulated provider: long sessions with tools, forks, a switch and a resume."""

import json
import sys
from pathlib import Path

import anyio
import pytest

import thoughtline
from support.agents import TOOLS, check, provider, talking, wired
from thoughtline.testing import PROVIDERS, serving, simulator

HOMES = ("deepseek", "openai", "claude", "gemini", "kimi-k3")


def models(sim) -> tuple[str, str]:
    """Two models; the same one twice where there is only one."""
    first, *rest = sim.models()
    return first, rest[0] if rest else first


def accepted(sim) -> bool:
    return all(record.reply.status == 200 for record in sim.requests)


@pytest.mark.parametrize("name", PROVIDERS)
async def test_forks_rewinds_and_switches(name):
    async with talking(name) as (chat, sim):
        home, away = models(sim)
        answers = [await chat.run(f"Please mend file {number}") for number in range(3)]
        assert [a.outcome for a in answers] == ["completed"] * 3
        check(sim, chat.turns)
        main = chat.head

        fork = await chat.fork(answers[0].turn)
        await fork.run("Elsewhere")
        check(sim, fork.turns)
        assert len(fork.turns) > len(answers[0].turns)

        chat.rewind(answers[1].turns[0].id)  # in the middle of a tool loop
        await chat.run("Never mind")
        check(sim, chat.turns)
        assert len(chat.heads) == 2

        chat.switch(main)
        for model in (away, home, home):
            chat.use(provider(sim, model))
            for number in range(2):
                answer = await chat.run(f"With {model} now, {number}")
                assert answer.outcome == "completed", answer.reason
                check(sim, chat.turns)
        assert accepted(sim)
        assert len(chat.turns) >= 24


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("away", PROVIDERS)
async def test_to_another_provider_and_back(home, away):
    """Sealed thoughts stay behind with a reason, and are used again at home."""
    here, there = simulator(home), simulator(away, seed=1)
    if home == away:
        there.provider = f"{away}-too"
    async with thoughtline.open(wire=wired(here, there), secret=b"secret") as log:
        chat = await log.create(provider=provider(here), tools=TOOLS, system="Be brief.")
        await chat.run("One")
        await chat.run("Two")
        seals = [t.raw for turn in chat.turns for t in turn.thoughts if t.sealed]
        policy = provider(simulator(away)).policy
        chat.use(provider(there, policy=policy))
        for number in range(2):
            answer = await chat.run(f"And now {number}")
            assert answer.outcome == "completed", answer.reason
        bodies = b"".join(record.request.body for record in there.requests).decode()
        assert not [raw for raw in seals if raw.strip('"')[:200] in bodies]
        if provider(here).policy != policy:  # plain text stays with its own
            audits = [record.audit for record in there.requests]
            assert all(audit.foreign == audit.misplaced == 0 for audit in audits)
        if seals and "claude" not in (home, away):  # does not read what stands before a loop
            reasons = {decision.reason for decision in answer.turns[-1].replay}
            assert reasons & {"foreign provider", "foreign endpoint", "forbidden", "none"}

        chat.use(provider(here))
        answer = await chat.run("Home again")
        assert answer.outcome == "completed", answer.reason
        # It may not take what another made without a thought: it says so once, and never again.
        for sim in (here, there):
            refused = [record for record in sim.requests if record.reply.status != 200]
            assert len(refused) <= 1
            assert accepted(sim) or any(not turn.thoughts for turn in chat.turns)
        last = here.requests[-1].audit
        assert last.altered == last.misplaced == last.missing == 0
        assert last.exact > 0
        if provider(here).policy != policy:
            assert last.foreign == 0


@pytest.mark.slow
async def test_thirty_turns_and_a_resume_in_a_new_process(tmp_path):
    """The second half is another process, which knows the file and nothing else."""
    script, file = Path(__file__).parent / "long_session.py", tmp_path / "agent.db"
    with serving() as served:
        roots = {name: served.root(name) for name in PROVIDERS}
        told = []
        for part in ("first", "second"):
            command = [sys.executable, script, part, file, json.dumps(roots)]
            made = await anyio.run_process(command, check=False)
            assert made.returncode == 0, made.stderr.decode()
            told.append(json.loads(made.stdout))
    async with thoughtline.open(f"sqlite:///{file}") as log:
        for name in PROVIDERS:
            sim = served[name]
            assert accepted(sim)
            sessions = {id for part in told for id in part[name]}
            assert len(sessions) == 3  # the long one and two forks
            seen = set()
            for id in sessions:
                chat = await log.resume(id)
                for head in chat.heads:
                    path = chat.switch(head).turns
                    for length in range(1, len(path) + 1):
                        if path[length - 1].id not in seen:
                            check(sim, path[:length])
                            seen.add(path[length - 1].id)
            assert len(seen) == len(sim.requests)
            long = await log.resume(f"long-{name}")
            assert len(long.turns) >= 30
            assert len(long.heads) >= 2
