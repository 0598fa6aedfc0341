"""A gateway as a process, in front of simulated providers."""

import json
import os
import subprocess
import sys

import httpx2

from support.waiting import answers, until

TOOLS = [
    {
        "type": "function",
        "function": {"name": "run", "parameters": {"type": "object", "properties": {}}},
    }
]


class Process:
    """`thoughtline serve` in a folder, towards a simulated DeepSeek."""

    def __init__(self, folder, root, store=None, *, settings="", commit_wait=30.0):
        """`settings` are more lines of the store's table."""
        self.folder = folder
        folder.mkdir(exist_ok=True)
        (folder / "thoughtline.toml").write_text(
            f'[upstreams.up]\nbase_url = "{root}"\npolicy = "deepseek"\n'
            f'[store]\nurl = "sqlite:///{store or folder / "t.db"}"\ncommit_wait = {commit_wait}\nfind_wait = 30.0\n{settings}\n[log]\nlevel = "error"\n'
        )
        self.start()

    def start(self):
        command = [sys.executable, "-m", "thoughtline", "serve", "--port", "0", "--json"]
        clean = {
            k: v
            for k, v in os.environ.items()
            if not k.endswith("_API_KEY") and not k.startswith("THOUGHTLINE")
        }
        self.process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=clean,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.port = int(self.url.rpartition(":")[2])
        until(lambda: answers(f"{self.url}/health"))

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def exchange(self, messages, **headers):
        return httpx2.post(
            f"{self.url}/u/up/v1/chat/completions",
            json={"model": "deepseek-v4-pro", "messages": messages, "tools": TOOLS},
            headers={"authorization": "Bearer me", **headers},
            timeout=30,
        )

    def talk(self, exchanges, messages=None):
        messages = messages or [{"role": "user", "content": "mend it"}]
        for _ in range(exchanges):
            reply = self.exchange(messages)
            assert reply.status_code == 200, reply.text
            message = {
                k: v
                for k, v in reply.json()["choices"][0]["message"].items()
                if k != "reasoning_content"
            }
            calls = message.get("tool_calls") or []
            results = [{"role": "tool", "tool_call_id": c["id"], "content": "ok"} for c in calls]
            messages = [*messages, message, *(results or [{"role": "user", "content": "go on"}])]
        return reply, messages
