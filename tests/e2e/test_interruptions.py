"""Programs on providers of other dialects, while gateways are killed and providers refuse or change."""

import pytest

from e2e import test_claude_code, test_codex, test_gemini_cli
from e2e.test_claude_code import claude  # noqa: F401
from e2e.test_codex import codex  # noqa: F401
from e2e.test_gemini_cli import gemini  # noqa: F401
from e2e.ways import TURNS, ByGateway
from thoughtline.testing.sims.problems import Problem

TOO_LONG = (
    "This model's maximum context length is 131072 tokens. However, your messages resulted in"
    " 140000 tokens. Please reduce the length of the messages."
)

MANY = 200_000

by_gateway = pytest.mark.parametrize("way", ["gateway"], indirect=True)


@pytest.fixture
def say(request, way, program):
    """How the program of this name says something: at first, or in the conversation before."""
    run = request.getfixturevalue(program)
    return {"codex": codex_says, "claude": claude_says, "gemini": gemini_says}[program](way, run)


def codex_says(way, codex):  # noqa: F811
    def say(question, *, first=False, to=None):
        resumed = () if first else ("resume", "--last")
        codex("exec", *resumed, *test_codex.options(to or way), question)

    return say


def claude_says(way, claude):  # noqa: F811
    def say(question, *, first=False, to=None):
        claude.env["ANTHROPIC_BASE_URL"] = (to or way).root
        claude.env["ANTHROPIC_MODEL"] = (to or way).alias
        test_claude_code.ask(claude, question, *(() if first else ("--continue",)))

    return say


def gemini_says(way, gemini):  # noqa: F811
    def say(question, *, first=False, to=None):
        gemini.env["GOOGLE_GEMINI_BASE_URL"] = (to or way).root
        resumed = () if first else ("--resume", "latest")
        options = (*test_gemini_cli.OPTIONS, "-m", (to or way).alias)
        gemini(*options, *resumed, "-p", question)

    return say


PROGRAMS = [("codex", "deepseek"), ("claude", "kimi-k3"), ("gemini", "claude-bound-tame")]


@by_gateway
@pytest.mark.parametrize(("program", "name"), PROGRAMS)
def test_the_gateway_is_killed_between_questions(way, own_gateway, say):
    way.gateway = own_gateway.url
    say(way.ask(0), first=True)
    for number in (1, 2):
        own_gateway.kill()
        own_gateway.start()
        say(way.ask(number))
    way.judge()


@by_gateway
@pytest.mark.parametrize(("program", "name"), PROGRAMS)
def test_the_provider_asks_to_wait(way, say):
    """Each program waits and asks again, as it does at home."""
    say(way.ask(0), first=True)
    way.sim.fail_next("429")
    say(way.ask(1))
    say(way.ask(2))
    statuses = [record.reply.status for record in way.records]
    assert statuses == [200] * 3 + [429] + [200] * 6
    assert all(record.audit.clean for record in way.records if record.reply.status == 200)


@by_gateway
@pytest.mark.parametrize("name", ["deepseek"])
def test_codex_waits_on_a_websocket(way, codex):  # noqa: F811
    """It reads from the failed response when to come back."""
    options = test_codex.options(way, sockets=True)
    codex("exec", *options, way.ask(0))
    way.sim.fail_next("429")
    codex("exec", "resume", "--last", *options, way.ask(1))
    statuses = [record.reply.status for record in way.records]
    assert statuses == [200] * 3 + [429] + [200] * 3
    assert all(record.audit.clean for record in way.records if record.reply.status == 200)


@by_gateway
@pytest.mark.parametrize(
    ("program", "name", "then"),
    [
        ("codex", "deepseek", "claude"),
        ("codex", "claude-bound", "openai"),
        ("claude", "kimi-k3", "claude-bound"),
        ("claude", "gemini", "deepseek"),
        ("gemini", "claude-bound-tame", "deepseek-tame"),
    ],
)
def test_the_provider_changes(sims, way, say, then):
    """And back: nobody is told of another's thoughts, and the first one gets its own again."""
    other = ByGateway(sims, then, way.test)
    other.gateway = way.gateway
    say(way.ask(0), first=True)
    say(way.ask(1), to=other)
    say(way.ask(2))
    records = [*way.records, *other.records]
    refused = [record.reply.body[:500] for record in records if record.reply.status != 200]
    assert refused == []
    assert len(records) == TURNS
    assert all(record.audit.foreign == record.audit.altered == 0 for record in records)
    assert all(record.audit.missing == 0 for record in way.records)


@by_gateway
@pytest.mark.parametrize("name", ["deepseek", "openai"])
def test_claude_code_makes_its_history_shorter(way, claude):  # noqa: F811
    test_claude_code.ask(claude, way.ask(0))
    claude("--continue", "-p", "/compact")
    test_claude_code.ask(claude, way.ask(1), "--continue")
    test_claude_code.ask(claude, way.ask(2), "--continue")
    assert all(record.reply.status == 200 for record in way.records)
    assert all(record.audit.clean for record in way.records)


@pytest.fixture
def crowd(way, monkeypatch):
    """Makes the provider count many tokens, once, when it has answered this many requests."""

    def crowd(after):
        measure = way.sim.measure

        def measured(exchange, canonical):
            usage = measure(exchange, canonical)
            return usage._replace(prompt=MANY) if len(way.records) == after else usage

        monkeypatch.setattr(way.sim, "measure", measured)

    return crowd


@by_gateway
@pytest.mark.parametrize("sockets", [False, True], ids=["http", "websocket"])
@pytest.mark.parametrize("name", ["deepseek", "claude-bound"])
def test_codex_makes_its_history_shorter(way, codex, sockets, crowd):  # noqa: F811
    """By itself, when more tokens are used than it may have: a turn of its own asks for a summary."""
    options = test_codex.options(way, sockets=sockets)
    options += ("-c", f"model_auto_compact_token_limit={MANY // 2}")
    crowd(after=2)
    codex("exec", *options, way.ask(0))
    codex("exec", "resume", "--last", *options, way.ask(1))
    codex("exec", "resume", "--last", *options, way.ask(2))
    assert [record.reply.status for record in way.records] == [200] * (TURNS + 1)
    summary = way.records[3]  # it comes without tools, for which no thought is needed
    assert [b'"tools"' in record.request.body for record in way.records].index(False) == 3
    assert all(record.audit.clean for record in way.records if record is not summary)
    assert summary.audit.foreign == summary.audit.altered == summary.audit.misplaced == 0
    assert way.records[4].marker != way.records[3].marker  # another history from here
    assert way.records[-1].audit.exact >= 5


@by_gateway
@pytest.mark.parametrize("name", ["deepseek", "claude-bound"])
def test_codex_is_killed_in_the_middle_of_an_answer(way, codex):  # noqa: F811
    """What was not said to the end is not in the history, and nothing of it goes back."""
    options = test_codex.options(way)
    codex("exec", *options, way.ask(0))
    way.sim.fail_next("stall:3")
    codex.until(lambda: len(way.records) == 4, "exec", "resume", "--last", *options, way.ask(1))
    codex("exec", "resume", "--last", *options, way.ask(2))
    assert all(record.reply.status == 200 for record in way.records)
    assert all(record.audit.clean for record in way.records)
    assert way.records[-1].audit.exact >= 5


@pytest.fixture
def full(way, monkeypatch):
    """Makes the provider refuse the next request as too long."""

    def fill():
        respond = way.sim.respond

        def refuse(exchange):
            monkeypatch.setattr(way.sim, "respond", respond)
            return way.sim.refuse(Problem(400, TOO_LONG))

        monkeypatch.setattr(way.sim, "respond", refuse)

    return fill


@by_gateway
@pytest.mark.parametrize("name", ["deepseek", "kimi-k3"])
def test_claude_code_compacts_when_the_window_is_full(way, claude, full):  # noqa: F811
    """It knows the error by its words, makes its history shorter and asks again."""
    test_claude_code.ask(claude, way.ask(0))
    full()
    test_claude_code.ask(claude, way.ask(1), "--continue")
    statuses = [record.reply.status for record in way.records]
    assert statuses[:4] == [200, 200, 200, 400]
    assert set(statuses[4:]) == {200}
    assert all(record.audit.clean for record in way.records)


@by_gateway
@pytest.mark.parametrize("name", ["deepseek", "claude-bound"])
def test_codex_is_told_that_the_window_is_full(way, codex, full):  # noqa: F811
    """It knows the error by its code; a run without a terminal ends with it."""
    options = test_codex.options(way)
    codex("exec", *options, way.ask(0))
    full()
    with pytest.raises(AssertionError, match="ran out of room in the model's context window"):
        codex("exec", "resume", "--last", *options, way.ask(1))
    codex("exec", "resume", "--last", *options, way.ask(2))
    assert [record.reply.status for record in way.records] == [200, 200, 200, 400, 200, 200, 200]
    assert all(record.audit.clean for record in way.records)
