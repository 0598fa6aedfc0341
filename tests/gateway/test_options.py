"""The proxy's options mean what the settings say where nothing is set."""

from thoughtline.gateway.options import ProxyOptions
from thoughtline.gateway.settings import Settings


def test_both_have_the_same_defaults():
    options, settings = ProxyOptions(), Settings()
    assert options.keepalive == settings.server.keepalive_interval
    assert options.max_body_bytes == settings.server.max_body_bytes
    assert options.commit_wait == settings.store.commit_timeout
    assert options.strict is settings.replay.strict
