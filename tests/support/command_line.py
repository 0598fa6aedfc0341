"""The commands about sessions, run in this process with a simulated provider."""

import json

from click.testing import CliRunner

from thoughtline.cli import main


def run(*arguments, says="", fails=False):
    """One command; it succeeds, or fails where that is said."""
    result = CliRunner().invoke(main, list(arguments), input=says)
    assert (result.exit_code != 0) == fails, result.output + str(result.exception)
    return result


def chat(*arguments, says="Hello there\n", **more):
    """A chat with the simulated DeepSeek."""
    return run("chat", "--provider", "sim:deepseek", *arguments, says=says, **more)


def events(output):
    """The events that a command wrote as lines of JSON."""
    return [json.loads(line) for line in output.splitlines() if line.startswith('{"session"')]
