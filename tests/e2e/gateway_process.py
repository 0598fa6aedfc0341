"""`thoughtline serve` in a process of its own, with every simulated provider as an upstream."""

import json
import os
import subprocess
import sys

from e2e.ways import ALIASES, POLICIES, TAME
from support.waiting import answers, until
from thoughtline.testing import PROVIDERS


class GatewayProcess:
    """A gateway that can be killed and started again, at the same address and on the same file."""

    def __init__(self, sims, folder):
        self._folder, self._port, self._process = folder, 0, None
        tables = [
            f'[upstreams."{name}"]\nbase_url = "{sims.root(name)}"\n'
            f'policy = "{POLICIES.get(name, name)}"\ndialects = ["{sims[name].dialect}"]\n'
            for name in (*PROVIDERS, *TAME)
        ]
        tables += [
            f'[models."{alias}"]\nto = "{name}/{sims[name].models()[0]}"\neffort = "high"\n'
            for name, alias in ALIASES.items()
        ]
        (folder / "thoughtline.toml").write_text("\n".join(tables), "utf-8")

    def start(self):
        """Its address, when it answers."""
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.endswith("_API_KEY") and not name.startswith("THOUGHTLINE")
        }
        command = [sys.executable, "-m", "thoughtline", "serve", "--port", str(self._port)]
        with (self._folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                [*command, "--json", "--store", f"sqlite:///{self._folder}/thoughts.db"],
                cwd=self._folder,
                env=clean,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        url = json.loads(self._process.stdout.readline() or "{}").get("url", "")
        assert url, (self._folder / "log").read_text("utf-8")
        self._port = int(url.rpartition(":")[2])
        self._wait(url)
        return url

    @property
    def url(self):
        return f"http://127.0.0.1:{self._port}"

    def kill(self):
        """No time to say goodbye."""
        self._process.kill()
        self._process.communicate(timeout=60)

    def stop(self):
        self._process.terminate()
        self._process.communicate(timeout=60)

    def _wait(self, url):
        until(lambda: self._process.poll() is not None or answers(f"{url}/health"))
        assert self._process.poll() is None, "the gateway did not start"
