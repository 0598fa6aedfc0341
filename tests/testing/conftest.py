"""The simulators themselves are judged by what they say plainly."""

import pytest

from thoughtline.testing.sims.oddities import VARIABLE


@pytest.fixture(autouse=True)
def plain_answers(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
