"""Realistic simulators: the same conversation gets the same odd answers, and takes them back."""

import pytest

from support.clients import client
from support.odd_answers import EVERY, FIELDS, SHAPES, SHOWN
from thoughtline.testing import PROVIDERS, simulator

NAMES = sorted(set(PROVIDERS) - {"deepseek-r1"})  # which takes back no thought at all


def talk(name, *, stream=False, turns=6, **options):
    sim = simulator(name, **options)
    talker = client(
        sim.dialect,
        sim,
        model=sim.models()[0],
        stream=stream or name == "codex",
        **FIELDS.get(name, {}),
    )
    talker.talk(turns)
    return sim


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", NAMES)
def test_a_realistic_provider_takes_back_what_it_has_said(name, stream):
    for seed in range(2):
        sim = talk(name, stream=stream, realistic=True, seed=seed, turns=8)
        assert all(record.audit.clean for record in sim.requests)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_answers(name):
    told = [
        [record.reply.chunks for record in talk(name, stream=True, **how).requests]
        for how in (
            {"realistic": True, "clock": lambda: 0.0},
            {"realistic": True, "clock": lambda: 0.0},
            {"realistic": False, "clock": lambda: 0.0},
        )
    ]
    assert told[0] == told[1] != told[2]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("name", "oddity"), EVERY)
def test_an_odd_answer_is_taken_back_by_whoever_gave_it(name, oddity, stream):
    sim = talk(name, stream=stream, realistic=False, oddities=(oddity,), turns=4)
    assert all(record.audit.clean for record in sim.requests)


def test_every_oddity_is_in_a_list():
    for dialect, tables in SHAPES.items():
        assert set(SHOWN[dialect]) <= {name for table in tables for name in table}
