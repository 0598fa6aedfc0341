"""`thoughtline launch` as a process, with a program in place of the tool that asks and ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import urllib.request
from pathlib import Path

import pytest

from thoughtline.cli.simulated import STRICT

TOOL = """
#!{python}
import json, os, sys, urllib.request
print(json.dumps({{"arguments": sys.argv[1:], "env": dict(os.environ)}}), flush=True)
"""
ASK = """
def ask(path, body, **headers):
    headers = {"content-type": "application/json", **headers}
    request = urllib.request.Request(path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
for model in (os.environ["ANTHROPIC_MODEL"], "claude-haiku-9"):
    ask(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
        {"model": model, "max_tokens": 4000, "messages": [{"role": "user", "content": "hi " + model}]},
        authorization="Bearer " + os.environ["ANTHROPIC_AUTH_TOKEN"])
sys.exit(7)
"""


@pytest.fixture
def port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def launch(tmp_path, port):
    """Start the command with a home and a PATH of its own; gives the process."""
    tools, home, here = tmp_path / "bin", tmp_path / "home", tmp_path / "here"
    for folder in (tools, home, here):
        folder.mkdir()
    processes = []

    def start(*arguments, code=None, env=None):
        if code is not None:
            name = arguments[0]
            text = TOOL.lstrip().format(python=sys.executable) + textwrap.dedent(code)
            (tools / name).write_text(text, "utf-8")
            (tools / name).chmod(0o755)
        clean = {
            "HOME": str(home),
            "PATH": f"{tools}:/usr/bin:/bin",
            "THOUGHTLINE_PORT": str(port),
            "LANG": "C.UTF-8",
            STRICT: "1",
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "thoughtline", "launch", *arguments],
            cwd=here,
            env={**clean, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    start.home = home
    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def done(process):
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def is_free(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0


def test_the_tool_runs_through_a_gateway_that_comes_and_goes(launch, port):
    options = ("claude", "--model", "sim/deepseek", "--", "-p", "--model=x")
    code, out, err = done(launch(*options, code=ASK, env={"ANTHROPIC_API_KEY": "other"}))
    said = json.loads(out.splitlines()[0])
    assert code == 7, err  # the tool's own
    assert said["arguments"] == ["-p", "--model=x"]
    assert said["env"]["ANTHROPIC_BASE_URL"] == f"http://127.0.0.1:{port}/u/sim"
    assert "ANTHROPIC_API_KEY" not in said["env"] and "THOUGHTLINE_MODELS" not in said["env"]
    assert "started for this run" in err
    assert "2 thoughts kept, in 2 sessions" in err
    assert "thoughtline show " in err and f"http://127.0.0.1:{port}/inspect#/sessions/" in err
    assert is_free(port)


def test_a_gateway_that_runs_is_used_and_stays(launch, port, tmp_path):
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "THOUGHTLINE_PORT": str(port)}
    command = [sys.executable, "-m", "thoughtline", "serve", "--json"]
    with subprocess.Popen(command, env=env, cwd=tmp_path, stdout=subprocess.PIPE) as serve:
        try:
            serve.stdout.readline()
            code, _, err = done(launch("claude", "--model", "sim/deepseek", code="sys.exit(0)"))
            assert code == 0, err
            assert "running already" in err
            assert '[models]\n    "claude-*" = "sim/deepseek"' in err
            assert "no request reached the gateway" in err
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready") as answer:
                assert answer.status == 200
        finally:
            serve.terminate()


LOST = """
import os, urllib.error, urllib.request
url = os.environ["ANTHROPIC_BASE_URL"].replace("/u/sim", "/u/nobody") + "/v1/messages"
try:
    urllib.request.urlopen(urllib.request.Request(url, b'{"model": "m", "messages": []}'))
except urllib.error.HTTPError as error:
    print(error.code)
"""


def test_requests_that_failed_are_told(launch):
    _, out, err = done(launch("claude", "--model", "sim/deepseek", code=LOST))
    assert "404" in out
    assert "1 request failed, the last one with 404, no upstream is called 'nobody'" in err
    assert "nothing was kept" in err


PI = """
from pathlib import Path
print((Path.home() / ".pi/agent/models.json").read_text(), flush=True)
"""


def test_the_entry_in_a_tools_file_lasts_as_long_as_the_tool(launch):
    file = launch.home / ".pi/agent/models.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"providers":{"mine":{}}}')
    code, out, err = done(launch("pi", "--model", "sim/deepseek", code=PI))
    assert code == 0, err
    content = json.loads(out.partition("\n")[2])
    assert set(content["providers"]) == {"mine", "thoughtline"}
    assert file.read_text() == '{"providers":{"mine":{}}}'
    assert [one.name for one in file.parent.iterdir()] == ["models.json"]


WAIT = """
import signal, time
signal.signal(signal.SIGINT, lambda *_: sys.exit(3))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))
print(os.getpid(), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 3), (signal.SIGTERM, 4)])
def test_a_signal_is_the_tools_and_what_was_changed_is_taken_back(launch, port, number, code):
    file = launch.home / ".pi/agent/models.json"
    process = launch("pi", "--model", "sim/deepseek", code=WAIT)
    process.stdout.readline()
    child = int(process.stdout.readline())
    assert file.exists()
    if number == signal.SIGINT:  # a terminal sends it to both
        os.kill(child, number)
    process.send_signal(number)
    assert process.wait(60) == code
    assert not file.exists() and is_free(port)


def test_a_run_that_was_cut_off_is_taken_back_with_restore(launch):
    file = launch.home / ".pi/agent/models.json"
    process = launch("pi", "--model", "sim/deepseek", code=WAIT)
    process.stdout.readline()
    child = int(process.stdout.readline())
    (gateway,) = [one for one in all_children(process.pid) if one != child]
    process.kill()
    process.wait()
    os.kill(child, signal.SIGKILL)
    os.kill(gateway, signal.SIGTERM)
    assert file.exists()
    assert "is as it was before" in done(launch("pi", "--restore"))[1]
    assert not file.exists()
    assert "nothing to take back" in done(launch("pi", "--restore"))[1]
    assert "has no file" in done(launch("claude", "--restore"))[1]


def all_children(parent):
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=True
    ).stdout.split()
    return [int(one) for one in listed]


def test_print_shows_everything_and_changes_nothing(launch, port, tmp_path):
    env = {"DEEPSEEK_API_KEY": "sk-never-shown"}
    options = ("--model", "deepseek/deepseek-v4-pro", "--print", "--", "hello")
    code, pi, err = done(launch("pi", *options, env=env))
    assert code == 0, err
    assert f'"baseUrl": "http://127.0.0.1:{port}/u/deepseek/v1"' in pi
    assert pi.splitlines()[-1] == "pi --provider thoughtline --model deepseek-v4-pro hello"
    code, claude, _ = done(launch("claude", *options, env=env))
    assert 'export ANTHROPIC_AUTH_TOKEN="${DEEPSEEK_API_KEY}"' in claude
    assert '{"claude-*": "deepseek/deepseek-v4-pro"}' in claude
    assert "sk-never-shown" not in pi + claude
    assert list(launch.home.iterdir()) == [] and is_free(port)


def test_print_hides_a_key_of_the_gateway(launch, tmp_path):
    Path(tmp_path / "here/thoughtline.toml").write_text('[access.clients.me]\nkey = "mine-alone"\n')
    _, out, _ = done(launch("claude", "--print"))
    assert "export ANTHROPIC_AUTH_TOKEN='***'" in out and "mine-alone" not in out


def test_a_tool_that_is_not_installed(launch, port):
    code, _, err = done(launch("codex", "--model", "sim/deepseek"))
    assert code == 127 and "npm install -g @openai/codex" in err
    assert is_free(port)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["claud"], "did you mean 'claude'?"),
        (["claude", "-p", "hi"], "options of the tool come after --"),
        (["claude", "--modle", "x"], "Did you mean '--model'?"),
        (["qwen", "--model", "deepsek/x"], "did you mean 'deepseek'?"),
        (["qwen"], "thoughtline launch qwen --model deepseek/deepseek-v4-pro"),
        (["qwen", "--model", "deepseek/x"], "set DEEPSEEK_API_KEY"),
    ],
)
def test_errors_that_help(launch, arguments, says):
    code, _, err = done(
        launch("qwen", *arguments[1:], code="") if arguments[0] == "qwen" else launch(*arguments)
    )
    assert code in (1, 2) and says in err and "Traceback" not in err


def test_another_program_at_the_gateways_address(launch, port):
    with socket.create_server(("127.0.0.1", port)) as server:
        process = launch("claude", "--model", "sim/deepseek", code="")
        connection, _ = server.accept()
        connection.sendall(b"220 mail\r\n")
        connection.close()
        code, out, err = done(process)
    assert code == 1 and out == "" and "another program answers" in err


def test_without_a_name_the_tools_are_listed(launch):
    code, out, _ = done(launch())
    assert code == 0
    assert "codex     Codex   not installed: npm install -g @openai/codex" in out
