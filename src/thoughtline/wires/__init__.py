"""What moves bytes to an upstream: the port (`base`) and its implementations.

- `http`            requests over HTTP/1.1, with a pool of connections
- `http_connection` one connection, and the response that arrives on it
- `http_target`     what a URL means: address, request line and headers
- `proxy`           proxies that the environment names
- `websocket`       Responses over a WebSocket, one connection per session
"""
