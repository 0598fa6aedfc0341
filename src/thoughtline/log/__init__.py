"""The log: parts, events, turns and sessions as values. No I/O.

`parts` are what a turn is made of, `events` are what is written, `turns` and `sessions` are folded
from events, `keys` identify a turn in a client's echo, `index` has what a look-up finds, and
`durations` how long thoughts took.
"""
