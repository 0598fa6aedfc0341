"""What moves bytes to an upstream: the port (`base`) and its implementations.

- `http`          requests over HTTP, bytes as they come
- `websocket`     Responses over a WebSocket, one connection per session: how to use it
- `lanes`         requests one after the other, sent again where nobody notices, and forks
- `connections`   one socket: frames out, frames in by lane, its age
- `placed`        a lane behind the plain port, for code that knows no frames
- `answers`       one response: its events, and what the server will remember of it
- `continuation`  the proof that only what is new may be sent, and the reasons why not
- `chains`        the rolling hash over a conversation's items
- `requests`      a request taken apart, and written as a frame
- `frames`        what a server sends
- `fallback`      the same request over HTTP
- `health`        whether a WebSocket is worth a try
"""
