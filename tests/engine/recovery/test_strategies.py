"""Every strategy of the error rules is implemented."""

from thoughtline.engine.recovery.strategies import STRATEGIES
from thoughtline.providers.errors import Strategy


def test_every_strategy_is_implemented():
    assert set(STRATEGIES) == set(Strategy)
