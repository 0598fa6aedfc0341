"""The Responses API over a WebSocket to a provider: only new items are sent.

- `wire`          one session's WebSocket: how to use it, and when it is worth a try
- `stream`        requests one after the other, recovery before the first output, forks
- `connection`    one socket: frames out, frames in by stream, its age
- `response`      one response: its events, and whether it can be continued
- `continuation`  the proof that only new items need to be sent, or the reason why not
- `requests`      a request in its parts, the hash over its items, and how it is written as a frame
- `frames`        what a server sends
- `http_adapter`  a stream as a plain wire, and the fallback over HTTP
"""
