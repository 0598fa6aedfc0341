"""`make cluster`: PostgreSQL, two gateways and nginx on this machine, until Ctrl-C."""

import secrets
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import click

from support.cluster import NGINX, Cluster, settings_for
from support.postgres_server import PostgresServer


@click.command(help=__doc__)
@click.option("--port", default=8080, help="Where nginx listens, on loopback.")
@click.option("--nodes", default=2, help="How many gateways.")
def main(port: int, nodes: int) -> None:
    """Start all of it, say where it is, and wait."""
    if not NGINX:
        raise click.ClickException("nginx is not installed (Debian: sudo apt-get install nginx)")
    for stop in (signal.SIGINT, signal.SIGTERM):  # a shell ignores the first one for a job
        signal.signal(stop, signal.default_int_handler)
    with (
        tempfile.TemporaryDirectory(prefix="thoughtline-cluster-") as name,
        suppress(KeyboardInterrupt),
    ):
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL does not run as root
        postgres = PostgresServer(folder / "postgres", fsync="on", full_page_writes="on").make()
        try:
            postgres.start()
            postgres.sql("CREATE DATABASE thoughtline")
            settings = settings_for(postgres.url("thoughtline"), [], more='secret = "env:SECRET"')
            shared = {"SECRET": secrets.token_hex(32)}
            with Cluster(folder, settings, nodes=nodes, port=port, environment=shared) as cluster:
                click.echo(f"database        {postgres.url('thoughtline')}")
                for number, node in enumerate(cluster.nodes, 1):
                    click.echo(f"gateway {number}       {node.url}")
                click.echo(f"load balancer   {cluster.url}, the base URL for clients")
                click.echo(f"inspector       {cluster.nodes[0].url}/inspect")
                click.echo("Ctrl-C stops all of it, and what it stored is gone.")
                signal.pause()
        finally:
            postgres.stop()


if __name__ == "__main__":
    main()
