"""A request that goes on from a settled beginning sends and keeps what the whole walk would."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.both_ways import STEPS, BothWays, talks
from thoughtline.gateway import proxy
from thoughtline.testing import PROVIDERS


@pytest.fixture(autouse=True)
def both_ways(monkeypatch):
    monkeypatch.setattr(proxy, "Engine", BothWays)


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("echo", ["keep", "strip"])
def test_a_growing_conversation_is_reused_and_equal(name, echo):
    with talks(name, echo=echo) as (one, other):
        for _ in range(8):
            one.turn()
            other.turn()
        assert one.sent == other.sent
        assert one.engine.reused >= 3
        assert other.engine.reused == 0


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(PROVIDERS)),
    st.sampled_from(["keep", "strip", "respell"]),
    st.sampled_from([None, None, "generic"]),
    st.lists(st.sampled_from(STEPS), max_size=8),
)
def test_whatever_happens_both_walks_are_equal(name, echo, policy, steps):
    with talks(name, echo=echo, policy=policy) as (one, other):
        for step in ("turn", "turn", "turn", *steps, "turn", "turn"):
            getattr(one, step)()
            getattr(other, step)()
            assert one.sent == other.sent
