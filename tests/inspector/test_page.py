"""The inspector in a real browser: what a person sees, live, after a reload, and in trouble."""

import asyncio
import json
import re
import time
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from inspector.browsers import NARROW, Tab, browsing, violations
from inspector.scripted_gateway import ORIGIN, decision, staged, thought, turn
from thoughtline.agents.export import export_lines, import_lines
from thoughtline.clock import SystemClock
from thoughtline.log.decisions import Action, MatchLevel
from thoughtline.log.durations import duration_text
from thoughtline.log.events import Outcome
from thoughtline.log.parts import Call, Result

pytestmark = [pytest.mark.slow]

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script><b>&amp;'
TOKEN = "an-admin-token"


@pytest.fixture(scope="module")
def browser():
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def stage(browser):
    with staged() as stage:
        fill(stage)
        yield stage


@pytest.fixture
def tab(browser, stage):
    tab = Tab(browser, stage.url)
    yield tab
    tab.close()


def fill(stage):
    stage.record(
        "builds",
        turn("b1", "Why does the build fail? Look at the log of the last night and compare it with the one before, please", thought("Look at the log.", 23), Call(name="read", arguments='{"path": "log"}', id="c0"), "Let me look:\n\n```sh\nmake `all`\n```\n"),
        turn("b2", "And on arm64?", thought("", 65, id="rs_1", sealed=True), "It is the linker.", parent="b1", decisions=[decision(1, entry="b1")]),
        turn("b3", "And on riscv?", thought("Hm.", 5), "The same.", parent="b1", decisions=[decision(1, Action.DROPPED, reason="foreign model", entry="b1")]),
    )  # fmt: skip
    two = thought("First.", 23, id="rs_a"), thought("Second.", 5, id="rs_b", start=23)
    stage.record("pairs", turn("p1", "Think twice", *two, "Done."))
    stage.record(
        "hostile",
        turn("h1", HOSTILE, thought(HOSTILE, 2), Call(name=HOSTILE, arguments=HOSTILE, id="c1")),
        turn("h2", Result(content=HOSTILE, call="c1", name=HOSTILE), HOSTILE, parent="h1", reason=HOSTILE, outcome=Outcome.FAILED),
        tenant=HOSTILE,
    )  # fmt: skip


def labels(page):
    """What the thoughts on the page are folded to."""
    return page.locator(".thought-label").all_text_contents()


def settled(page, text, **more):
    """Wait until this can be read."""
    page.locator("main").get_by_text(text, **more).first.wait_for()


def counted(page, selector, count):
    """Wait until there are so many of them."""
    from playwright.sync_api import expect

    expect(page.locator(selector)).to_have_count(count)


def number(page):
    """The number that the running timer shows."""
    timer = page.locator(".thought[data-state=open] .thought-label")
    return int(re.search(r"\d+", timer.text_content())[0])


# -- durations -----------------------------------------------------------------------------------


def test_the_page_and_the_server_say_the_same_words(tab):
    page = tab.open()
    numbers = [*range(1, 200), 599, 600, 601, 3599, 3600, 86399, 10**6]
    said = page.evaluate(
        """async (numbers) => {
          const { timerWords } = await import("/inspect/clock.js");
          return numbers.map(timerWords);
        }""",
        numbers,
    )
    assert said == [duration_text(n).replace("Thought", "Thinking", 1) for n in numbers]


def test_a_clock_that_is_set_anew_is_learnt_anew(tab):
    ahead = tab.open().evaluate(
        """async () => {
          const { learnServerTime, serverNow } = await import("/inspect/clock.js");
          const real = Date.now;
          try {
            Date.now = () => real() + 3_600_000;
            const now = Date.now() / 1000;
            learnServerTime(real() / 1000, now - 0.4, now); // a slow answer, but the only one since
            return Math.abs(serverNow() - real() / 1000);
          } finally {
            Date.now = real;
          }
        }"""
    )
    assert ahead < 1


def test_lengths_and_ages_are_rounded_once(tab):
    said = tab.open().evaluate(
        """async () => {
          const { ago, elapsed } = await import("/inspect/words.js");
          const { serverNow } = await import("/inspect/clock.js");
          const ages = [59.7 * 60, 23.7 * 3600].map((age) => ago(serverNow() - age));
          return [...[0.042, 0.996, 59.6, 119.7, 3599.9].map((n) => elapsed(0, n)), ...ages];
        }"""
    )
    assert said == ["1 s", "1 s", "1m 0s", "2m 0s", "60m 0s", "1 h", "1 d"]


def test_a_log_that_goes_in_a_circle_can_be_read(tab, stage):
    stage.record(
        "circle",
        turn("o1", "First?", "One.", parent="o2"),
        turn("o2", "Second?", "Two.", parent="o1"),
        turn("o3", "Third?", "Three.", parent="o3"),
    )
    page = tab.open("#/sessions/circle?turn=o2")
    settled(page, "Two.")
    settled(page, "One.")
    page.locator("#pick-branch").select_option("o3")
    settled(page, "Three.")


def test_a_timer_counts_and_ends_at_the_stored_number(browser):
    with staged() as stage:
        tab = Tab(browser, stage.url)
        talk = stage.talk("How long does it take?")
        page = tab.open(f"#/sessions/{talk.session}")
        settled(page, "Waiting for the model")
        page.clock.install()
        talk.think("Let me think.")
        settled(page, re.compile(r"Thinking for \d+ seconds"))
        stage.skip(page, 70)
        settled(page, re.compile(r"Thinking for 1m \d+s"))
        talk.say("Not long.")
        talk.stop()
        settled(page, "Not long.")
        stored = api(page, f"/api/sessions/{talk.session}")["turns"][0]["reasoningDurations"]
        assert 70 < stored["part-0"] < 600
        assert labels(page) == [duration_text(stored["part-0"])]
        page.reload()
        settled(page, "Not long.")
        assert labels(page) == [duration_text(stored["part-0"])]
        tab.close()


def test_a_timer_never_has_to_go_back(tab):
    """It hears of the end a moment late, and has not gone on to the next second by then."""
    said = tab.open().evaluate(
        """async () => {
          const { secondsSince, serverNow } = await import("/inspect/clock.js");
          const lengths = [0, 0.9, 1.9, 2.4, 2.7, 60.4, 60.7];
          return lengths.map((length) => secondsSince(serverNow() - length));
        }"""
    )
    assert said == [1, 1, 2, 2, 3, 60, 61]


@contextmanager
def unwritten(stage, question):
    """A session of one turn, and a turn after it that is never written: the store goes down."""
    talk = stage.talk(question)
    talk.say("Yes.")
    talk.stop()
    stage.written(talk.session)  # what waits for a store that was down a moment ago is in no hurry
    lost = stage.talk(question, "Yes.", "And now?", session=talk.session)
    lost.think("Am I?")

    def end():
        stage.store.down = True
        lost.stop()

    try:
        yield talk.session, end
    finally:
        stage.store.down = False


class Held:
    """The page's next look at a session: answered by the gateway, and not handed over yet."""

    def __init__(self, page, session):
        self.page, self.found = page, []
        page.route(f"**/api/sessions/{session}?*", self._hold, times=1)

    def _hold(self, route):
        self.found.append((route, route.fetch()))

    def wait(self):
        while not self.found:  # a page that never looks runs into the test's own time limit
            self.page.evaluate(FRAMES)

    def hand_over(self):
        route, answer = self.found[0]
        with self.page.expect_event("requestfinished", lambda one: one == route.request):
            route.fulfill(response=answer)


def test_a_turn_that_is_never_written_goes_away(tab, stage):
    """Its provider refused it, its process died, or the store is down."""
    with unwritten(stage, "Are you there?") as (session, end):
        page = tab.open(f"#/sessions/{session}")
        settled(page, re.compile("Thinking for"))
        end()
        page.locator(".thought[data-state=open]").wait_for(state="detached")
        counted(page, "article.turn", 1)
        settled(page, "Yes.")


REOPEN = """import('/inspect/feed.js').then(({ feed }) => {
  window.closed = new Promise((done) => {
    const hear = ({ detail }) => detail.kind === "turn_closed" && done();
    for (const name of ["event", "live"]) feed.addEventListener(name, hear);
  });
  feed.open(); // another one than the page's, which is in its one script
  dispatchEvent(new Event("online"));
})"""
"""Has the page's feed connect again, and says when a feed tells of the end of a turn."""


def test_an_answer_that_is_overtaken_brings_nothing_back(tab, stage):
    with unwritten(stage, "Are you slow?") as (session, end):
        page = tab.open(f"#/sessions/{session}")
        settled(page, re.compile("Thinking for"))
        held = Held(page, session)
        page.evaluate(REOPEN)
        held.wait()
        end()
        page.evaluate("window.closed")  # the page has heard of the end before the answer comes
        held.hand_over()
        counted(page, "article.turn", 1)
        page.evaluate(FRAMES)
        assert page.locator("article.turn").count() == 1


def test_what_ended_before_the_feed_was_open_goes_away(tab, stage):
    """A page asks for the session and for the feed at once, and either may come first."""
    with unwritten(stage, "Are you early?") as (session, end):
        held = Held(tab.page, session)
        tab.page.route("**/api/feed", lambda route: (held.wait(), end(), route.continue_()))
        page = tab.open(f"#/sessions/{session}")
        page.locator(".connection[data-state=live]").wait_for()
        held.hand_over()
        settled(page, "Yes.")
        counted(page, "article.turn", 1)


def test_a_reload_in_mid_thought_does_not_begin_anew(tab, stage):
    talk = stage.talk("Will you forget?")
    page = tab.open(f"#/sessions/{talk.session}")
    talk.think("I hope not.")
    settled(page, re.compile(r"Thinking for [2-9] seconds"))
    before = number(page)
    page.reload()
    settled(page, re.compile(r"Thinking for \d+ second"))
    assert number(page) >= before
    talk.say("No.")
    talk.stop()
    settled(page, re.compile(r"Thought for \d+ second"))


def test_two_thoughts_in_one_message(tab):
    page = tab.open("#/sessions/pairs")
    settled(page, "Done.")
    assert labels(page) == ["Thought for 23 seconds", "Thought for 5 seconds"]
    assert page.get_by_text("Thought for 28 seconds in all").is_visible()
    page.locator(".thought-head").nth(1).click()
    settled(page, "Second.")
    assert page.get_by_text("First.").count() == 0


def test_a_thought_that_was_cut_off_says_so(tab, stage):
    talk = stage.talk("Are you there?")
    page = tab.open(f"#/sessions/{talk.session}")
    talk.think("Well,")
    settled(page, re.compile("Thinking for"))
    talk.hang_up()
    settled(page, "Stopped by the client")
    assert re.match(r"Stopped thinking", labels(page)[0])
    page.reload()
    settled(page, "Stopped by the client")
    assert re.match(r"Stopped thinking", labels(page)[0])


def test_other_ids_change_no_number(tab, stage):
    async def saved_elsewhere():
        lines = [line async for line in export_lines(stage.store, "pairs", alone=True)]
        renamed = [line.replace("pairs", "cloud-7").replace("p1", "msg-9") for line in lines]
        return await import_lines(stage.store, renamed, tenant="alice", clock=SystemClock())

    page = tab.open("#/sessions/pairs")
    settled(page, "Done.")
    before = labels(page)
    assert stage.do(saved_elsewhere()) == ["cloud-7"]
    tab.open("#/sessions/cloud-7")
    settled(page, "Done.")
    assert labels(page) == before
    assert page.locator("#turn-msg-9").count() == 1


# -- reading -------------------------------------------------------------------------------------


def test_a_thought_is_fetched_when_it_is_unfolded(tab, stage):
    asked = []
    tab.page.on("request", lambda request: asked.append(request.url))
    page = tab.open("#/sessions/builds?head=b2")
    settled(page, "It is the linker.")
    assert not [url for url in asked if "thoughts=1" in url]
    page.get_by_role("button", name="Thought for 23 seconds").click()
    settled(page, "Look at the log.")
    page.get_by_role("button", name="Thought for 1m 5s").click()
    settled(page, "Encrypted, 3.1 KB")
    assert len([url for url in asked if "thoughts=1" in url]) == 2


def test_branches_are_switched_and_compared(tab):
    page = tab.open("#/sessions/builds?head=b2")
    settled(page, "It is the linker.")
    assert page.get_by_text("The same.").count() == 0
    page.get_by_role("button", name="Next branch").click()
    settled(page, "The same.")
    assert "head=b3" in page.url
    assert labels(page) == ["Thought for 23 seconds", "Thought for 5 seconds"]
    page.reload()
    settled(page, "The same.")
    page.get_by_role("link", name="Compare", exact=True).click()
    settled(page, "1 turn in common")
    assert page.get_by_text("It is the linker.").is_visible()
    assert page.get_by_text("The same.").is_visible()


def test_a_branch_that_appears_while_one_looks(tab, stage):
    first = stage.talk("Tell me a number")
    first.say("Four.")
    first.stop()
    page = tab.open(f"#/sessions/{first.session}")
    settled(page, "Four.")
    for asked, answer in (("Why?", "A die said so."), ("Really?", "Yes.")):
        talk = stage.talk("Tell me a number", "Four.", asked, session=first.session)
        talk.say(answer)
        talk.stop()
        assert talk.session == first.session
        settled(page, answer)
    page.get_by_role("group", name="Branch 2 of 2").wait_for()


def test_an_earlier_thought_says_at_once_that_it_went_back(tab, stage):
    stage.record("back", turn("g1", "Do you remember?", thought("I do.", 2), "Yes."))
    page = tab.open("#/sessions/back")
    settled(page, "Yes.")
    page.locator(".connection[data-state=live]").wait_for()
    for n, often in enumerate(("once", "twice"), 2):
        made = turn(
            f"g{n}", "What?", "This.", parent=f"g{n - 1}", decisions=[decision(1, entry="g1")]
        )
        stage.record("back", made)
        page.get_by_role("button", name=f"replayed {often}").wait_for()


def test_a_thought_is_counted_once(tab, stage):
    """One that is lost, and in whose place a placeholder went out, is not two."""
    lost = decision(1, Action.PLACEHOLDER, reason="unknown", level=MatchLevel.NONE)
    gone = decision(3, Action.ABSENT, reason="unknown", level=MatchLevel.NONE)
    stage.record("lost", turn("k1", "Go on.", "I will.", decisions=[lost, gone]))
    page = tab.open("#/sessions/lost?request=k1")
    settled(page, "1 missed")
    settled(page, "1 placeholder")
    page.locator("aside .tile.missed", has_text="1").wait_for()
    said = page.evaluate(
        """async () => {
          const { withoutDoubleCounts } = await import("/inspect/request.js");
          return withoutDoubleCounts({ missed: 1, tied: 3, placeholder: 2, exact: 1 });
        }"""
    )
    assert said == {"missed": 0, "tied": 2, "placeholder": 2, "exact": 1}


def test_a_result_is_called_by_its_call(tab, stage):
    call = Call(name="read_file", arguments="{}", id="c9")
    stage.record(
        "called",
        turn("r1", "Read it", call),
        turn("r2", Result(content="teh end", call="c9"), "A typo.", parent="r1"),
    )
    page = tab.open("#/sessions/called")
    settled(page, "A typo.")
    assert page.locator(".tool.result .tool-name").text_content() == "read_file"


def test_what_has_the_focus_keeps_it_while_things_happen(tab, stage):
    stage.record("held", turn("f1", "A or B?", "Either."), turn("f2", "A.", "A it is.", parent="f1"), turn("f3", "B.", "B it is.", parent="f1"))  # fmt: skip
    page = tab.open("#/sessions/held")
    settled(page, "B it is.")
    page.locator(".connection[data-state=live]").wait_for()
    page.get_by_role("button", name="Copy the session's id").focus()
    stage.record("held", turn("f4", "More of B.", "More.", parent="f3"))
    settled(page, "4 turns")
    assert page.evaluate("document.activeElement.dataset.focus") == "copy"
    branch = page.locator("#pick-branch")
    branch.focus()
    branch.evaluate("select => (select.mine = true)")
    stage.record("held", turn("f5", "And more.", "Even more.", parent="f4"))
    settled(page, "Even more.")
    assert branch.evaluate("select => select.mine && select === document.activeElement")
    branch.select_option("f2")
    settled(page, "A it is.")
    assert page.evaluate("document.activeElement.id") == "pick-branch"


def test_a_request_that_went_out_without_thinking_says_so(tab, stage):
    why = decision(0, Action.DROPPED, reason="thinking off", entry="o1")
    stage.record(
        "off",
        turn("o1", "Look it up", thought("Where?", 2), Call(name="look", arguments="{}", id="c")),
        turn("o2", "On", "Done.", parent="o1", decisions=[why], thinking_off=True),
    )
    page = tab.open("#/sessions/off?request=o2")
    panel = page.locator("aside.panel")
    panel.get_by_text("switched off for this request").first.wait_for()
    assert "thinking is switched off for this request, and then none" in panel.text_content()
    assert page.locator(".tally", has_text="thinking off").count() == 1
    assert not tab.wrong


def test_what_a_request_carried(tab):
    page = tab.open("#/sessions/builds?head=b3&request=b3")
    panel = page.locator("aside.panel")
    panel.get_by_text("Dropped", exact=True).wait_for()
    assert "it was made for another model" in panel.text_content()
    assert "recognised by the whole conversation before it" in panel.text_content()
    page.keyboard.press("Escape")
    panel.wait_for(state="hidden")
    assert "request" not in page.url


def test_what_a_client_altered_and_why_it_was_found(tab, stage):
    first = turn("w1", "Hello?", thought("Hm.", 2), "Yes.")
    decisions = [decision(1, Action.REPLACED, entry="w1", reason="lineage")]
    second = turn("w2", "More.", "Cut", parent="w1", decisions=decisions, outcome=Outcome.CAPPED, reason="length")  # fmt: skip
    stage.record("words", first, second)
    page = tab.open("#/sessions/words?request=w2")
    panel = page.locator("aside.panel")
    panel.get_by_text("Corrected", exact=True).wait_for()
    assert "a thought that is not in this log" in panel.locator(".line.removed").text_content()
    assert "by the turn that came after it" in panel.text_content()
    settled(page, "the answer was as long as the request allows")
    page = tab.open("#/continuity")
    page.locator("table").get_by_text("deepseek", exact=True).wait_for()
    shown = page.locator(".shares tr", has_text="deepseek").first.text_content()
    assert page.locator(".tile").first.locator("strong").text_content() in shown


def test_arguments_are_laid_out_and_not_altered(tab):
    odd = r'{"id":12345678901234567890,"x": 1.0 ,"x":[],"s":"a,{\\\"b:"}'
    deep = "[" * 4000 + "]" * 4000
    said = tab.open().evaluate(
        """async (texts) => {
          const { prettyJson } = await import("/inspect/parts.js");
          return texts.map(prettyJson);
        }""",
        [odd, '[1,{"a":{}}]', '"x"', "{no", "[]", deep],
    )
    lines = ["{", '  "id": 12345678901234567890,', '  "x": 1.0,', '  "x": [],', r'  "s": "a,{\\\"b:"', "}"]  # fmt: skip
    assert said[0] == "\n".join(lines)
    assert said[1:5] == ['[\n  1,\n  {\n    "a": {}\n  }\n]', '"x"', "{no", "[]"]
    assert len(said[5]) < 100 * len(deep)


def test_long_names_leave_room_for_others(browser, stage):
    long = replace(ORIGIN, model="<b>model</b>" * 40)
    stage.record("names", turn("l1", "Who?", "Me.", target=long), tenant="t" * 300)
    tab = Tab(browser, stage.url, size=NARROW)
    page = tab.open("#/sessions/names")
    settled(page, "Me.")
    place = "document.querySelector('{}').getBoundingClientRect().{}"
    assert page.evaluate(place.format(".session-facts", "height")) < 120
    page = tab.open("#/sessions")
    page.locator(".session-row", has_text="Who?").wait_for()
    assert page.evaluate(place.format(".session-row time", "right")) <= NARROW["width"]
    tab.close()


def test_what_hides_in_a_text_is_seen(tab, stage):
    stage.record("hidden", turn("x1", "a\u202eb\u200bc\x00d", "e\u2066f `g\ufeff`"))
    page = tab.open("#/sessions/hidden")
    settled(page, "a[U+202E]b[U+200B]c[U+0000]d")
    assert page.locator(".answer .prose").text_content() == "e[U+2066]f g[U+FEFF]"
    assert page.title().startswith("a[U+202E]b")


def test_hostile_text_is_text(tab):
    for route in ("#/sessions/hostile?request=h2", "#/sessions?q=onerror"):
        page = tab.open(route)
        page.locator(".turn, .session-row").filter(has_text="<script>").first.wait_for()
        for head in page.locator("main summary, main .thought-head").all():
            head.click()
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main script, main iframe").count() == 0


# -- finding -------------------------------------------------------------------------------------


def test_search_and_filters_stand_in_the_address(tab):
    page = tab.open("#/sessions")
    page.locator(".session-row").first.wait_for()  # the session may be further down
    page.keyboard.press("/")
    page.keyboard.type("riscv")
    page.wait_for_url("**q=riscv**")
    rows = page.locator(".session-row")
    counted(page, ".session-row", 1)
    assert "Why does the build fail" in rows.first.text_content()
    page.reload()
    counted(page, ".session-row", 1)
    assert page.get_by_label("Search sessions").input_value() == "riscv"
    page.get_by_label("Search sessions").fill("nobody said this")
    settled(page, "Nothing matches")
    page.get_by_role("button", name="Clear the search").click()
    page.get_by_role("button", name="Filter").click()
    page.get_by_label("status").select_option("failed")
    counted(page, ".session-row", 1)
    assert "status=failed" in page.url


def test_a_session_appears_while_one_looks(tab, stage):
    page = tab.open("#/sessions")
    page.locator(".connection[data-state=live]").wait_for()
    talk = stage.talk("Here I am")
    row = page.get_by_role("link", name=re.compile("running.*Here I am"))
    row.wait_for()
    talk.say("Welcome.")
    talk.stop()
    page.get_by_role("link", name=re.compile("completed.*Here I am")).wait_for()


def test_the_keyboard_is_enough(tab):
    page = tab.open("#/sessions")
    page.locator(".session-row").first.wait_for()
    page.keyboard.press("j")
    first = page.evaluate("document.activeElement.href")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.href") != first
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.href") == first
    tab.open("#/sessions/builds?head=b2")
    settled(page, "It is the linker.")
    page.keyboard.press("l")
    assert page.evaluate("document.activeElement.id") == "turn-b1"
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.id") == "turn-b2"
    page.keyboard.press("]")
    settled(page, "The same.")
    page.keyboard.press("t")
    settled(page, "Hm.", exact=True)
    page.keyboard.press("r")
    page.locator("aside.panel").wait_for()
    page.keyboard.press("Escape")
    page.locator("aside.panel").wait_for(state="hidden")
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keyboard").wait_for()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("3")
    page.get_by_role("heading", name="Continuity").wait_for()


# -- deleting ------------------------------------------------------------------------------------


def test_cache_entries_are_filtered_deleted_and_cleared(browser):
    with staged() as stage:
        for n in range(3):
            call = Call(name="run", arguments="{}", id=f"call_{n}")
            stage.record(f"s{n}", turn(f"t{n}", "Go", thought(f"Thought {n}.", 3), call))
        tab = Tab(browser, stage.url)
        page = tab.open("#/cache")
        rows = page.locator("tbody tr")
        settled(page, "call_2")
        assert rows.count() == 3
        page.get_by_role("button", name="Show the thought of call_1").click()
        settled(page, "Thought 1.")
        page.get_by_role("button", name="Clear call_1").click()
        page.get_by_role("button", name="Keep").click()
        page.get_by_role("dialog").wait_for(state="detached")
        assert page.locator("tbody").get_by_text("call_1").count() == 1
        page.get_by_role("button", name="Clear call_1").click()
        page.get_by_role("dialog").get_by_role("button", name="Clear").click()
        page.locator("tbody").get_by_text("call_1").wait_for(state="detached")
        page.get_by_label("Tool call id").fill("call_2")
        counted(page, "tbody tr", 1)
        assert "toolCallId=call_2" in page.url
        page.get_by_label("Tool call id").fill("")
        counted(page, "tbody tr", 2)
        page.get_by_role("button", name="Clear all").click()
        page.get_by_role("dialog").get_by_role("button", name="Clear").click()
        settled(page, "Nothing is remembered")
        tab.open("#/sessions/s0")  # the log has it all
        page.get_by_role("button", name="Thought for 3 seconds").click()
        settled(page, "Thought 0.")
        tab.open("#/cache")
        settled(page, "Nothing is remembered")
        page.get_by_role("button", name="Erase all thoughts").click()
        erase = page.get_by_role("dialog").get_by_role("button", name="Erase")
        assert erase.is_disabled()
        page.get_by_label("Type erase to confirm").fill("erase")
        erase.click()
        page.get_by_role("dialog").wait_for(state="detached")
        tab.open("#/sessions/s0")
        page.get_by_role("button", name="Thought for 3 seconds erased").click()
        settled(page, "Erased from the log on request")
        tab.close()


@contextmanager
def two_tabs(browser, stage):
    """Two people at one gateway: what the one changes, the other sees without a reload."""
    acting, looking = Tab(browser, stage.url), Tab(browser, stage.url)
    yield acting, looking
    acting.close()
    looking.close()


def erase_all(page):
    page.get_by_role("button", name="Erase all thoughts").click()
    page.get_by_label("Type erase to confirm").fill("erase")
    page.get_by_role("dialog").get_by_role("button", name="Erase").click()
    page.get_by_role("dialog").wait_for(state="detached")


def test_an_erasure_is_seen_when_it_is_done(browser):
    """Also where its page was left at once, and the session was opened before it was done."""
    with staged() as stage, two_tabs(browser, stage) as (acting, looking):
        stage.record("s", turn("t", "Go", thought("A secret.", 3), "Done."))
        stage.store.may_erase = asyncio.Event()
        seen = looking.open("#/sessions/s")
        seen.get_by_role("button", name="Thought for 3 seconds").click()
        settled(seen, "A secret.")
        page = acting.open("#/cache")
        settled(page, "deepseek")
        erase_all(page)
        acting.open("#/sessions/s")
        page.get_by_role("button", name="Thought for 3 seconds").click()
        settled(page, "A secret.")
        stage.call(stage.store.may_erase.set)
        for one in (page, seen):
            settled(one, "Erased from the log on request")
            assert one.get_by_text("A secret.").count() == 0


def test_what_one_clears_another_sees(browser):
    with staged() as stage, two_tabs(browser, stage) as (acting, looking):
        for n in range(3):
            call = Call(name="run", arguments="{}", id=f"call_{n}")
            stage.record(f"s{n}", turn(f"t{n}", "Go", thought(f"Thought {n}.", 3), call))
        seen, page = looking.open("#/cache"), acting.open("#/cache")
        for one in (seen, page):
            counted(one, "tbody tr", 3)
        page.get_by_role("button", name="Clear call_1").click()
        page.get_by_role("dialog").get_by_role("button", name="Clear").click()
        for one in (page, seen):
            counted(one, "tbody tr", 2)
        erase_all(page)
        for one in (page, seen):
            settled(one, "Nothing is remembered")


@pytest.mark.parametrize("view", ["sessions", "requests"])
def test_a_session_that_is_deleted_leaves_every_list(browser, view):
    """Also those rows that a refresh does not look at."""
    with staged() as stage, two_tabs(browser, stage) as (acting, looking):
        for n in range(60):
            stage.record(f"s{n}", turn(f"t{n}", f"Question {n}", "Yes.", at=time.time() - 6000 + n))
        seen = looking.open(f"#/{view}")
        row = seen.locator("main li", has=seen.get_by_text("Question 3", exact=True))
        settled(seen, "Question 59")
        page = acting.open("#/sessions/s3")
        settled(page, "Yes.")
        seen.evaluate("document.querySelector('.list-scroll, .requests-scroll').scrollTo(0, 1e6)")
        row.first.wait_for()
        page.get_by_role("button", name="Delete this session").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        row.first.wait_for(state="detached")
        page.goto("about:blank")


def test_a_session_is_deleted(tab, stage):
    stage.record("doomed", turn("d1", "Forget me", "I will."))
    page = tab.open("#/sessions/doomed")
    settled(page, "I will.")
    page.get_by_role("button", name="Delete this session").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    settled(page, "Choose a session")
    tab.open("#/sessions/doomed")
    settled(page, "It is not here")


# -- trouble -------------------------------------------------------------------------------------


def test_a_token_is_asked_for_and_kept_in_the_tab(browser):
    with staged(token=TOKEN) as stage:
        stage.record("mine", turn("m1", "My secret question", "An answer."))
        tab = Tab(browser, stage.url)
        page = tab.open("#/sessions/mine")
        field = page.locator("#token")
        field.wait_for()
        assert violations(page) == []
        field.fill("wrong")
        field.press("Enter")
        settled(page, "That token was not accepted")
        assert page.get_by_text("My secret question").count() == 0
        field.fill(TOKEN)
        field.press("Enter")
        settled(page, "An answer.")
        page.locator(".connection[data-state=live]").wait_for()
        page.reload()
        settled(page, "An answer.")
        tab.close()
        other = Tab(browser, stage.url)
        other.open("#/sessions/mine").locator("#token").wait_for()
        other.close()


def test_nothing_yet_says_how_to_begin_and_a_lost_gateway_comes_back(browser):
    with staged() as stage:
        tab = Tab(browser, stage.url)
        page = tab.open()
        settled(page, "No requests yet")
        assert violations(page) == []
        assert f"OPENAI_BASE_URL={stage.url}/v1" in page.locator("main").text_content()
        page.locator(".connection[data-state=live]").wait_for()
        stage.do(stage.stop())
        page.locator(".connection[data-state=waiting]").wait_for()
        page.evaluate("location.hash = '#/continuity'")
        settled(page, "The gateway does not answer")
        stage.do(stage.start())
        page.locator(".connection[data-state=live]").wait_for()
        settled(page, "Nothing in this time")
        tab.close()


# -- size ----------------------------------------------------------------------------------------


def test_ten_thousand_sessions_and_two_thousand_turns(browser):
    with staged() as stage:
        now = time.time()
        stage.do(many_sessions(stage, 10_000, now))
        stage.record("long", *long_session(2_000, now))
        tab = Tab(browser, stage.url)
        page = tab.open("#/sessions")
        most = 0
        page.locator(".session-row").first.wait_for()
        for _ in range(200):
            most = max(most, page.evaluate("document.querySelectorAll('*').length"))
            if page.locator(".list-foot").text_content() == "10,001 sessions":
                break
            page.evaluate(SCROLL, ".list-scroll")
        assert page.locator(".list-foot").text_content() == "10,001 sessions"
        assert most < 1500
        tab.open("#/sessions/long")
        settled(page, "Answer 1999")
        assert page.locator("article.turn").count() < 40
        tab.open("#/sessions/long?turn=l1000")
        page.locator("#turn-l1000:focus").wait_for()
        assert page.locator("#turn-l1000").is_visible()
        assert page.locator("article.turn").count() < 40
        assert page.evaluate("document.querySelectorAll('*').length") < 3500
        tab.close()


SCROLL = """async (name) => {
  const scroller = document.querySelector(name);
  scroller.scrollTop = scroller.scrollHeight;
  await new Promise((done) => setTimeout(done, 20));
}"""


async def many_sessions(stage, count, now):
    for n in range(count):
        made = turn(f"t{n}", f"Question {n}", "Answer.", at=now - count + n)
        await stage._record(f"s{n}", [made], "alice")


def long_session(count, now):
    for n in range(count):
        said = thought("Hm.", 2), f"Answer {n}: " + "word " * (n % 90)
        yield turn(
            f"l{n}", f"Question {n}", *said, parent=f"l{n - 1}" if n else "", at=now - count + n
        )


# -- everybody -----------------------------------------------------------------------------------

OUTSIDE = """() => {
  const inside = (element) => {
    const { left, right } = element.getBoundingClientRect();
    return left >= -1 && right <= innerWidth + 1 && element.scrollWidth <= element.clientWidth + 1;
  };
  const boxes = ".bar-end, .requests-scroll, .request-row, .rail, .list-pane, .session-main, .session-scroll, .turn, .panel, .page, .card, .tile";
  const panel = document.querySelector(".panel:not([hidden])");
  const main = document.querySelector(".session-main, .requests-scroll");
  const covered = panel && innerWidth > 1180
    && panel.getBoundingClientRect().left < main.getBoundingClientRect().right - 1;
  return [...document.querySelectorAll(boxes)]
    .filter((element) => element.offsetParent && !inside(element))
    .map((element) => element.className).concat(covered ? ["panel over the conversation"] : []);
}"""
"""What stands out of the page at its sides."""

VIEWS = {
    "requests": "#/requests",
    "failed": "#/requests?has=failed&open=h2",
    "list": "#/sessions",
    "session": "#/sessions/builds?head=b2",
    "request": "#/sessions/builds?head=b2&request=b2",
    "compare": "#/sessions/builds/compare?left=b2&right=b3",
    "continuity": "#/continuity",
    "cache": "#/cache",
}
LOOKS = {
    "light": ({}, VIEWS),
    "dark": ({"scheme": "dark"}, ("failed", "request", "compare", "continuity")),
    "narrow": ({"size": NARROW}, ("requests", "failed", "list", "session", "request", "cache")),
    "wide": ({"size": {"width": 1920, "height": 1080}}, ("requests", "session", "continuity")),
}


@pytest.mark.parametrize("look", LOOKS)
def test_no_barriers(browser, stage, look):
    how, views = LOOKS[look]
    tab = Tab(browser, stage.url, **how)
    found = {}
    for name in views:
        page = tab.open(VIEWS[name])
        page.locator(".connection[data-state=live]").wait_for()
        counted(page, ".loading", 0)
        for head in page.locator(".thought-head, .tool summary, .as-table summary").all():
            if name in ("session", "continuity"):
                head.click()
        found[name] = violations(page)
        assert page.evaluate(OUTSIDE) == [], name
    assert found == {name: [] for name in views}
    tab.close()


def test_the_theme_is_chosen_and_kept(tab):
    page = tab.open()
    dark = "() => getComputedStyle(document.body).colorScheme"
    assert page.evaluate(dark) == "light dark"
    page.get_by_role("button", name="Theme: system").click()
    page.get_by_role("button", name="Theme: light").click()
    assert page.evaluate(dark) == "dark"
    page.reload()
    assert page.evaluate(dark) == "dark"


def test_on_a_phone_the_focus_goes_along(browser):
    with staged() as stage:
        now = time.time()
        for n in range(40):
            stage.record(f"s{n}", turn(f"t{n}", f"Question {n}", f"Answer {n}.", at=now - n))
        tab = Tab(browser, stage.url, size=NARROW)
        page = tab.open("#/sessions")
        page.locator(".connection[data-state=live]").wait_for()
        page.locator(".session-row").first.wait_for()
        for n in (3, 30):  # at the top, and far below what is drawn there
            while not page.locator(".session-row", has_text=f"Question {n}").count():
                page.evaluate(SCROLL, ".list-scroll")
            page.get_by_role("link", name=re.compile(rf"Question {n}\b")).press("Enter")
            settled(page, f"Answer {n}.")
            page.locator(".session-scroll:focus").wait_for()
            page.evaluate(FRAMES)  # the list is measured when it is hidden
            talk = stage.talk(f"Something new {n}")  # the list changes meanwhile
            page.locator(".session-row", has_text=f"Something new {n}").wait_for(state="attached")
            page.get_by_role("link", name="Back to the list").press("Enter")
            row = page.locator(".session-row:focus", has_text=f"Question {n}")
            row.wait_for()
            page.evaluate(FRAMES)  # and again when it is shown
            assert row.count() == 1
            assert page.evaluate(IN_SIGHT)
            talk.stop()
        tab.close()


def test_the_focus_stays_on_a_row_that_moves(browser):
    with staged() as stage:
        talks = [stage.talk(text) for text in ("I come back", "I am above")]
        for talk in talks:
            talk.say("Yes.")
            talk.stop()
            stage.written(talk.session)
        tab = Tab(browser, stage.url)
        page = tab.open("#/sessions")
        page.locator(".connection[data-state=live]").wait_for()
        page.get_by_role("link", name=re.compile("completed.*I come back")).focus()
        again = stage.talk("I come back", "Yes.", "Really?", session=talks[0].session)
        page.locator("li[aria-posinset='1']", has_text="I come back").wait_for()
        assert "I come back" in page.locator(":focus").text_content()
        again.stop()
        tab.close()


FRAMES = """async () => {
  for (let n = 0; n < 4; n += 1) await new Promise(requestAnimationFrame);
}"""
IN_SIGHT = """() => {
  const [row, list] = [document.activeElement, document.querySelector(".list-scroll")].map((one) => one.getBoundingClientRect());
  return row.top >= list.top - 1 && row.bottom <= list.bottom + 1;
}"""


def test_nothing_is_written_as_markup():
    from thoughtline.inspector.static import FOLDER

    for file in FOLDER.iterdir():
        text = file.read_text("utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text.replace("there is no innerHTML", ""), (file.name, word)


def api(page, path):
    return json.loads(page.evaluate("async (path) => (await fetch(path)).text()", path))
