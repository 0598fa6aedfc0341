"""A standby takes over from a PostgreSQL that is gone, for the nodes that know both."""

import secrets
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from cluster.test_nodes import DIALECTS, Talk, together
from support.cluster import Node, settings_for
from support.postgres_server import PostgresServer
from thoughtline.cli.simulated import POLICIES
from thoughtline.testing import serving

pytestmark = pytest.mark.slow

PROVIDERS = ("deepseek", "claude", "openai", "gemini")
REPLICATION = {"wal_level": "replica", "max_wal_senders": "4", "hot_standby": "on"}


@pytest.fixture
def pair():
    """A server, and a standby that has everything that was acknowledged."""
    folder = Path(tempfile.mkdtemp(prefix="thoughtline-failover-"))
    folder.chmod(0o755)  # PostgreSQL runs as another user than root
    primary = PostgresServer(folder / "primary", **REPLICATION).make().start()
    try:
        primary.sql("CREATE DATABASE thoughtline", "SELECT 1")
        standby = PostgresServer(folder / "standby", **REPLICATION).follow(primary, "standby")
        try:
            primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT 1")
            primary.run("pg_ctl", "reload", "-D", primary.data)
            yield primary, standby
        finally:
            standby.stop("immediate")
    finally:
        if primary.running:
            primary.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


def test_a_synchronous_standby_takes_over_and_nothing_is_lost(pair, tmp_path):
    primary, standby = pair
    url = f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/thoughtline"
    shared = {"SECRET": secrets.token_hex(32), "XDG_DATA_HOME": str(tmp_path / "data")}
    with serving(*PROVIDERS) as sims:
        upstreams = [(name, sims.root(name), POLICIES.get(name, name)) for name in PROVIDERS]
        more = 'secret = "env:SECRET"\nfind_wait = 30.0\ncommit_wait = 30.0'
        settings = settings_for(url, upstreams, more=more)
        nodes = [Node(tmp_path / name, settings, environment=shared) for name in ("a", "b")]
        try:
            for node in nodes:
                node.start()
            for node in nodes:
                node.wait()
            first = SimpleNamespace(url=nodes[0].url, sims=sims)
            asked = [Talk(first, dialect, 1) for dialect in DIALECTS]
            together(asked, 2)
            primary.stop("immediate")
            standby.promote()
            for talk in asked:
                talk.nodes = [nodes[1].url]
            together(asked, 2)
            for talk in asked:
                talk.nodes = [nodes[0].url]
            together(asked, 1)
            assert [talk.audits for talk in asked if not talk.clean()] == []
        finally:
            for node in nodes:
                node.stop()
