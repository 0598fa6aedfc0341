"""The simulated providers as upstreams: who reaches them, by which wire, under which policy."""

import pytest

from thoughtline.agents import simulated
from thoughtline.cli.serve import with_simulators
from thoughtline.errors import WireError
from thoughtline.gateway.settings import load
from thoughtline.providers.contracts import policy_names
from thoughtline.testing import PROVIDERS
from thoughtline.wires.base import Outbound
from thoughtline.wires.http import HttpWire


@pytest.fixture
def gateway(tmp_path):
    return with_simulators(load({"store_url": "memory://"}, {"HOME": str(tmp_path)}, tmp_path))


def test_a_request_to_a_real_provider_does_not_pass_through_the_simulators_wire(gateway):
    assert type(gateway.proxy.wire) is HttpWire
    assert {upstream.wire for upstream in gateway.proxy.directory} == {None}
    picked = gateway.proxy.directory.pick("", "sim/deepseek")
    assert isinstance(picked.wire, simulated.SimWire)
    assert gateway.proxy.directory.pick("sim", "sim/kimi").wire is picked.wire


async def test_the_simulators_wire_leads_nowhere_else():
    wire = simulated.SimWire()
    with pytest.raises(WireError, match="is not a simulated provider"):
        async with wire.send(Outbound(method="GET", url="https://api.deepseek.com/v1", headers=())):
            pass
    await wire.close()


def test_a_provider_of_the_library_has_the_wire_that_leads_to_it():
    sim = simulated.provider("claude")
    assert isinstance(simulated.wire_to(sim), simulated.SimWire)
    assert sim.options == simulated.FIELDS["claude-bound"]
    real = simulated.Provider("deepseek", model="deepseek-v4-pro")
    assert isinstance(simulated.wire_to(real), HttpWire)
    with pytest.raises(ValueError, match="nobody"):
        simulated.provider("nobody")


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_simulated_provider_has_a_row_of_the_policy_table(name):
    assert simulated.upstream(f"sim/{name}").policy in policy_names()
    assert simulated.provider(name).policy == simulated.upstream(f"sim/{name}").policy


def test_the_plain_name_is_the_present_generation():
    present, before = simulated.upstream("sim/claude"), simulated.upstream("sim/claude-4-5")
    assert (present.served, before.served) == ("claude-opus-5-5", "claude-sonnet-4-5")
    assert {"sim/claude", "sim/claude-4-5"} <= simulated.models().keys()
    for name in simulated.models():
        made = simulated.provider(name.removeprefix(simulated.PREFIX))
        assert simulated.upstream(name).base_url == made.base_url
        assert f"sim/{made.name}" == name
