"""OpenTelemetry spans with the names of its GenAI conventions.

A span is made when its request has ended, with the times at which it began and ended. The
conventions still change (they are "in development"), so all names stand in one table.
OpenTelemetry is imported only when an endpoint is set; it comes with the extra `otel`.
"""

import asyncio
import importlib
from collections.abc import Mapping
from typing import Any

from thoughtline.dialects import DEFAULT, DIALECTS
from thoughtline.errors import SettingsError

NAMES = {
    "operation": "gen_ai.operation.name",
    "provider": "gen_ai.provider.name",
    "model": "gen_ai.request.model",
    "stream": "gen_ai.request.stream",
    "session": "gen_ai.conversation.id",
    "served": "gen_ai.response.model",
    "response": "gen_ai.response.id",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "status": "http.response.status_code",
    "failure": "error.type",
    "turn": "thoughtline.turn.id",
    "upstream": "thoughtline.upstream.name",
    "dialect": "thoughtline.dialect",
    "outcome": "thoughtline.turn.outcome",
    "thoughts": "thoughtline.thought.count",
    "thought_seconds": "thoughtline.thought.duration",
    "added_seconds": "thoughtline.added.duration",
    "restored": "thoughtline.replay.restored",
    "corrected": "thoughtline.replay.corrected",
    "exact": "thoughtline.replay.exact",
    "absent": "thoughtline.replay.absent",
    "missed": "thoughtline.replay.missed",
    "tied": "thoughtline.replay.tied",
    "placeholder": "thoughtline.replay.placeholder",
    "dropped": "thoughtline.replay.dropped",
}
"""Field of a log line → attribute of a span; `thoughtline.…` where the conventions have none."""

PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "codex": "openai",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""Policies whose provider the conventions know by another name."""


class Traces:
    """Makes a span for each request."""

    def __init__(self, tracer: Any, *, provider: Any = None) -> None:
        trace = importlib.import_module("opentelemetry.trace")
        self._tracer = tracer
        self._provider = provider
        self._kind = trace.SpanKind.CLIENT
        self._error = trace.Status(trace.StatusCode.ERROR)

    def ended(self, facts: Mapping[str, Any], *, began: int, ended: int) -> None:
        """Make the span of a request; times are nanoseconds since the epoch."""
        operation = DIALECTS.get(facts["dialect"], DEFAULT).operation
        provider = facts["provider"]
        attributes = {
            NAMES["operation"]: operation,
            **{NAMES[name]: value for name, value in facts.items() if name in NAMES},
            NAMES["provider"]: PROVIDERS.get(provider, provider),
        }
        span = self._tracer.start_span(
            f"{operation} {facts['model']}",
            kind=self._kind,
            start_time=began,
            attributes=attributes,
        )
        if "failure" in facts:
            span.set_status(self._error)
        span.end(end_time=ended)

    async def close(self) -> None:
        """Send the spans that wait to be sent."""
        if self._provider is not None:
            await asyncio.to_thread(self._provider.shutdown)


def connect(endpoint: str) -> Traces:
    """Spans that go to a collector (OTLP over HTTP). Raises `SettingsError` without the extra."""
    try:
        resources = importlib.import_module("opentelemetry.sdk.resources")
        sdk = importlib.import_module("opentelemetry.sdk.trace")
        export = importlib.import_module("opentelemetry.sdk.trace.export")
        otlp = importlib.import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ImportError as error:
        raise SettingsError(
            "`telemetry.otel_endpoint` is set, but OpenTelemetry is not installed; install "
            "`opentelemetry-sdk` and `opentelemetry-exporter-otlp-proto-http` beside Thoughtline, "
            "or leave the setting empty"
        ) from error
    url = endpoint.rstrip("/")
    url = url if url.endswith("/v1/traces") else f"{url}/v1/traces"
    resource = resources.Resource.create({"service.name": "thoughtline"})
    provider = sdk.TracerProvider(resource=resource)
    provider.add_span_processor(export.BatchSpanProcessor(otlp.OTLPSpanExporter(endpoint=url)))
    return Traces(provider.get_tracer("thoughtline"), provider=provider)
