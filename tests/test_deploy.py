"""What is in `deploy/` fits the program: variables are settings, paths are routes, times add up."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
import yaml

from support.cluster import DEPLOY, NGINX, LoadBalancer, free_port
from thoughtline.gateway.settings import load

ROOT = DEPLOY.parent


def settings(tmp_path, variables):
    """The settings that these variables make; fails on one that is unknown."""
    return load({}, {"HOME": str(tmp_path), **variables}, tmp_path)


def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))


def manifests():
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8")))


def example_variables():
    lines = (DEPLOY / "example.env").read_text("utf-8").splitlines()
    return {line.split("=")[0] for line in lines if line and not line.startswith("#")}


def unit(name):
    text = (DEPLOY / "systemd" / name).read_text("utf-8")
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


def test_the_compose_file_starts_gateways_that_share_one_store(tmp_path):
    services = compose()["services"]
    gateways = {name: each for name, each in services.items() if each.get("image") == "thoughtline"}
    assert len(gateways) == 2
    for gateway in gateways.values():
        assert (DEPLOY / gateway["build"] / "Dockerfile").exists()
        made = settings(
            tmp_path,
            gateway["environment"] | {"STORE_SECRET": "00" * 32, "STORE_KEYS": "any"},
        )
        assert made.store.url.startswith("postgresql://")
        named = re.findall(r"env:(\w+)", str(gateway["environment"]))
        assert set(named) <= example_variables()
        assert float(gateway["stop_grace_period"].rstrip("s")) > made.server.shutdown_grace
    wanted = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text("utf-8")))
    assert wanted <= example_variables()
    published = [port for each in services.values() for port in each.get("ports", ())]
    assert published == ["127.0.0.1:8080:8080"]  # nothing else than the balancer, for this machine


def test_nginx_balances_over_the_services_of_the_compose_file():
    text = (DEPLOY / "nginx.conf").read_text("utf-8")
    named = re.findall(r"^ *server (\S+):7337", text, re.MULTILINE)
    assert set(named) == {
        name for name, each in compose()["services"].items() if each.get("image") == "thoughtline"
    }
    assert "ip_hash" not in text
    assert "proxy_buffering off;" in text
    assert "non_idempotent" not in text  # a request that a provider may have seen is not sent twice


@pytest.mark.skipif(not NGINX, reason="nginx is not installed; `make clients` installs it")
def test_nginx_reads_its_file(tmp_path):
    LoadBalancer(tmp_path, [7337, 7338])
    file = tmp_path / "nginx.conf"
    assert "127.0.0.1:7338" in file.read_text()
    assert "gateway-" not in file.read_text()
    done = subprocess.run(
        [NGINX, "-t", "-p", tmp_path, "-c", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_kubernetes_manifest_starts_gateways_that_share_one_store(tmp_path):
    deployment, service, budget = manifests()
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels
    assert service["spec"]["selector"] == labels
    assert budget["spec"]["selector"]["matchLabels"] == labels
    plain = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    secret = {each["name"]: each["name"] * 2 for each in container["env"] if "valueFrom" in each}
    secret["THOUGHTLINE_STORE__URL"] = "postgresql://u:p@postgres/thoughtline"
    made = settings(tmp_path, plain | secret)
    assert made.store.url == secret["THOUGHTLINE_STORE__URL"]
    drain = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > drain + made.server.shutdown_grace
    mounted = {each["mountPath"] for each in container["volumeMounts"]}
    assert {each["name"] for each in container["volumeMounts"]} == {
        each["name"] for each in pod["volumes"]
    }
    for place in (made.store.secret, made.store.keys):
        assert str(Path(place.removeprefix("file:")).parent) in mounted


def test_the_manifests_comment_makes_every_key_of_its_secret():
    text = (DEPLOY / "kubernetes.yaml").read_text("utf-8")
    made = set(re.findall(r"^#.*?--from-(?:literal|file)=([\w-]+)=", text, re.MULTILINE))
    made |= set(re.findall(r"--from-(?:literal|file)=([\w-]+)=", text))
    used = set(re.findall(r"name: thoughtline, key: ([\w-]+)", text))
    used |= set(re.findall(r"- \{key: ([\w-]+), path", text))
    assert used == made


def test_probes_ask_for_paths_that_the_gateway_has():
    (container,) = manifests()[0]["spec"]["template"]["spec"]["containers"]
    asked = {container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness")}
    assert asked == {"/health"}  # a node whose database is away is not to be killed
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"


@pytest.mark.parametrize("name", ["thoughtline.service", "thoughtline-node.service"])
def test_a_unit_gives_streams_the_time_to_finish(name, tmp_path):
    grace = settings(tmp_path, {}).server.shutdown_grace
    assert float(unit(name)["TimeoutStopSec"]) > grace
    assert unit(name)["ExecStart"].endswith("/thoughtline serve")


@pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd is not installed; a Linux with it has it"
)
def test_systemd_reads_the_unit_of_a_node(tmp_path):
    text = (DEPLOY / "systemd" / "thoughtline-node.service").read_text("utf-8")
    copy = tmp_path / "thoughtline-node.service"
    copy.write_text(text.replace("/opt/thoughtline/bin/thoughtline", "/bin/true"), "utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False
    )
    assert copy.name not in done.stderr, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not NGINX, reason="nginx is not installed; `make clients` installs it")
def test_the_cluster_on_one_machine_runs_until_it_is_told_to_stop():
    """Also as a job in the background, which a shell starts with Ctrl-C ignored."""
    quiet = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT / 'src'}"}
    command = [sys.executable, DEPLOY / "cluster.py", "--port", str(free_port())]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, **quiet
    ) as running:
        try:
            said = [running.stdout.readline() for _ in range(6)]
            urls = re.findall(r"http://[\d.:]+", "".join(said))
            assert said[-1].startswith("Ctrl-C")
            ready = [httpx2.get(url + "/ready", timeout=60).json()["status"] for url in urls[:3]]
            running.send_signal(signal.SIGINT)
            assert running.wait(60) == 0
        finally:
            running.terminate()
    assert ready == ["ready"] * 3  # two gateways, and the balancer
    for url in urls[:3]:
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(url + "/ready", timeout=60)
    database = re.search(r"@127\.0\.0\.1:(\d+)/", said[0])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(database[1])), 60)
