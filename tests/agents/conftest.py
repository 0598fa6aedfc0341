"""What these tests share."""

import pytest

from thoughtline.agents import caller


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """How long the loop would have waited; it does not."""
    waited = []

    async def pause(seconds):
        waited.append(seconds)

    monkeypatch.setattr(caller, "pause", pause)
    return waited
