"""Which part of the matrix of clients, providers and ways every run of the tests drives.

The whole of it takes minutes, and `make clients` takes them. `make test` drives a cover: each
client against each provider through the gateway, in one of the manners it can be used in; each
manner of each client at least once; and each test with the transport once. A manner is a test
with its parameters, like streaming or not.
"""

from collections import Counter
from typing import NamedTuple


class Case(NamedTuple):
    """One conversation of one client."""

    client: str
    test: str
    options: str
    provider: str
    way: str

    @property
    def manner(self):
        return self.client, self.test, self.options


def cover(cases):
    """The cases to drive, in their order."""
    kept, used = set(), Counter()

    def keep(case):
        kept.add(case)
        used[case.manner] += 1

    gateway = [case for case in cases if case.way == "gateway"]
    for same in grouped(gateway, lambda case: (case.client, case.provider)):
        keep(min(same, key=lambda case: used[case.manner]))
    for number, same in enumerate(grouped(gateway, lambda case: case.manner)):
        if not used[same[0].manner]:
            keep(same[number % len(same)])
    transport = [case for case in cases if case.way == "transport"]
    for number, same in enumerate(grouped(transport, lambda case: (case.client, case.test))):
        keep(same[number % len(same)])
    return [case for case in cases if case in kept]


def grouped(cases, key):
    groups = {}
    for case in cases:
        groups.setdefault(key(case), []).append(case)
    return list(groups.values())
