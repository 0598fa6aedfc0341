"""The example in a real browser: the built page, the real components, and what a person sees.

The browser's clock is an hour late, so a timer that counts by it would be seen.
"""

import importlib.util
import os
import re
import subprocess
from contextlib import asynccontextmanager

import pytest

from inspector.browsers import FLAGS, chromium
from support.example_apps import FOLDER, served
from support.waiting import eventually

CHROMIUM = chromium()
LATE = "const now = Date.now; Date.now = () => now() - 3600_000;"
STEP = 60_000  # milliseconds that one thing on the page may take

pytestmark = [
    pytest.mark.skipif(os.environ.get("E2E") != "all", reason="only `make clients` runs this"),
    pytest.mark.skipif(
        CHROMIUM is None, reason="Chromium is not installed; `make clients` installs it"
    ),
    pytest.mark.skipif(
        importlib.util.find_spec("playwright") is None,
        reason="playwright is not installed; `make setup` installs it",
    ),
    pytest.mark.skipif(
        not (FOLDER / "node_modules" / "vite").exists(),
        reason="the example's packages are not installed; `make clients` installs them",
    ),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The page, as `npm run build` makes it."""
    made = tmp_path_factory.mktemp("dist")
    command = ["npm", "run", "build", "--", "--outDir", str(made), "--emptyOutDir"]
    done = subprocess.run(
        command, cwd=FOLDER, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return made


class Seen:
    """The page as a person sees it."""

    def __init__(self, page):
        self.page = page
        self.troubles = []
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("console", lambda m: m.type == "error" and self.troubles.append(m.text))

    async def say(self, words):
        await self.page.get_by_label("Message").fill(words)
        await self.page.get_by_role("button", name="Send").click()

    async def edit(self, words):
        """Change the last question."""
        await self.page.get_by_role("button", name="Edit").last.click()
        await self.page.get_by_label("Edit the message").fill(words)
        await self.page.locator(".edit").get_by_role("button", name="Send").click()

    async def counts(self, least):
        """Wait until the timer of a thought that goes on has come this far."""

        async def far():
            return (now := await self.counted()) >= least and now

        return await eventually(far)

    async def counted(self):
        words = self.page.locator(".thought[data-state=thinking] .words").last
        return int(re.fullmatch(r"Thinking for (\d+) seconds?", await words.inner_text())[1])

    async def settled(self, text):
        """Wait for an answer and its end; what is said about each thought on the page."""
        await self.page.get_by_text(text).last.wait_for()
        await self.page.get_by_role("button", name="Ask again").last.wait_for()
        return await self.page.locator(".thought .words").all_inner_texts()

    async def turn_to(self, which, text):
        await self.page.get_by_label(which).last.click()
        return await self.settled(text)

    async def stored(self):
        """What the log says about the thoughts of each answer, in words, by the answer's text."""
        id = await self.page.evaluate("location.hash.slice(1)")
        history = await self.page.evaluate(f"fetch('/api/chats/{id}').then(r => r.json())")
        found = {}
        for entry in history["repository"]["messages"]:
            parts = entry["message"]["parts"]
            if entry["message"]["role"] == "assistant" and parts[-1]["type"] == "text":
                seconds = entry["message"]["metadata"]["reasoningDurations"]
                keys = [
                    p["providerMetadata"]["thoughtline"]["key"]
                    for p in parts
                    if p["type"] == "reasoning"
                ]
                said = [f"{seconds[k]} second{'s' if seconds[k] > 1 else ''}" for k in keys]
                found.setdefault(parts[-1]["text"], []).append([f"Thought for {n}" for n in said])
        return found


@asynccontextmanager
async def opened(monkeypatch, built, **more):
    from playwright.async_api import async_playwright

    async with served(monkeypatch, page=built, **more) as example, async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            page = await browser.new_page()
            page.set_default_timeout(STEP)
            await page.add_init_script(LATE)
            seen = Seen(page)
            await page.goto(example.url)
            yield example, seen
            assert seen.troubles == []
        finally:
            await browser.close()


async def test_durations_survive_reloads_and_branches(monkeypatch, built):
    async with opened(monkeypatch, built, delay=0.3) as (example, seen):
        await seen.say("Is 2027 prime?")
        before = await seen.counts(2)
        await seen.page.reload()  # in mid-thought
        after = await seen.counted()
        assert before <= after < 3000
        await seen.counts(after + 1)
        example.pace(0.0)
        long = await seen.settled("2027 is prime")
        [stored] = next(iter((await seen.stored()).values()))
        assert long == stored and len(long) == 2
        await seen.page.reload()
        assert await seen.settled("2027 is prime") == long

        await seen.edit("Is 91 prime?")  # another branch, whose thoughts are short
        short = await seen.settled("91 is not prime")
        assert short != long
        assert await seen.turn_to("Previous version", "2027 is prime") == long
        assert await seen.turn_to("Next version", "91 is not prime") == short

        await seen.say("And 97?")  # goes on from the branch that is shown
        both = await seen.settled("97 is prime")
        assert both[:2] == short
        await seen.page.get_by_role("button", name="Ask again").last.click()
        await seen.page.get_by_text("2 / 2").nth(1).wait_for()
        again = await seen.settled("97 is prime")
        assert again[:2] == short
        await seen.page.reload()  # and now with the ids of the server
        assert await seen.settled("97 is prime") == again
        assert await seen.page.get_by_text("2 / 2").count() == 2
        assert await seen.turn_to("Previous version", "97 is prime") == both
        await seen.page.get_by_label("Previous version").first.click()
        assert await seen.settled("2027 is prime") == long
        stored = await seen.stored()
        assert sorted(map(len, stored.values())) == [1, 1, 2]
        assert long in next(v for text, v in stored.items() if "2027" in text)


async def test_a_thought_that_is_stopped_says_so_and_one_can_be_read(monkeypatch, built):
    async with opened(monkeypatch, built, delay=0.3) as (example, seen):
        await seen.say("Is 2027 prime?")
        await seen.counts(2)
        await seen.page.get_by_role("button", name="Stop").click()
        await seen.page.get_by_text("Stopped.").wait_for()
        [said] = await seen.page.locator(".words").all_inner_texts()
        assert re.fullmatch(r"Stopped thinking after \d+ seconds?", said)
        await seen.page.reload()
        await seen.page.get_by_text("Stopped.").wait_for()
        assert await seen.page.locator(".words").all_inner_texts() == [said]
        example.pace(0.0)
        await seen.page.get_by_role("button", name="Ask again").click()
        await seen.settled("2027 is prime")
        assert await seen.turn_to("Previous version", "Stopped.") == [said]
        await seen.turn_to("Next version", "2027 is prime")
        first = seen.page.locator(".thought").first
        assert not await first.locator(".text").is_visible()
        await first.get_by_role("button").press("Enter")
        assert "2027 = 2 × 1013 + 1" in await first.locator(".text").inner_text()
        assert await first.get_by_role("button").get_attribute("aria-expanded") == "true"
