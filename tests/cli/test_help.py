"""`--help` is quick: it imports the command line, and nothing that only a running command needs."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from thoughtline.cli import COMMANDS, main

MAX_MODULES = 160
"""Python, click and the command line have about 130 together; a running gateway has 700."""

_CODE = """
import sys
from thoughtline.cli import main
try:
    main(sys.argv[1:])
finally:
    sys.stderr.write("\\n".join(sys.modules))
"""


def modules_of(*arguments):
    code = [sys.executable, "-c", _CODE, *arguments]
    done = subprocess.run(code, capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines())


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS), ["--version"]])
def test_help_imports_little(command):
    arguments = command if command == ["--version"] else [*command, "--help"]
    loaded = modules_of(*arguments)
    ours = {name for name in loaded if name.startswith("thoughtline.")}
    assert {name for name in ours if not name.startswith("thoughtline.cli")} <= {
        "thoughtline.errors"
    }
    assert not {"asyncio", "msgspec", "rich", "sqlite3", "starlette", "uvicorn"} & loaded
    assert len(loaded) <= MAX_MODULES


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("sesions", "there is no command 'sesions'; did you mean 'sessions'?"),
        ("launch-missiles", "`thoughtline --help` lists them"),
    ],
)
def test_a_misspelt_command_gets_a_suggestion(name, says):
    result = CliRunner().invoke(main, [name])
    assert result.exit_code == 2 and says in result.output
