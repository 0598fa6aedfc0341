"""The page as it begins: every request, today's numbers, and what people look for in them."""

import re
import time

import httpx2
import pytest
from playwright.sync_api import expect

from inspector.browsers import NARROW, Tab, browsing, violations
from inspector.scripted_gateway import ORIGIN, decision, staged, thought, turn
from thoughtline.log.decisions import Action, MatchLevel
from thoughtline.log.events import Outcome
from thoughtline.log.parts import Call

pytestmark = [pytest.mark.slow]

WIDE = {"width": 1920, "height": 1080}
NOTE = "<system-reminder>\nBe brief.\n</system-reminder>"
LOST = {"action": Action.ABSENT, "reason": "unknown", "level": MatchLevel.NONE}


@pytest.fixture(scope="module")
def browser():
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def stage():
    with staged() as stage:
        now = time.time()
        stage.record(
            "build",
            turn("b1", "Why does the linker fail?", thought("Look.", 23), Call(name="read", arguments='{"a":1}', id="c1"), at=now - 90),
            turn("b2", "And on arm64?", thought("Hm.", 2), "Use the cross linker of the target, please.", parent="b1", at=now - 60, decisions=[decision(1, entry="b1")]),
            turn("b3", "And on riscv?", thought("Ah.", 2), "Use the cross linker of the host, please.", parent="b1", at=now - 30, decisions=[decision(1, **LOST)], thinking_off=True),
        )  # fmt: skip
        stage.record("noted", turn("n1", NOTE, "Yes.", at=now - 500), turn("n2", "Is it true?", "Yes.", parent="n1", at=now - 400))  # fmt: skip
        stage.record("broken", turn("x1", "Break", thought("", 0.01), at=now - 300, outcome=Outcome.FAILED, reason="the upstream broke off"))  # fmt: skip
        yield stage


@pytest.fixture
def tab(browser, stage):
    tab = Tab(browser, stage.url)
    yield tab
    tab.close()


def refuse(stage, path="/u/nobody/v1/chat/completions", **headers):
    httpx2.post(f"{stage.url}{path}", json={"model": "x"}, headers=headers)


def row(page, text):
    return page.locator(".request-row", has_text=text)


def test_it_begins_with_what_happens(tab, stage):
    refuse(stage, "/u/stranger/v1/chat/completions")  # other tests have their own
    refuse(stage, host="stranger.example")
    page = tab.open()
    row(page, "no upstream is called 'stranger'").wait_for()
    row(page, "the request is for the host 'stranger.example'").wait_for()
    talk = stage.talk("Who is there?")
    running = row(page, "Who is there?")
    expect(running).to_have_attribute("data-outcome", "running")
    expect(page.locator(".tile.running strong")).to_have_text("1")
    talk.say("I am.")
    talk.stop()
    expect(running).to_have_attribute("data-outcome", "completed")
    expect(running.locator(".request-tokens")).to_contain_text("900 → 40")
    broken = row(page, "the upstream broke off")
    expect(broken).to_have_attribute("data-outcome", "failed")
    assert page.locator(".request-row").first.text_content().startswith("completed200")


def test_a_refused_request_says_why_and_what_to_do(tab, stage):
    refuse(stage)
    page = tab.open("#/requests?has=failed")
    row(page, "no upstream is called 'nobody'").first.press("Enter")
    panel = page.get_by_role("complementary", name="404 refused")
    expect(panel).to_contain_text("The gateway says")
    expect(panel).to_contain_text("Look at the client's base URL")
    expect(panel.locator(".advice code")).to_have_text("thoughtline doctor")
    expect(panel).to_contain_text("POST /v1/chat/completions")
    page.reload()
    expect(panel).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    assert "open=" not in page.url


def test_a_request_leads_to_its_conversation(tab):
    page = tab.open("#/requests?open=b2")
    panel = page.locator("aside.panel")
    expect(panel).to_contain_text("1 put back")
    expect(panel).to_contain_text("Cost$0.0012")
    expect(panel.get_by_role("img", name=re.compile("Thought 2 s, answered"))).to_be_visible()
    panel.get_by_role("link", name="Open it in its conversation").click()
    page.locator("#turn-b2").wait_for()
    assert "request=b2" in page.url


def test_filters_stand_in_the_address(tab):
    page = tab.open()
    page.get_by_role("button", name="Missed").click()
    expect(page.locator(".request-row")).to_have_count(1)
    assert "has=missed" in page.url
    page.get_by_role("button", name="Thinking off").click()
    expect(row(page, "thinking off")).to_have_count(1)
    page.get_by_role("button", name="Tied").click()
    page.locator("main").get_by_text("None of these").wait_for()
    page.get_by_role("button", name="Show all").click()
    row(page, "Is it true?").first.wait_for()
    tab.open("#/sessions?has=thinking_off")
    expect(page.locator(".session-row")).to_have_count(1)


def test_keys_step_through_requests(tab):
    page = tab.open()
    page.locator(".request-row").first.wait_for()
    page.keyboard.press("j")
    first = page.evaluate("document.activeElement.href")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.href") != first
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.href") == first
    page.keyboard.press("2")
    page.locator(".session-row").first.wait_for()


def test_a_session_is_called_by_what_a_person_said(tab):
    page = tab.open("#/sessions")
    page.get_by_role("link", name=re.compile("Is it true?")).wait_for()
    assert "system-reminder" not in page.locator(".session-list").text_content()


def test_who_is_alone_hears_of_no_tenants(browser):
    with staged() as stage:
        stage.record("mine", turn("m1", "Am I alone?", "Yes."))
        refuse(stage, host="evil.example")  # who that was, nobody knows
        tab = Tab(browser, stage.url)
        page = tab.open("#/requests?open=m1")
        expect(page.locator("aside.panel")).to_contain_text("Nothing about its thoughts")
        assert "Tenant" not in page.locator("aside.panel").text_content()
        tab.open("#/sessions/mine")
        page.locator("#turn-m1").wait_for()
        page.get_by_role("button", name="Filter").click()
        expect(page.locator("#filter-tenant")).to_be_hidden()
        assert "tenant" not in page.locator(".session-facts").text_content()
        stage.record("other", turn("o1", "And I?", "You too."), tenant="bob")
        tab.open("#/sessions/mine")
        expect(page.locator(".session-row")).to_have_count(2)
        page.get_by_role("button", name="Filter").click()
        expect(page.locator("#filter-tenant")).to_be_visible()
        tab.close()


def test_a_search_shows_where_and_marks_it(tab):
    page = tab.open("#/sessions?q=LINKER OF")
    snippet = page.locator(".row-snippet")
    expect(snippet).to_contain_text("Use the cross linker of the target")
    expect(snippet.locator("mark")).to_have_text("linker of")
    page.locator(".session-row").click()
    expect(page.locator("#turn-b2 mark")).to_have_text("linker of")


def test_a_comparison_begins_at_the_fork_and_marks_what_differs(tab):
    page = tab.open("#/sessions/build/compare?left=b2&right=b3")
    fork = page.get_by_role("region", name="The last turn in common")
    expect(fork).to_contain_text("Why does the linker fail?")
    left = page.get_by_role("region", name="First branch")
    right = page.get_by_role("region", name="Second branch")
    expect(left.locator("del")).to_have_text(["arm64", "target"])
    expect(right.locator("ins")).to_have_text(["riscv", "host"])


def test_a_thought_can_be_read_while_it_is_being_thought(tab, stage):
    talk = stage.talk("Think aloud")
    talk.think("First this,")
    page = tab.open(f"#/sessions/{talk.session}")
    page.get_by_role("button", name=re.compile("Thinking for")).click()
    body = page.locator(".thought-body")
    expect(body).to_contain_text("First this,")
    talk.think(" then that.")
    expect(body).to_contain_text("First this, then that.")
    talk.say("Done.")
    talk.stop()
    page.get_by_role("button", name=re.compile("Thought for")).wait_for()
    expect(body).to_contain_text("As the model wrote it")
    shown = [line for line in stage.lines.getvalue().splitlines() if "thoughts_shown" in line and talk.session in line]  # fmt: skip
    assert len(shown) <= 3  # once while it ran, and once when it was complete


def test_a_timer_stops_when_the_gateway_is_gone(browser):
    with staged() as stage:
        talk = stage.talk("Are you still there?")
        talk.think("Hm.")
        tab = Tab(browser, stage.url)
        page = tab.open(f"#/sessions/{talk.session}")
        page.get_by_role("button", name=re.compile("Thinking for")).wait_for()
        stage.do(stage.stop())
        page.locator(".connection[data-state=waiting]").wait_for()
        page.get_by_role("button", name="Was thinking when the gateway was last seen").wait_for()
        assert page.get_by_text(re.compile("Thinking for")).count() == 0
        stage.do(stage.start())
        page.locator(".connection[data-state=live]").wait_for()
        tab.close()


def test_copying_and_exporting(tab):
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = tab.open("#/sessions/build?head=b2")
    page.get_by_role("button", name="Copy the answer").first.click()
    read = "navigator.clipboard.readText()"
    page.wait_for_function(f"async () => (await {read}).startsWith('Use the cross linker of the target')")  # fmt: skip
    page.get_by_role("button", name="Export this session").click()
    dialog = page.get_by_role("dialog", name="Export this session")
    assert violations(page) == []
    dialog.get_by_label("With the text of its thoughts").check()
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "why-does-the-linker-fail.md"
    text = download.value.path().read_text("utf-8")
    assert "# Why does the linker fail?" in text
    assert "**Thought for 23 seconds**\n\n> Look." in text
    assert 'Call `read`\n```\n{"a":1}\n```' in text
    page.get_by_role("button", name="Export this session").click()
    dialog.get_by_label("Format").select_option("json")
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download").click()
    assert '"session"' in download.value.path().read_text("utf-8")


def test_a_link_to_a_turn_draws_no_line_before_a_key_is_pressed(tab):
    page = tab.open("#/sessions/build?turn=b1")
    focused = page.locator("#turn-b1:focus")
    focused.wait_for()
    shadow = "(element) => getComputedStyle(element).boxShadow"
    assert focused.evaluate(shadow) == "none"
    page.keyboard.press("Shift")
    assert focused.evaluate(shadow) != "none"


def test_a_wide_screen_shows_what_the_session_took(browser, stage):
    tab = Tab(browser, stage.url, size=WIDE)
    page = tab.open("#/sessions/build?head=b2")
    rail = page.get_by_role("complementary", name="Overview")
    expect(rail).to_contain_text("3,000")
    expect(rail).to_contain_text("450 of them thought")
    expect(rail.locator(".turn-bars li")).to_have_count(2)
    rail.get_by_role("button", name=re.compile("read")).click()
    page.locator("#turn-b1:focus").wait_for()
    page.get_by_role("button", name="Show or hide the overview").click()
    expect(rail).to_be_hidden()
    tab.close()


def test_on_a_phone_a_request_covers_the_list_and_goes(browser, stage):
    tab = Tab(browser, stage.url, size=NARROW)
    page = tab.open("#/requests?open=b2")
    panel = page.locator("aside.panel")
    expect(panel).to_contain_text("Where the time went")
    page.get_by_role("button", name="Close (Escape)").click()
    expect(panel).to_be_hidden()
    tab.close()


def test_numbers_that_fit_together(tab):
    said = tab.open().evaluate(
        """async () => {
          const { elapsed, money, moneyOf, percent } = await import("/inspect/words.js");
          const { textDiff } = await import("/inspect/diff.js");
          return {
            percent: [1, 0.99999, 0.5, 0.00001, 0, null].map(percent),
            elapsed: [0.024, 1.2, 65].map((n) => elapsed(0, n)),
            money: [null, 0, 0.00001, 0.0042, 1234.5].map(money),
            several: [moneyOf({ cost: null, unpriced: 2 }), moneyOf({ cost: 2, costApproximate: true, unpriced: 1 })],
            diff: textDiff("a b c", "a x c"),
            long: textDiff("x ".repeat(5000), "y ".repeat(5000)).length,
          };
        }"""
    )
    assert said == {
        "percent": ["100 %", "99.9 %", "50 %", "0.1 %", "0 %", "–"],
        "elapsed": ["1 s", "2 s", "1m 5s"],
        "money": ["–", "$0", "< $0.0001", "$0.0042", "$1,234.50"],
        "several": ["–", "≈ $2.00 +"],
        "diff": [["same", "a "], ["left", "b"], ["right", "x"], ["same", " c"]],
        "long": 3,
    }


def test_five_hundred_sessions_and_a_loop_of_two_thousand_turns(browser):
    with staged() as stage:
        now = time.time()
        for n in range(500):
            stage.record(f"s{n}", turn(f"t{n}", f"Question {n}", "Answer.", at=now - 500 + n, target=ORIGIN))  # fmt: skip
        loop = [turn(f"l{n}", f"Step {n}", "Done.", parent=f"l{n - 1}" if n else "", at=now - 5000 + n) for n in range(2_000)]  # fmt: skip
        stage.record("loop", *loop)
        tab = Tab(browser, stage.url, size=WIDE)
        page = tab.open()
        expect(page.locator(".tiles.today")).to_contain_text("turns today")
        page.locator(".request-row").first.wait_for()
        assert page.locator(".request-row").count() < 60
        for _ in range(400):
            if row(page, "Step 0").count():  # the loop's own name
                break
            page.evaluate(DOWN)
        row(page, "Step 0").first.wait_for()
        assert page.evaluate("document.querySelectorAll('*').length") < 2500
        tab.open("#/sessions/loop")
        expect(page.locator(".rail .turn-bars li")).to_have_count(150)
        tab.close()


DOWN = """async () => {
  const scroller = document.querySelector(".requests-scroll");
  scroller.scrollTop = scroller.scrollHeight;
  await new Promise((done) => setTimeout(done, 60));
}"""
