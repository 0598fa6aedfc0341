"""The library for people who write agents: sessions, runs, tools and adapters for interfaces.

- `log`, `chat`, `run`  open a store of sessions, go on with one of them, run it
- `provider`            the provider and model to ask, and where requests to it go
- `loop`                the turn loop: read the log, send, record, execute tools, again
- `tools`, `ui`         tools and permissions; streams and histories for front ends
- `export`              sessions as lines of JSON

The names that people need are exported by `thoughtline` itself.
"""
