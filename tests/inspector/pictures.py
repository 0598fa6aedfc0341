"""Takes the pictures of the inspector that the documentation shows: `make pictures`.

A made-up day at a gateway is written into a log, one model is left thinking, and a real browser
looks at it. Run it after the page has changed, and look at what comes out.
"""

import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx2
from msgspec.structs import replace

from inspector.browsers import NARROW, Tab, browsing
from inspector.scripted_gateway import ORIGIN, decision, staged, thought, turn
from thoughtline.log.decisions import Action, MatchLevel
from thoughtline.log.events import Outcome
from thoughtline.log.parts import Call, Result

MODELS = {
    "deepseek": "deepseek-v4-pro",
    "openai": "gpt-5.2",
    "anthropic": "claude-opus-4.5",
    "gemini": "gemini-3-pro",
    "kimi": "kimi-k3",
}
QUESTIONS = (
    "Find the memory leak in the worker pool",
    "Refactor the billing module to use decimals",
    "Write a property test for the URL parser",
    "Summarise the incident report of Monday",
    "Explain the borrow checker error in lexer.rs",
    "Port the command line from argparse to click",
    "Draft the release notes for 2.4",
    "Plan three days in Lisbon in May",
    "Why is the second query slower than the first?",
    "Translate the onboarding mail into Portuguese",
)
LOG = """error: linking with `cc` failed: exit status: 1
  = note: /usr/bin/ld: unrecognised emulation mode: aarch64linux
  = note: collect2: error: ld returned 1 exit status"""
REASONED = """The log says `unrecognised emulation mode`, so the linker that runs is the host's: \
the compiler made objects for the target, and `ld` does not know what to do with them.

Before I suggest anything I should see whether a linker is configured for that target. \
There is no entry for it. That is all there is to it."""
ANSWER = """The compiler is set up for the target, the linker is not: `cc` calls the host's `ld`.

```toml
[target.aarch64-unknown-linux-gnu]
linker = "aarch64-linux-gnu-gcc"
```

Put this into `.cargo/config.toml` and install `gcc-aarch64-linux-gnu` in the same image layer."""
ALOUD = """Both work. The configuration is four lines that everybody can read, and it builds in the image \
that is there. The container needs nothing of the toolchain, and takes twice as long.

What decides is who has to"""
OTHER = """You could also leave the toolchain alone and build in a container that has all of it: \
`cross build --target aarch64-unknown-linux-gnu`. It is slower, and nothing has to be configured."""


def origin(provider):
    return replace(
        ORIGIN,
        provider=provider,
        model=MODELS[provider],
        endpoint=f"https://api.{provider}.com",
    )


def builds(now):
    """The session that most pictures show: tools, two branches, something dropped."""
    call = Call(name="read_file", arguments='{"path": "build.log", "tail": 200}', id="call_7fb2")
    again = Call(name="read_file", arguments='{"path": ".cargo/config.toml"}', id="call_a01c")

    def aloud(*words, **more):
        return replace(thought(*words, **more), origin=origin("openai"))

    at, to = now - 900, {"target": origin("openai")}
    first = [decision(1, entry="a1")]
    second = [*first, decision(3, entry="a2", level=MatchLevel.LOCAL)]
    foreign = decision(3, Action.DROPPED, entry="a2", reason="foreign model")
    return [
        turn("a1", "Why does the build fail on arm64? Look at the log first.", aloud("I need the log.", 4), call, **to, at=at),
        turn("a2", Result(content=LOG, call="call_7fb2", name="read_file"), aloud(REASONED, 23), again, parent="a1", **to, at=at + 30, decisions=first),
        turn("a3", Result(content="[build]\njobs = 4", call="call_a01c", name="read_file"), aloud("", 65, id="rs_68f0", sealed=True), ANSWER, parent="a2", **to, at=at + 70, decisions=second),
        turn("a4", "Is there a way without touching the toolchain?", aloud("A container would do.", 9), OTHER, parent="a3", **to, at=at + 160, decisions=[*second, decision(5, entry="a3", level=MatchLevel.SEAL)]),
        turn("a5", "Is there a way without root in the container?", aloud("One file, four lines.", 7), OTHER.replace("It is slower, and nothing has to be configured.", "It is slower, and it runs without root."), parent="a3", **to, at=at + 300, decisions=[first[0], foreign, decision(5, Action.EXACT, entry="a3")]),
    ]  # fmt: skip


def day(stage, now):
    """Everybody else's conversations, over a day."""
    dice = random.Random(7)
    for number in range(140):
        provider = dice.choice([*MODELS, "deepseek", "openai"])
        at = now - 1200 - number * 600 - dice.random() * 300
        question = QUESTIONS[number % len(QUESTIONS)]
        outcome = dice.choices(list(Outcome), [20, 1, 1, 1])[0]
        turns = []
        for n in range(dice.randint(1, 6)):
            decisions = [
                decision(2 * m + 1, _fate(dice), entry=f"n{number}-{m}", reason="")
                for m in range(n)
            ]  # fmt: skip
            if dice.random() < 0.06:
                lost = decision(1, Action.ABSENT, reason="unknown", level=MatchLevel.NONE)
                decisions = [lost, *decisions]
            turns.append(
                turn(f"n{number}-{n}", question if not n else "Go on.", thought("Hm.", dice.randint(2, 40)), Call(name="search", arguments="{}", id=f"call_{number:x}{n}e9"), "Here it is.",
                    parent=f"n{number}-{n - 1}" if n else "", at=at + n * 30, decisions=decisions, target=origin(provider), cached=dice.randint(500, 900) if n else 0)
            )  # fmt: skip
        turns[-1] = replace_outcome(turns[-1], question, provider, outcome, at, number, len(turns))
        stage.record(f"{dice.getrandbits(64):016x}", *turns, tenant=dice.choice(["alice", "ci"]))


def replace_outcome(made, question, provider, outcome, at, number, n):
    if outcome is Outcome.COMPLETED:
        return made
    parent = f"n{number}-{n - 2}" if n > 1 else ""
    return turn(made["id"], question, thought("Hm.", 3, aborted=True), parent=parent, at=at + n * 30, outcome=outcome, target=origin(provider))  # fmt: skip


def _fate(dice):
    return dice.choices([Action.RESTORED, Action.EXACT, Action.DROPPED], [12, 4, 1])[0]


KEPT = (
    "requests-light", "failed-dark", "session-light", "session-wide", "session-narrow", "request-dark",
    "branches-light", "thinking-dark", "continuity-light", "continuity-narrow", "cache-light",
)  # fmt: skip
"""Which of all of them the documentation shows."""


def smaller(picture):
    """Fewer colours, where the tool for it is installed."""
    if shutil.which("pngquant"):
        subprocess.run(
            ["pngquant", "--force", "--skip-if-larger", "--strip", "--output", picture, picture],
            check=False,
        )


def refusals(stage):
    """Requests that got no answer, as people meet them on their first day."""
    body = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "Hello?"}]}
    stage.refuse = (402, "Insufficient Balance")
    chat = f"{stage.url}/v1/chat/completions"
    httpx2.post(chat, json=body, headers={"authorization": "Bearer my-key"})
    stage.refuse = (429, "Rate limit reached for requests per minute")
    httpx2.post(chat, json=body, headers={"authorization": "Bearer my-key"})
    stage.refuse = None
    httpx2.post(f"{stage.url}/u/depseek/v1/chat/completions", json=body)


def take(folder):
    now = time.time()
    with staged() as stage, browsing() as browser:
        day(stage, now)
        stage.record("5e1fab1e0c0ffee1", *builds(now))
        refusals(stage)
        talk = stage.talk("Which of the two would you ship, and why?")
        talk.think(ALOUD)
        for look, how in (
            ("light", {}),
            ("dark", {"scheme": "dark"}),
            ("narrow", {"size": NARROW}),
            ("wide", {"size": {"width": 1800, "height": 1000}}),
        ):
            tab = Tab(browser, stage.url, **how)
            for name, route in routes(talk.session).items():
                if f"{name}-{look}" not in KEPT:
                    continue
                page = tab.open(route)
                page.locator(".connection[data-state=live]").wait_for()
                page.wait_for_timeout(600)
                if name == "failed":
                    page.locator(".request-row", has_text="Insufficient").click()
                    page.wait_for_timeout(300)
                if name == "thinking":
                    page.locator(".thought-head").first.click()
                    page.wait_for_timeout(800)
                if name == "session":
                    page.get_by_role("button", name="Thought for 23 seconds").click()
                    page.wait_for_timeout(300)
                picture = folder / f"inspector-{name}-{look}.png"
                page.screenshot(path=picture)
                smaller(picture)
            tab.close()
        talk.say("The configuration.")
        talk.stop()


def routes(running):
    builds = "#/sessions/5e1fab1e0c0ffee1"
    return {
        "requests": "#/requests",
        "failed": "#/requests?has=failed",
        "search": "#/sessions?q=linker",
        "list": "#/sessions",
        "session": f"{builds}?head=a4&turn=a2",
        "request": f"{builds}?head=a5&request=a5",
        "branches": f"{builds}/compare?left=a4&right=a5",
        "thinking": f"#/sessions/{running}",
        "continuity": "#/continuity",
        "cache": "#/cache",
    }


if __name__ == "__main__":
    take(Path(sys.argv[1]))
