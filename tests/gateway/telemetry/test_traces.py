"""Spans: their names, their times, and where they go."""

import asyncio

import pytest

from support.built_gateway import BuiltGateway
from support.gateway import Answer, ScriptedWire, TurnClient
from support.telemetry import chatty
from thoughtline.gateway.telemetry import (
    Telemetry,
    Traces,
    open_log,
)
from thoughtline.gateway.telemetry.traces import NAMES
from thoughtline.log.parts import Text
from thoughtline.testing import FrozenClock


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
    built = BuiltGateway(chatty())
    built.telemetry._traces = traces
    client = TurnClient(built.gateway(), "chat", "deepseek-v4-pro", keep=False)
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
    built = BuiltGateway(chatty("gemini"), wire=ScriptedWire(Answer(500, {})))
    built.telemetry._traces = traces
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    await built.gateway().post("/v1beta/models/gemini-3:generateContent", body)
    (span,) = finished()
    assert span.name == "generate_content gemini-3"
    assert span.attributes["gen_ai.provider.name"] == "gcp.gemini"
    assert span.attributes["error.type"] == "500"
    assert span.status.status_code.name == "ERROR"
    await built.telemetry.close()


def test_a_collector_is_connected_by_its_address(monkeypatch):
    from opentelemetry.exporter.otlp.proto.http import trace_exporter

    from thoughtline.gateway.telemetry import connect

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
    built = BuiltGateway(chatty())
    built.proxy.observer = telemetry
    built.proxy.clock = clock
    client = TurnClient(built.gateway(), "chat", "deepseek-v4-pro")
    await client.say(Text(text="hi"))
    (span,) = finished()
    assert span.start_time == span.end_time == 1_000_000_000_000
