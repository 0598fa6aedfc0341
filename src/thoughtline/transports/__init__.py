"""The walk without a server: httpx2 transports that keep the thoughts of SDKs in this process.

    http_client = httpx2.Client(transport=Transport("sqlite:///thoughts.db"))
    client = openai.OpenAI(http_client=http_client)

A request takes the same walk as in the gateway (`gateway.proxy`), with the same replay, the same
ledger and the same one remedy. Only its two ends differ: the client is whoever calls the transport,
and the wire is the transport inside it.

- `mounts`    `AsyncTransport`, and `Transport`, which is the same on a loop in a thread
- `passages`  the two ends of the walk: one request as its client, the inner transport as its wire
- `threads`   an event loop for callers without one, and streams that cross over

Needs httpx2: `pip install "thoughtline[sdk]"`.
"""

from thoughtline.transports.mounts import AsyncTransport, Transport

__all__ = ["AsyncTransport", "Transport"]
