"""A model that needs no key and no network: it thinks slowly, and knows about prime numbers.

It is a strict simulated provider of `thoughtline.testing` on a loopback port: it rejects what the
real one rejects, and wants its thoughts back.
"""

import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from math import isqrt

from thoughtline import Provider
from thoughtline.testing import Pace, Piece, Say, Simulator, Think, Use, serving, simulator


def smallest_divisor(number: int) -> str:
    """The smallest divisor of a whole number, other than 1."""
    found = (n for n in range(2, isqrt(number) + 1) if number % n == 0)
    return str(next(found, number))


def script(_: int, sim: Simulator) -> tuple[Piece, ...]:
    """What the model thinks, does and says, from the last message that it was sent."""
    messages = json.loads(sim.now.request.body)["messages"]
    words = str(next(m["content"] for m in reversed(messages) if m["role"] == "user"))
    number = int((re.findall(r"\d+", words) or ["0"])[0])
    if messages[-1]["role"] == "tool":
        return conclude(number, int(messages[-1]["content"]))
    if not 1 < number < 10**9:
        return Think("There is no number in that. I had better say what I am good for."), Say(
            "I am a small simulated model: I think slowly, and all I know is **prime numbers**.\n\n"
            "Ask me whether some number is prime."
        )
    return ponder(number), Use("smallest_divisor", json.dumps({"number": number}))


def ponder(number: int) -> Think:
    """Think about a number; the larger it is, the longer."""
    root = isqrt(number)
    tried = [p for p in range(2, root + 1) if all(p % q for q in range(2, isqrt(p) + 1))][:12]
    steps = [f"{number} = {p} × {number // p} + {number % p}" for p in tried]
    return Think(
        f"Is {number} prime? A divisor, if there is one, is at most its square root, {root}. "
        f"Let me try the primes one by one.\n" + "\n".join(steps) + "\nBetter make sure."
    )


def conclude(number: int, divisor: int) -> tuple[Piece, ...]:
    """Think about what the tool found, and answer."""
    if divisor == number:
        return Think(f"The smallest divisor is {number} itself, so nothing else divides it."), Say(
            f"Yes, **{number} is prime**: nothing but 1 and {number} divides it."
        )
    rest = number // divisor
    return Think(f"{divisor} divides it, and {divisor} × {rest} is {number} indeed."), Say(
        f"No, **{number} is not prime**: it is {divisor} × {rest}."
    )


@contextmanager
def offline(delay: float) -> Iterator[Provider]:
    """The model as a provider; `delay` is the time between two of its words, in seconds."""
    sim = simulator("deepseek", script=script)
    log = logging.getLogger("uvicorn.error")
    level = log.level
    with serving(sim, pace=Pace(delay)) as sims:
        log.setLevel(level)  # served quietly, which is not meant for the server in front
        yield Provider("deepseek", model=sim.models()[0], base_url=sims.url("deepseek"), key="any")
