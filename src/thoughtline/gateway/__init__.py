"""The gateway: point any client's base URL at it, and no thought is lost.

- `server/`     the HTTP server: connections and request cycles
- `app`         the ASGI application: which handler a request goes to, graceful shutdown
- `proxy`       one request to a provider, step by step; `websocket/` the same over a WebSocket
- `relay`       the response: to the client first, then to the reader
- `auth`        who asks, and which credential goes upstream; `cors` which web pages may ask
- `headers`, `bodies`, `errors`, `asgi`   what these steps share
- `pages/`      the gateway's own pages: status, models, cache API, `/openapi.json`
- `telemetry/`  metrics, log lines and traces
- `retention`   which events are written, and when sessions are deleted
- `settings/`   the settings; `build` makes the gateway from them
"""
