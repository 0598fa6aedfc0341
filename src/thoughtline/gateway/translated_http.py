"""The HTTP side of a translated exchange: where the request goes, and what its client is told.

`translated_request` takes a client's request to the engine in the dialect of its upstream, or
refuses what cannot be said there; `HttpTranslation` has the rest of the way, there and back.
"""

import re
from collections.abc import Iterable, Sequence
from math import ceil
from urllib.parse import quote

from msgspec.structs import replace

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.base import Dialect
from thoughtline.dialects.upstream_errors import upstream_error
from thoughtline.engine.caller import Incoming
from thoughtline.engine.endpoints import Upstream
from thoughtline.engine.exchange import Engine
from thoughtline.engine.translated_source import TranslatedSource, translated
from thoughtline.engine.translation import Translation
from thoughtline.gateway.auth import Auth
from thoughtline.gateway.errors import impossible, unknown_response, untranslatable
from thoughtline.gateway.headers import fit, with_configured
from thoughtline.wires.base import Outbound

_PASSED_ON = ("retry-after", "retry-after-ms", "x-should-retry", "x-request-id", "request-id")
"""Headers of an answer that mean the same to every client."""
TRANSLATED = "x-thoughtline-translated"
_SECONDS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")
_MAX_NAMES = 32


class HttpTranslation:
    """One translated request on its way there and back."""

    def __init__(
        self,
        translation: Translation,
        provider: Dialect,
        left: Sequence[str],
        *,
        program: str = "",
        socket: bool = False,
    ) -> None:
        """`program`: the client's user agent; `socket`: it reads events from a WebSocket."""
        self.translation = translation
        self._program, self._socket = program, socket
        self.client = translation.client
        self._provider = provider
        self._left = left

    def outbound(
        self, body: bytes, upstream: Upstream, model: str, credential: str, *, path: str = ""
    ) -> Outbound:
        """The request as the provider's own clients would send it; nothing of this client's."""
        provider = self._provider
        stream = self.translation.params.stream and not path
        path = path or provider.request_path(quote(model, safe=""), stream=stream)
        path, _, query = path.partition("?")
        made = [
            ("content-type", "application/json"),
            ("accept", "text/event-stream" if stream else "application/json"),
            ("accept-encoding", "identity"),
            *provider.request_headers,
        ]
        if key := upstream.key or credential:
            shown = DIALECTS[upstream.credential_dialect_for(provider.name)]
            made.append(shown.credential(key))
        return Outbound(
            method="POST",
            url=upstream.url(provider.name, path, query),
            headers=with_configured(made, upstream.headers),
            body=body,
            timeouts=upstream.timeouts,
        )

    def answer_headers(
        self, received: Iterable[tuple[str, str]], *, stream: bool
    ) -> list[tuple[str, str]]:
        """The headers of an answer: those that every client understands, and what was done."""
        events = stream and not self.translation.array
        kind = "text/event-stream; charset=utf-8" if events else "application/json"
        passed = [(name, value) for name, value in received if name in _PASSED_ON]
        return [("content-type", kind), *passed, *self.client.translated_headers, self.report()]

    def report(self) -> tuple[str, str]:
        """Which dialect became which, and what could not be said."""
        value = f"{self.client.name}>{self._provider.name}"
        if self._left:
            names = dict.fromkeys(map(fit, self._left))
            value += f"; left={','.join([*names][:_MAX_NAMES])}"
        return TRANSLATED, value

    def error(
        self, status: int, body: bytes, received: Sequence[tuple[str, str]]
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """An error as the client expects it: status, headers and body."""
        after = dict(received).get("retry-after", "").strip()
        seconds = float(after) if _SECONDS.fullmatch(after) else None
        error = upstream_error(status, body, retry_after=seconds)
        if not after and error.retry_after is not None:
            received = [*received, ("retry-after", f"{ceil(error.retry_after)}")]
        if self.translation.params.stream and self.client.error_in_stream(
            error.kind, self._program, socket=self._socket
        ):
            head = self.translation.head("0" * 32, created=0)
            writer = self.client.answer_writer(head)
            told = writer.start() + writer.fail_with(error)
            return 200, self.answer_headers(received, stream=True), told
        made = self.answer_headers(received, stream=False)
        return error.status, made, self.client.upstream_error(error)


async def translated_request(
    asked: Incoming,
    provider: Dialect,
    auth: Auth,
    engine: Engine,
    *,
    query: str = "",
    program: str = "",
    socket: bool = False,
) -> tuple[Incoming, HttpTranslation]:
    """A client's request for an upstream that speaks another dialect."""
    incoming = await translated(
        asked, provider, auth.handles, store=engine.store, clock=engine.clock
    )
    source, translation = incoming.source, incoming.translation
    assert translation and isinstance(source, TranslatedSource)  # noqa: S101, PT018
    if translation.unknown_response:
        raise unknown_response(translation.unknown_response)
    if translation.refused:
        raise impossible(translation.refused, provider.name)
    if asked.strict and source.left:
        raise untranslatable(source.left, provider.name)
    array = asked.request.stream and asked.dialect.streams_array(query)
    translation = replace(translation, array=array)
    told = HttpTranslation(translation, provider, source.left, program=program, socket=socket)
    return incoming, told
