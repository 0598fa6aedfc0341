"""A password in the store's URL is printed nowhere."""

import os
import subprocess
import sys

import pytest

URL = "postgresql://u:hunt/er2@db.test/x?password=hunter3"


@pytest.mark.parametrize(
    "command",
    [["serve", "--port", "0"], ["serve", "--port", "0", "--json"], ["doctor"], ["sessions"]],
)
@pytest.mark.parametrize("how", ["flag", "variable"])
def test_a_password_is_not_printed(command, how, tmp_path):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("THOUGHTLINE")}
    more = ["--store", URL] if how == "flag" else []
    env = clean if how == "flag" else {**clean, "THOUGHTLINE_STORE__URL": URL}
    ran = subprocess.run(
        [sys.executable, "-m", "thoughtline", *command, *more],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    printed = ran.stdout + ran.stderr
    assert printed
    assert "hunt" not in printed
