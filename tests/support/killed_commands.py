"""Commands of `thoughtline store` that are killed when they are half through."""

import signal
import subprocess
import sys

KILLED = """
import os, signal, sys
from thoughtline.cli import main, store
from contextlib import contextmanager

@contextmanager
def bar(label):
    def stop(done, total):
        if done >= total / 2:
            os.kill(os.getpid(), signal.SIGKILL)
    yield stop

store._bar = bar
main(sys.argv[1:])
"""


def killed(*arguments):
    """Run a command that is killed when it is half through."""
    command = [sys.executable, "-c", KILLED, "store", *arguments]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
