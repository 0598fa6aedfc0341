"""Clients that live elsewhere: in another interpreter, or in another language.

A worker is a process that reads one job a line on its standard input, as JSON, and answers each
with a line: `{"ok": true}`, or what went wrong. A job says where to go and what to ask; the worker
holds the conversation as a user of its SDK would write it. The judge sits here.
"""

import json
import queue
import subprocess
import threading

from e2e.ways import KEY

PATIENCE = 120  # seconds without a line after which a worker is given up


class Worker:
    """A client in a process of its own."""

    def __init__(self, *command, log, env=None, cwd=None):
        self._log = log
        with log.open("w") as out:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=out,
                text=True,
                env=env,
                cwd=cwd,
            )
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def converse(self, way, **job):
        """Let it hold a whole conversation, and ask the provider what it thinks of it."""
        questions = [way.ask(number) for number in range(3)]
        whole = {"key": KEY, "url": way.url, "root": way.root, "model": way.model, **job}
        assert self._process.poll() is None, self._log.read_text("utf-8")[-3000:]
        self._process.stdin.write(json.dumps({"questions": questions, **whole}) + "\n")
        self._process.stdin.flush()
        while not (line := self._next()).startswith("{"):  # what libraries print
            assert line, self._log.read_text("utf-8")[-3000:]
        outcome = json.loads(line)
        assert outcome.get("ok"), outcome
        way.judge()

    def _next(self):
        try:
            return self._lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise AssertionError(self._log.read_text("utf-8")[-3000:]) from None

    def close(self):
        self._process.stdin.close()
        self._process.terminate()
        self._process.wait(60)
        self._process.stdout.close()
