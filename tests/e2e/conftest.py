"""One set of strict providers and one gateway process, for all tests with real clients."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from e2e.cover import Case, cover
from e2e.ways import POLICIES, TAME, ByGateway, ByTransport, tame
from thoughtline.testing import PROVIDERS, serving, simulator


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
    folder = tmp_path_factory.mktemp("gateway")
    tables = [
        f'[upstreams."{name}"]\nbase_url = "{sims.root(name)}"\npolicy = "{POLICIES.get(name, name)}"\n'
        for name in (*PROVIDERS, *TAME)
    ]
    (folder / "thoughtline.toml").write_text("\n".join(tables), "utf-8")
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith("_API_KEY") and not name.startswith("THOUGHTLINE")
    }
    command = [sys.executable, "-m", "thoughtline", "serve", "--port", "0", "--json"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--store", f"sqlite:///{folder}/thoughts.db"],
            cwd=folder,
            env=clean,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        url = json.loads(process.stdout.readline() or "{}").get("url", "")
        assert url, (folder / "log").read_text("utf-8")
        _wait(url, process)
        yield url
    finally:
        process.terminate()
        process.communicate(timeout=30)


def _wait(url, process):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx2.get(f"{url}/health").status_code == 200:
                return
        except httpx2.TransportError:
            time.sleep(0.02)
    raise AssertionError("the gateway did not start")


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
