"""The library: sessions for people who write agents.

- `logs`         open a store of sessions: create, resume, fork, list, export, import
- `chats`        one session, where in its tree we stand, and with whom we talk
- `runs`         one run: events to iterate over, an answer to await, a way to cancel
- `providers`    whom to ask: a name, a model, options
- `loop`         the turn loop: fold the log, send, record; run tools; again
- `histories`    a path of the log as a history that every provider takes
- `transcripts`  a request folded from the log, with the thoughts that may go back
- `sending`      one request, tried again where that is harmless
- `healing`      what to change when a provider refuses a thought
- `records`      one turn while it happens, written step by step
- `permits`      who may call which tool
- `ledgers`      a session as one process reads and writes it
- `transfers`    sessions as lines of JSON
- `accounts`     under which name a credential is known

What people need of it is in `thoughtline` itself. It walks through the same rooms as the gateway,
and knows nothing of it.
"""
