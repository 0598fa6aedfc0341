"""The recipe for the AI SDK behind the gateway: a real Node, a real gateway, no packages.

What the SDK's `streamText` makes of an answer is made by hand, in the words of its protocol.
"""

import json
import shutil
import subprocess

import pytest

from support.example_apps import FOLDER
from support.gateway_process import TOOLS, Process
from thoughtline.testing import serving

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None, reason="node is not installed; https://nodejs.org has it"
)

CLIENT = """
const [recipe, gateway, asked] = process.argv.slice(1);
const { thoughts } = await import(recipe);
const headers = { authorization: "Bearer me" };
const told = thoughts(gateway, headers);
const { messages, ...body } = JSON.parse(asked);
const chunks = [];
for (let step = 0; step < 6; step++) {
  const options = { method: "POST", body: JSON.stringify({ ...body, messages }) };
  const json = { ...headers, "content-type": "application/json" };
  const answer = await told.fetch(`${gateway}/u/up/v1/chat/completions`, { ...options, headers: json });
  const { message } = (await answer.json()).choices[0];
  chunks.push({ type: "start-step" });
  if (message.reasoning_content) chunks.push({ type: "reasoning-start" }, { type: "reasoning-end" });
  if (message.content) chunks.push({ type: "text-start" }, { type: "text-end" });
  const calls = message.tool_calls ?? [];
  for (const call of calls) chunks.push({ type: "tool-input-start" }, { type: "tool-input-available" });
  if (!calls.length) break;
  const results = calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: "ok" }));
  messages.push(message, ...results);
}
const made = [];
for await (const chunk of ReadableStream.from(chunks).pipeThrough(told.stream())) made.push(chunk);
console.log(JSON.stringify(made));
"""


def chunks_of(gateway, *messages):
    asked = {"model": "deepseek-v4-pro", "tools": TOOLS, "messages": messages}
    command = ["node", "--input-type=module", "-e", CLIENT]
    command += [(FOLDER / "gateway.mjs").as_uri(), gateway, json.dumps(asked)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_thought_of_a_message_has_its_duration(tmp_path):
    with serving("deepseek") as sims:
        gateway = Process(tmp_path / "g", sims.root("deepseek"))
        try:
            chunks = chunks_of(gateway.url, {"role": "user", "content": "Mend it."})
        finally:
            gateway.kill()
    begun = [one for one in chunks if one["type"] == "reasoning-start"]
    keys = [one["providerMetadata"]["thoughtline"]["key"] for one in begun]
    finish = chunks[-1]
    assert finish["type"] == "finish"
    assert len(keys) == len(set(keys)) > 1
    assert sorted(finish["messageMetadata"]["reasoningDurations"]) == sorted(keys)
    assert finish["messageMetadata"]["reasoningClocks"] == dict.fromkeys(keys, "request")
