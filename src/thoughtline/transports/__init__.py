"""The gateway without a server: httpx2 transports that keep the thoughts of SDKs in this process.

    http_client = httpx2.Client(transport=Transport("sqlite:///thoughts.db"))
    client = openai.OpenAI(http_client=http_client)

A request goes through the gateway's own proxy (`gateway.proxy`), with the same replay, the same log
and the same recovery. Only the two ends differ: the client is the transport's caller, and the
wire is the transport inside it.

- `transport`  `AsyncTransport`, and `Transport`, which is the same on a loop in a thread
- `request`    one request as the proxy's client, and the inner transport as its wire
- `threads`    an event loop for callers without one, and streams that cross over

Needs the package httpx2, which the extra `sdk` brings.
"""

from thoughtline.transports.transport import AsyncTransport, Transport

__all__ = ["AsyncTransport", "Transport"]
