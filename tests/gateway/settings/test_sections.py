"""The settings as values, and their defaults."""

import pickle
from pathlib import Path

import pytest

from support.settings import SECRET
from thoughtline.gateway.settings import (
    exposed,
)
from thoughtline.gateway.settings.sections import StoreSettings


def test_nothing_is_needed(place):
    settings = place.load()
    assert (settings.server.host, settings.server.port, settings.server.workers) == (
        "127.0.0.1",
        7337,
        1,
    )
    assert settings.store.retention == 30 * 86400
    assert settings.store.url.startswith("sqlite:////")
    assert settings.store.url.endswith("/thoughtline/thoughtline.db")
    assert str(place.home) in settings.store.url
    assert not settings.access.admin_token
    assert not place.home.exists()  # nothing was created
    assert not exposed(settings)


def test_retention_in_a_file(place):
    place.project("[store]\nretention = '12h'\nmemory_bytes = '1GiB'\n[replay]\nkeep_last = 'none'")
    settings = place.load()
    assert settings.store.retention == 43200
    assert settings.store.memory_bytes == 1 << 30
    assert settings.replay.keep_last is None
    assert place.load(THOUGHTLINE_STORE__RETENTION="0").store.retention == 0


def test_settings_travel_to_workers(place):
    settings = place.load(DEEPSEEK_API_KEY=SECRET)
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert Path(place.cwd).exists()


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, 2.0),
        ({"url": "sqlite:///t.db"}, 2.0),
        ({"url": "postgresql://db/t"}, 10.0),
        ({"url": "postgresql://db/t", "commit_wait": 0.0}, 0.0),
        ({"url": "sqlite:///t.db", "commit_wait": 5.0}, 5.0),
    ],
)
def test_a_turn_of_a_shared_store_is_waited_for_longer(given, seconds):
    assert StoreSettings(**given).commit_timeout == seconds
