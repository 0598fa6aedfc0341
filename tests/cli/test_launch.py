"""`thoughtline launch` as a process, with a program in place of the tool that asks and ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import urllib.request

import pytest

from support.background import Home, children, done

TOOL = """
import json, os, sys, urllib.request
print(json.dumps({"arguments": sys.argv[1:], "env": dict(os.environ)}), flush=True)
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
def home(tmp_path, port):
    home = Home(tmp_path, port)
    yield home
    home.close()


@pytest.fixture
def launch(home):
    """Start the command, with a program in place of the tool; gives the process."""

    def start(*arguments, code=None, env=None, **streams):
        if code is not None:
            home.program(arguments[0], TOOL + textwrap.dedent(code))
        return home.start("launch", *arguments, env=env, **streams)

    return start


def is_free(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0


def test_the_tool_runs_through_a_gateway_that_is_started_and_stays(launch, home, port):
    options = ("claude", "--model", "sim/deepseek", "--", "-p", "--model=x")
    code, out, err = done(launch(*options, code=ASK, env={"ANTHROPIC_API_KEY": "other"}))
    said = json.loads(out.splitlines()[0])
    assert code == 7, err  # the tool's own
    assert said["arguments"] == ["-p", "--model=x"]
    base = f"http://127.0.0.1:{port}/u/sim;claude-*=deepseek"
    assert said["env"]["ANTHROPIC_BASE_URL"] == base
    assert "ANTHROPIC_API_KEY" not in said["env"]
    assert f"http://127.0.0.1:{port} (started, and stays)" in err
    assert "2 thoughts kept, in 2 sessions" in err
    assert "thoughtline show " in err and f"http://127.0.0.1:{port}/inspect#/sessions/" in err
    status = home.status()
    assert status["background"] and status["url"] == f"http://127.0.0.1:{port}"


TALK = """
def reply(messages):
    body = {"model": os.environ["ANTHROPIC_MODEL"], "max_tokens": 4000, "messages": messages}
    body = json.dumps(body).encode()
    headers = {"content-type": "application/json",
               "authorization": "Bearer " + os.environ["ANTHROPIC_AUTH_TOKEN"]}
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
        content = json.load(answer)["content"]
        print(answer.headers["x-thoughtline-replay"], flush=True)
        return [block for block in content if block["type"] == "text"]
messages = []
for line in open(sys.argv[1]):
    messages.append({"role": "user", "content": line})
    messages.append({"role": "assistant", "content": reply(messages)})
"""


def talking(launch, tmp_path, name):
    """A launched program that asks whatever is written to it; and the way to write."""
    told = tmp_path / name
    os.mkfifo(told)
    process = launch("claude", "--model", "sim/kimi-k3", "--", str(told), code=TALK)
    return process, told


def turn(process, writer, words):
    writer.write(f"{words}\n")
    writer.flush()
    said = process.stdout.readline()
    assert said.startswith("restored="), said + process.communicate()[1]
    return said


def test_two_at_once_have_one_gateway_and_one_may_be_closed(launch, home, port, tmp_path):
    (one, to_one), (two, to_two) = [talking(launch, tmp_path, name) for name in ("one", "two")]
    with to_two.open("w") as second:
        with to_one.open("w") as first:
            one.stdout.readline(), two.stdout.readline()  # what each was started with
            for number in range(5):
                turn(one, first, f"first, {number}")
                turn(two, second, f"second, {number}")
        code, _, err_one = done(one)
        assert code == 0 and "thoughts kept" in err_one, err_one
        for number in range(5, 10):
            assert turn(two, second, f"second, {number}").startswith(f"restored={number};")
    code, _, err_two = done(two)
    assert code == 0, err_two
    assert "failed" not in err_one + err_two
    started = [
        f"http://127.0.0.1:{port} ({how})" for how in ("started, and stays", "running already")
    ]
    assert all(how in err_one + err_two for how in started)
    assert len(children(home.status()["pid"])) == 1


def test_a_tool_that_is_killed_takes_nothing_with_it(launch, home, tmp_path):
    (one, _), (two, to_two) = [talking(launch, tmp_path, name) for name in ("one", "two")]
    one.stdout.readline(), two.stdout.readline()
    for killed in (*children(one.pid), one.pid):
        os.kill(killed, signal.SIGKILL)
    with to_two.open("w") as second:
        assert turn(two, second, "hi").startswith("restored=0")
        assert turn(two, second, "and again").startswith("restored=1")
    assert done(two)[0] == 0


def test_a_gateway_that_runs_is_used_and_stays(launch, port, tmp_path):
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "THOUGHTLINE_PORT": str(port)}
    command = [sys.executable, "-m", "thoughtline", "serve", "--json"]
    with subprocess.Popen(command, env=env, cwd=tmp_path, stdout=subprocess.PIPE) as serve:
        try:
            serve.stdout.readline()
            code, _, err = done(launch("claude", "--model", "sim/deepseek", code=ASK))
            assert code == 7, err
            assert "running already" in err and "[models]" not in err
            assert "2 thoughts kept, in 2 sessions" in err  # also the one for a name built in
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready") as answer:
                assert answer.status == 200
        finally:
            serve.terminate()


def test_a_model_that_did_not_think_is_said(launch):
    code, _, err = done(launch("claude", "--model", "sim/claude-4-5", code=ASK))
    assert code == 7, err
    assert "0 thoughts kept, in 2 sessions: the model was not asked to think" in err
    code, _, err = done(launch("claude", "--model", "sim/claude-4-5", "--effort", "low", code=ASK))
    assert code == 7 and "2 thoughts kept, in 2 sessions\n" in err, err


LOST = """
import os, urllib.error, urllib.request
url = os.environ["ANTHROPIC_BASE_URL"].replace("/u/sim", "/u/nobody", 1) + "/v1/messages"
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


def test_the_entry_in_a_tools_file_lasts_as_long_as_the_tool(launch, home):
    file = home.path / ".pi/agent/models.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"providers":{"mine":{}}}')
    code, out, err = done(launch("pi", "--model", "sim/deepseek", code=PI))
    assert code == 0, err
    content = json.loads(out.partition("\n")[2])
    assert set(content["providers"]) == {"mine", "thoughtline"}
    assert file.read_text() == '{"providers":{"mine":{}}}'
    assert [one.name for one in file.parent.iterdir()] == ["models.json"]


WAIT = """
import signal
signal.signal(signal.SIGINT, lambda *_: sys.exit(3))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))
print(os.getpid(), flush=True)
signal.pause()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 3), (signal.SIGTERM, 4)])
def test_a_signal_is_the_tools_and_what_was_changed_is_taken_back(launch, home, number, code):
    file = home.path / ".pi/agent/models.json"
    process = launch("pi", "--model", "sim/deepseek", code=WAIT)
    process.stdout.readline()
    child = int(process.stdout.readline())
    assert file.exists()
    if number == signal.SIGINT:  # a terminal sends it to both
        os.kill(child, number)
    process.send_signal(number)
    assert process.wait(60) == code
    assert not file.exists() and home.status()["running"]


def test_a_run_that_was_cut_off_is_taken_back_with_restore(launch, home):
    file = home.path / ".pi/agent/models.json"
    process = launch("pi", "--model", "sim/deepseek", code=WAIT)
    process.stdout.readline()
    child = int(process.stdout.readline())
    assert children(process.pid) == [child]
    process.kill()
    process.wait()
    os.kill(child, signal.SIGKILL)
    assert file.exists()
    assert "is as it was before" in done(launch("pi", "--restore"))[1]
    assert not file.exists()
    assert "nothing to take back" in done(launch("pi", "--restore"))[1]
    assert "has no file" in done(launch("claude", "--restore"))[1]


def test_print_shows_everything_and_changes_nothing(launch, home, port):
    env = {"DEEPSEEK_API_KEY": "sk-never-shown"}
    options = ("--model", "deepseek/deepseek-v4-pro", "--print", "--", "hello")
    code, pi, err = done(launch("pi", *options, env=env))
    assert code == 0, err
    assert f'"baseUrl": "http://127.0.0.1:{port}/u/deepseek/v1"' in pi
    assert pi.splitlines()[-1] == "pi --provider thoughtline --model deepseek-v4-pro hello"
    code, claude, _ = done(launch("claude", *options, env=env))
    assert 'export ANTHROPIC_AUTH_TOKEN="${DEEPSEEK_API_KEY}"' in claude
    assert "/u/deepseek;claude-*=deepseek-v4-pro'" in claude
    assert "sk-never-shown" not in pi + claude
    assert list(home.path.iterdir()) == [] and is_free(port)


def test_print_hides_a_key_of_the_gateway(launch, home):
    (home.here / "thoughtline.toml").write_text('[access.clients.me]\nkey = "mine-alone"\n')
    _, out, _ = done(launch("claude", "--print"))
    assert "export ANTHROPIC_AUTH_TOKEN='***'" in out and "mine-alone" not in out


def test_on_a_terminal_one_of_the_models_is_picked(launch, home):
    terminal, other = os.openpty()
    env = {"DEEPSEEK_API_KEY": "sk-never-shown"}
    process = launch("codex", code="", env=env, stdin=other, stderr=other)
    os.close(other)
    said = b""
    while b"Which one?" not in said:
        said += os.read(terminal, 4096)
    assert b"1  Codex's own models" in said and b"deepseek/deepseek-v4-pro" in said
    os.write(terminal, b"2\n")
    arguments = json.loads(process.stdout.readline())["arguments"]
    assert any(one.startswith('model="deepseek-') for one in arguments)
    assert process.wait(60) == 0
    os.close(terminal)


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
