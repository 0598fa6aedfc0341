"""Metrics, log lines and spans: all of the numbers, none of the words."""

import asyncio
import io
import json
import logging

import pytest
from msgspec.structs import replace

from built import KEY, Built, configured, converse, metrics
from rooms import Answer, Client, ScriptedWire
from stores.samples import turn
from thoughtline.errors import Conflict, Unavailable, WireError
from thoughtline.parts import Carrier, Text, Thought, Timing
from thoughtline.replay import Action, Restoration, Ruling, Rung
from thoughtline.settings import Log, Upstream
from thoughtline.stores.memory import MemoryStore
from thoughtline.telemetry import Counts, Metrics, Telemetry, Traces, adopt, open_log
from thoughtline.telemetry.observer import duration, scrub
from thoughtline.telemetry.tallies import by_word, runs, tally
from thoughtline.telemetry.traces import NAMES
from thoughtline.testing import FrozenClock

SIMS = {
    "deepseek": ("chat", "deepseek"),
    "openai": ("responses", "openai"),
    "claude": ("messages", "anthropic"),
    "gemini": ("gemini", "gemini"),
}
"""Simulator → its dialect and policy."""

THINKING = {"claude": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}
"""What has to be asked for, where models do not think by themselves."""


def chatty(policy="deepseek", level="debug", **more):
    upstream = Upstream(name="up", base_url="http://sim", policy=policy)
    return configured(upstreams={"up": upstream}, log=Log(level=level, format="json"), **more)


# -- nothing that was said -----------------------------------------------------------------------


@pytest.mark.parametrize("sim", SIMS)
async def test_logs_of_a_whole_conversation_hold_no_thought_no_body_and_no_key(sim):
    dialect, policy = SIMS[sim]
    built = Built(chatty(policy), sim=sim)
    model = built.sim.models()[0]
    head = {"authorization": f"Bearer {KEY}", "x-api-key": KEY, "x-goog-api-key": KEY}
    fields = THINKING.get(sim)
    client = Client(built.rooms(), dialect, model, keep=False, headers=head, fields=fields)
    await client.say(Text(text="question-canary"))
    for _ in range(5):
        await client.say(*client.next())
    await built.proxy.drain(1)
    await asyncio.sleep(0)  # lines are written when the loop comes round
    text = built.lines.getvalue()
    assert len(built.events("request")) == 6
    assert all(line["status"] == 200 for line in built.events("request"))
    secrets = [KEY, "canary"]
    for spoken in client.turns:
        for part in (*spoken.input, *spoken.output):
            secrets += [
                getattr(part, field)
                for field in ("text", "raw", "arguments", "content")
                if len(getattr(part, field, "")) > 8
            ]
    assert len(secrets) > 14
    assert any(spoken.thoughts for spoken in client.turns)
    for secret in secrets:
        assert secret not in text
        assert json.dumps(secret)[1:-1] not in text
    page, _ = built.telemetry.metrics.page()
    assert not [secret for secret in secrets if secret.encode() in page]


async def test_nor_when_things_go_wrong():
    refusal = Answer(400, {"error": {"message": "I do not like question-canary"}})
    fatal = Answer(500, {"error": {"message": "answer-canary"}})

    def gone(request):
        raise WireError("cannot reach http://sim/v1?key=secret-canary&x=1: refused")

    built = Built(chatty(), wire=ScriptedWire(refusal, fatal, gone, gone))
    rooms = built.rooms()
    body = {"model": "m", "messages": [{"role": "user", "content": "question-canary"}]}
    head = {"authorization": f"Bearer {KEY}"}
    answers = [await rooms.post("/v1/chat/completions", body, head) for _ in range(3)]
    answers.append(await rooms.post("/v1/nothing", body, head | {"x-thoughtline-replay": "off"}))
    await asyncio.sleep(0)  # lines are written when the loop comes round
    assert [a.status for a in answers] == [400, 500, 502, 502]
    lines = built.events("request")
    assert [(line["status"], line["outcome"]) for line in lines] == [
        (400, "refused"),
        (500, "failed"),
        (502, "refused"),
        (502, "refused"),
    ]
    assert [line["level"] for line in lines] == ["info", "warning", "warning", "warning"]
    assert "canary" not in built.lines.getvalue()


def test_reasons_are_scrubbed_and_short():
    assert scrub("no: https://x/y?alt=sse&key=AIza-1&b=2") == "no: https://x/y?alt=sse&key=***&b=2"
    assert scrub("?access_token=abc d") == "?access_token=*** d"
    assert len(scrub("x" * 5000)) == 200


# -- lines ---------------------------------------------------------------------------------------


def test_one_line_per_request():
    built = Built(chatty(level="info"))
    with built.client() as client:
        answers = converse(client, 3)
        client.post("/u/up/v1/embeddings", json={})
        client.post("/u/nobody/v1/embeddings", json={})
    lines = built.events("request")
    assert len(lines) == 5
    third, passed, refused = lines[2:]
    assert third["session"] == answers[2].headers["x-thoughtline-session"]
    assert third["turn"] == answers[2].headers["x-thoughtline-turn"]
    assert third["tenant"] == built.proxy.door.fingerprint(KEY)
    assert (third["upstream"], third["provider"], third["dialect"]) == ("up", "deepseek", "chat")
    assert (third["status"], third["outcome"], third["restored"]) == (200, "completed", 2)
    assert (third["model"], third["stream"], third["thoughts"]) == ("deepseek-v4-pro", False, 1)
    assert third["input_tokens"] > third["reasoning_tokens"] > 0
    assert 0 < third["added_seconds"] < third["seconds"] < 10
    assert passed["outcome"] == "passed"
    assert (refused["outcome"], refused["reason"]) == ("refused", "unknown_upstream")
    assert refused["upstream"] == ""  # what a client makes up is no label


def test_below_the_level_nothing_is_put_together(monkeypatch):
    built = Built(chatty(level="warning"))

    def tell(*_):
        raise AssertionError("nobody will see this")

    monkeypatch.setattr(built.telemetry, "_tell", tell)
    with built.client() as client:
        converse(client, 2)
    assert built.lines.getvalue() == ""


def test_json_for_machines_and_columns_for_people():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for style, stream, pretty in (
        ("auto", io.StringIO(), False),
        ("auto", Terminal(), True),
        ("json", Terminal(), False),
        ("text", io.StringIO(), True),
    ):
        log = open_log(style=style, stream=stream)
        log.debug("unseen")
        log.info("seen", number=1, text="ä")
        line = stream.getvalue()
        assert "unseen" not in line
        if pretty:
            assert "seen" in line
            assert "number" in line
            assert ("\x1b[" in line) is isinstance(stream, Terminal)
        else:
            assert list(json.loads(line)) == ["time", "level", "event", "number", "text"]
            assert json.loads(line)["time"].endswith("Z")


def test_a_stream_that_is_gone_stops_nobody():
    stream = io.StringIO()
    log = open_log(stream=stream)
    stream.close()
    log.warning("into the void")


@pytest.mark.parametrize("style", ["json", "text"])
def test_tracebacks_show_no_variables(style):
    stream = io.StringIO()
    log = open_log(style=style, stream=stream)
    adopt(log, "some.server")
    held = "variable-canary"
    try:
        raise KeyError(len(held))
    except KeyError:
        logging.getLogger("some.server").exception("it broke: %s", "badly")
    assert "it broke: badly" in stream.getvalue()
    assert "KeyError" in stream.getvalue()
    assert "variable-canary" not in stream.getvalue()
    logging.getLogger("some.server").handlers = []


def test_the_secret_of_an_upstream_is_in_no_line():
    upstream = Upstream(name="up", base_url="http://sim", policy="deepseek")
    settings = replace(chatty(), upstreams={"up": upstream})
    built = Built(settings)
    with built.client() as client:
        converse(client, 1)
    assert KEY not in built.lines.getvalue()


# -- numbers -------------------------------------------------------------------------------------


def ruling(action, reason="", rung=Rung.NONE, memory=""):
    return Ruling(turn=0, action=action, reason=reason, rung=rung, memory=memory)


RULINGS = (
    ruling(Action.RESTORED, rung=Rung.CHAIN, memory="t1"),
    ruling(Action.RESTORED, rung=Rung.NEAR, memory="t2"),
    ruling(Action.REPLACED, rung=Rung.CHAIN, memory="t3"),
    ruling(Action.REPLACED, "renamed"),  # the client's own
    ruling(Action.EXACT, rung=Rung.CHAIN, memory="t4"),
    ruling(Action.ABSENT, "had none", Rung.CHAIN, "t5"),
    ruling(Action.ABSENT, "unknown"),
    ruling(Action.ABSENT, "ignored there"),
    ruling(Action.PLACEHOLDER, "ambiguous"),
    ruling(Action.PLACEHOLDER, "foreign account", Rung.CHAIN, "t6"),
    ruling(Action.DROPPED, "foreign model", Rung.ALONE, "t7"),
    ruling(Action.DROPPED, "forbidden", Rung.CHAIN, "t8"),
)


def test_tallies():
    assert by_word(tally(runs(RULINGS))) == {
        "restored": 2,
        "replaced": 2,
        "exact": 1,
        "absent": 2,
        "missed": 1,
        "placeholder": 2,
        "dropped": 2,
    }
    assert tally(runs(RULINGS))["restored", "near"] == 1
    assert sum(tally(runs(RULINGS)).values()) == len(RULINGS)


def test_counts():
    assert Counts().rate == "0.0%"
    restoration = Restoration(rulings=RULINGS)
    counts = Counts.of(runs(restoration.rulings))
    assert counts == Counts(hits=5, misses=2, replays=3)
    assert counts.misses == restoration.missed
    assert counts.rate == "42.9%"
    assert counts.since(Counts(hits=4, misses=1, replays=3)) == Counts(hits=1, misses=1, replays=0)
    assert counts.since(counts) == Counts()


def test_durations_of_thoughts():
    def made(**timing):
        return Thought(carrier=Carrier.ITEM, raw="{}", timing=Timing(**timing))

    second = 1_000_000_000
    assert duration(made(opened=second, first=second * 2, last=second * 3, closed=second * 4)) == 3
    assert duration(made(first=second * 2, last=second * 3)) == 1
    assert duration(made(opened=second)) is None
    assert duration(made(opened=second, closed=second * 2, aborted=True)) is None
    assert duration(Thought(carrier=Carrier.ITEM, raw="{}")) is None


class Broken(MemoryStore):
    error = None

    async def append(self, batch):
        if self.error and batch.memories:
            raise self.error
        return await super().append(batch)


@pytest.mark.parametrize(
    ("error", "fate"), [(Unavailable("disk"), "postponed"), (Conflict("no"), "lost")]
)
def test_what_could_not_be_written_is_reported(error, fate):
    store = Broken()
    built = Built(chatty(), store=store)
    with built.client() as client:
        store.error = error
        assert converse(client, 1)[0].status_code == 200
        seen = metrics(client)
        store.error = None
    assert seen[f'thoughtline_unwritten_total{{fate="{fate}"}}'] == 1
    assert seen["thoughtline_store_trouble"] == (fate == "postponed")
    assert seen["thoughtline_store_backlog"] == (fate == "postponed")
    (line,) = built.events("unwritten")
    assert (line["fate"], line["level"]) == (fate, "warning")


async def test_what_is_told_at_once_is_written_at_once():
    class Counted(io.StringIO):
        writes = 0

        def write(self, text):
            self.writes += 1
            return super().write(text)

    stream = Counted()
    log = open_log(style="json", stream=stream)
    for number in range(3):
        log.info("line", number=number)
    assert stream.writes == 0
    await asyncio.sleep(0)
    log.info("line", number=3)
    await asyncio.sleep(0)
    assert stream.writes == 2
    told = [json.loads(line)["number"] for line in stream.getvalue().splitlines()]
    assert told == [0, 1, 2, 3]


def test_a_turn_that_is_given_up_is_an_error_in_the_log():
    lines = io.StringIO()
    telemetry = Telemetry(log=open_log(style="json", stream=lines))
    telemetry.dropped(turn("s", "t1"), "too many turns wait")
    line = json.loads(lines.getvalue())
    assert (line["level"], line["session"], line["fate"]) == ("error", "s", "lost")


async def test_a_store_that_cannot_be_asked_leaves_a_gap_that_is_reported():
    class Mute(MemoryStore):
        async def find(self, tenant, names):
            raise Unavailable("the disk is gone")

    built = Built(chatty(), store=Mute())
    rooms = built.rooms()
    history = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    answer = await rooms.post("/v1/chat/completions", {"model": "m", "messages": history})
    assert answer.status == 200
    (gap,) = built.events("gap")
    assert gap["why"] == "the disk is gone"


async def test_healing_is_counted():
    built = Built(chatty(policy="openai"), sim="deepseek")  # a row that is wrong about this one
    rooms = built.rooms()
    client = Client(rooms, "chat", "deepseek-v4-pro", keep=False)
    await client.say(Text(text="hi"))
    await client.say(*client.next())
    healed = built.events("healed")
    assert [(line["remedy"], line["changed"]) for line in healed] == [("restore_all", True)]
    page, _ = built.telemetry.metrics.page()
    assert (
        b'thoughtline_healed_total{changed="yes",provider="openai",remedy="restore_all"} 1.0'
        in page
    )


def test_metrics_do_not_share_a_registry():
    one, two = Metrics(), Metrics()
    one.requests["a", "chat", "200", "completed"] += 1
    assert b"a" in one.page()[0]
    assert b'upstream="a"' not in two.page()[0]


# -- spans ---------------------------------------------------------------------------------------


@pytest.fixture
def spans():
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield Traces(provider.get_tracer("test"), provider=provider), exporter.get_finished_spans
    provider.shutdown()


async def test_spans_have_the_names_of_the_conventions(spans):
    traces, finished = spans
    built = Built(chatty())
    built.telemetry._traces = traces
    client = Client(built.rooms(), "chat", "deepseek-v4-pro", keep=False)
    await client.say(Text(text="question-canary"))
    await client.say(*client.next())
    await asyncio.sleep(0)  # lines are written when the loop comes round
    _, span = finished()
    assert span.name == "chat deepseek-v4-pro"
    assert span.kind.name == "CLIENT"
    assert span.start_time < span.end_time
    facts = dict(span.attributes)
    assert facts["gen_ai.operation.name"] == "chat"
    assert facts["gen_ai.provider.name"] == "deepseek"
    assert facts["gen_ai.request.model"] == "deepseek-v4-pro"
    assert facts["gen_ai.response.model"] == "deepseek-v4-pro"
    assert facts["gen_ai.usage.reasoning.output_tokens"] > 0
    assert facts["gen_ai.conversation.id"] == built.events("request")[1]["session"]
    assert facts["thoughtline.replay.restored"] == 1
    assert facts["http.response.status_code"] == 200
    assert "error.type" not in facts
    assert set(facts) <= set(NAMES.values())
    assert "canary" not in str(facts)
    assert "Thought" not in str(facts)


async def test_spans_of_failures_and_of_other_names(spans):
    traces, finished = spans
    built = Built(chatty("gemini"), wire=ScriptedWire(Answer(500, {})))
    built.telemetry._traces = traces
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    await built.rooms().post("/v1beta/models/gemini-3:generateContent", body)
    (span,) = finished()
    assert span.name == "generate_content gemini-3"
    assert span.attributes["gen_ai.provider.name"] == "gcp.gemini"
    assert span.attributes["error.type"] == "500"
    assert span.status.status_code.name == "ERROR"
    await built.telemetry.close()


def test_a_collector_is_connected_by_its_address(monkeypatch):
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    from opentelemetry.exporter.otlp.proto.http import trace_exporter

    from thoughtline.telemetry import connect

    seen = []

    class Exporter:
        def __init__(self, *, endpoint):
            seen.append(endpoint)

        def export(self, spans):
            return None

        def shutdown(self):
            pass

        def force_flush(self, timeout_millis=0):
            return True

    monkeypatch.setattr(trace_exporter, "OTLPSpanExporter", Exporter)
    for address in ("http://localhost:4318", "http://localhost:4318/v1/traces"):
        connect(address)._provider.shutdown()
    assert seen == ["http://localhost:4318/v1/traces"] * 2


async def test_times_are_those_of_the_clock(spans):
    traces, finished = spans
    clock = FrozenClock(wall=1000.0)
    telemetry = Telemetry(log=open_log(level="error"), traces=traces, clock=clock)
    built = Built(chatty())
    built.proxy.observer = telemetry
    built.proxy.clock = clock
    client = Client(built.rooms(), "chat", "deepseek-v4-pro")
    await client.say(Text(text="hi"))
    (span,) = finished()
    assert span.start_time == span.end_time == 1_000_000_000_000
