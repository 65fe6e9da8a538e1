"""One stop and one session in a browser: long and hostile outputs, the keyboard, today's gates."""

import threading

import pytest
from playwright.sync_api import expect

from browser.home import GATES

HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(2)</script></pre>\x1b[31mred\x1b[0m\u202etxet\n"
)
_SIZE = "element => [element.clientHeight, element.scrollHeight]"


def test_a_long_hostile_output_is_text_in_a_box_that_scrolls(home, page_server, tab, axe):
    folder = home.project("shop", GATES)
    output = HOSTILE * (256 * 1024 // len(HOSTILE.encode()))
    home.stop("claude", folder, HOSTILE, HOSTILE, broken={"pytest": output})
    server = page_server(home)
    server.open(tab, "/stops")
    tab.get_by_role("link", name="1", exact=True).first.click()
    box = tab.locator("details[open] pre")
    expect(box).to_contain_text("<script>alert(2)</script></pre>redtxet")
    height, whole = box.evaluate(_SIZE)
    assert height < 600
    assert whole > 20_000
    box.focus()
    tab.keyboard.press("End")
    tab.wait_for_function("() => document.activeElement.scrollTop > 10000")
    assert tab.locator("img").count() == 0
    axe(tab)
    tab.locator("#stop a[href^='/session']").first.click()
    expect(tab.locator("#conversation")).to_contain_text("<script>alert(2)</script>")
    assert tab.locator("img").count() == 0
    axe(tab)


def test_gates_open_and_close_with_the_keyboard(filled_page, tab):
    filled_page.open(tab, "/stops/1")
    failed = tab.locator("details", has_text="2 failed, 118 passed")
    expect(failed).to_have_attribute("open", "")
    passed = tab.locator("details:not([open])").first
    passed.locator("summary").focus()
    tab.keyboard.press("Enter")
    expect(tab.locator("details").first).to_have_attribute("open", "")
    expect(tab.get_by_text("ruff: ok")).to_be_visible()


def test_a_turn_can_be_walked_through_and_decided_again(filled_page, tab):
    filled_page.open(tab, "/stops/1")
    tab.get_by_role("link", name="next stop").click()
    expect(tab.get_by_role("heading", level=2, name="Stop 2")).to_be_visible()
    expect(tab.locator(".path .chip")).to_have_text(["sent back", "sent back", "passed"])
    tab.get_by_role("link", name="Decide it again").click()
    expect(tab.locator("#today")).to_contain_text("Today's gates would decide the same.")
    assert tab.url.endswith("/stops/2?replay=1#today")
    tab.get_by_role("link", name="hide this").click()
    expect(tab.get_by_role("link", name="Decide it again")).to_be_visible()


def test_a_stop_that_is_being_checked_shows_the_answer_by_itself(home, page_server, tab):
    gates = '[gates.slow]\nrun = "while [ ! -e go ]; do sleep 0.05; done; echo it is fine"\n'
    folder = home.project("shop", gates)
    server = page_server(home)
    stopping = threading.Thread(target=home.stop, args=("claude", folder, "s1", "I wait."))
    stopping.start()
    try:
        home.wait_for_rows("SELECT 1 FROM stops")
        server.open(tab, "/stops/1")
        expect(tab.locator("#stop h2").first).to_contain_text("being checked")
        expect(tab.get_by_text("The gates run now.")).to_be_visible()
    finally:
        (folder / "go").touch()
        stopping.join(30)
    expect(tab.locator("#stop h2").first).to_contain_text("passed")
    expect(tab.get_by_text("it is fine")).to_have_count(1)


@pytest.mark.parametrize("width", [1280, 390], ids=["desk", "phone"])
def test_agents_have_lanes_side_by_side_or_one_below_the_other(filled_page, new_tab, width):
    tab = filled_page.open(new_tab(width=width), "/session?host=claude&id=07efb1d2")
    lanes = tab.locator(".lanes > li")
    expect(lanes).to_have_count(3)
    (sub, _, main) = [lanes.nth(number).bounding_box() for number in range(3)]
    assert main["y"] > sub["y"]
    if width > 800:
        assert main["x"] + main["width"] <= sub["x"]
    else:
        assert main["x"] == sub["x"]
