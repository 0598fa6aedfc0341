"""One set of strict providers and one gateway process, for all tests with real clients."""

import os
from pathlib import Path

import pytest

from e2e.cover import Case, cover
from e2e.gateway_process import GatewayProcess
from e2e.ways import TAME, ByGateway, ByTransport, tame
from thoughtline.testing import serving, simulator


def pytest_collection_modifyitems(config, items):
    """A cover of the matrix; all of it with `E2E=all`, as `make clients` says."""
    here = Path(__file__).parent
    cases = {
        item: described(item)
        for item in items
        if here in item.path.parents and "way" in getattr(item, "fixturenames", ())
    }
    if os.environ.get("E2E") == "all":
        return
    kept = set(cover(cases.values()))
    left = {item for item, case in cases.items() if case not in kept}
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


def described(item):
    params = dict(item.callspec.params)
    name, way = params.pop("name"), params.pop("way")
    return Case(item.path.stem, item.originalname, repr(params), name, way)


@pytest.fixture(scope="session")
def alone():
    """Whatever the environment says: no proxy, and nobody who is told what tests do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1,localhost")
        patch.setenv("no_proxy", "127.0.0.1,localhost")
        for name in ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def sims(alone):
    with serving() as served:
        for name, like in TAME.items():
            served.app.simulators[name] = simulator(like, script=tame)
        yield served


@pytest.fixture(scope="session")
def gateway(sims, tmp_path_factory):
    """`thoughtline serve`, with every simulated provider as an upstream; gives its address."""
    process = GatewayProcess(sims, tmp_path_factory.mktemp("gateway"))
    yield process.start()
    process.stop()


@pytest.fixture
def own_gateway(sims, tmp_path_factory):
    """A gateway for one test, which may kill it and start it again."""
    process = GatewayProcess(sims, tmp_path_factory.mktemp("gateway"))
    process.start()
    yield process
    process.stop()


@pytest.fixture(params=["gateway", "transport"])
def way(request, sims, name):
    """The way to the provider of this name, which the test is parametrised with; both ways."""
    test = f"{request.path.stem}: {request.node.name}"
    if request.param == "gateway":
        made = ByGateway(sims, name, test)
        made.gateway = request.getfixturevalue("gateway")
    else:
        made = ByTransport(sims, name, test)
    yield made
    made.close()
