"""The gateway: point any client's base URL at it, and no thought is lost.

- `app`        the ASGI callable: which room a request goes to
- `proxy`      THE WALK: one request through the rooms, from top to bottom
- `routes`     what a path means: upstream, dialect, model
- `upstreams`  which upstream serves a model, and where it listens
- `access`     who is it, and with which credential does the request go on
- `bodies`     reading a request's body, within limits
- `sockets`    the Responses API over a WebSocket: connections
- `lanes`      requests of one lane of such a connection, walked like any other
- `transcripts` what its client does not say again
- `gallery`    bytes to the client first, then to the reader
- `healing`    one controlled retry when a provider refuses a thought
- `status`     health, readiness, metrics, version
- `models`     the list of models
- `openapi`    what can be asked here, as a document
- `admin`      the cache API
- `pages`      what these share: answers (`shapes`), refusals, the administrator's door
- `recording`  what of a turn is kept
- `sweeping`   deleting what nobody has used for a while
- `keyfile`    the secret behind keyed hashes
- `build`      all of it, put together from the settings
"""
