"""Two gateways behind nginx, round robin, over one PostgreSQL: real processes, strict simulators.

What is stored is sealed; `benchmarks.cluster` has the same with a plain store, and larger.
"""

import secrets
import shutil
import tempfile
from pathlib import Path

import pytest

from support.cluster import NGINX, Cluster, settings_for
from support.postgres_server import PostgresServer
from thoughtline.agents.simulated import POLICIES
from thoughtline.stores.sealing.ring import new_key
from thoughtline.testing import serving

PROVIDERS = ("deepseek", "claude", "openai", "gemini")


class Machines:
    """All that runs: the database's server, the nodes and the simulated providers."""

    def __init__(self, postgres, cluster, sims):
        self.postgres, self.cluster, self.sims = postgres, cluster, sims
        self.url = cluster.url
        self.nodes = cluster.nodes

    def sql(self, statement):
        return self.postgres.sql(statement, database="thoughtline")


@pytest.fixture(scope="session")
def machines():
    if not NGINX:
        pytest.skip("nginx is not installed; `make clients` installs it")
    folder = Path(tempfile.mkdtemp(prefix="thoughtline-cluster-"))
    folder.chmod(0o755)  # PostgreSQL runs as another user than root
    postgres = PostgresServer(folder / "postgres").make().start()
    try:
        postgres.sql("CREATE DATABASE thoughtline", "SELECT 1")
        with serving(*PROVIDERS) as sims:
            upstreams = [(name, sims.root(name), POLICIES.get(name, name)) for name in PROVIDERS]
            settings = settings_for(
                postgres.url("thoughtline"),
                upstreams,
                more='secret = "env:SECRET"\nkeys = "env:KEYS"\nfind_wait = 20.0',
            )
            shared = {
                "SECRET": secrets.token_hex(32),
                "KEYS": new_key().line(),
                "XDG_DATA_HOME": str(folder / "data"),
            }
            with Cluster(folder / "nodes", settings, environment=shared) as cluster:
                yield Machines(postgres, cluster, sims)
    finally:
        if postgres.running:
            postgres.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)
