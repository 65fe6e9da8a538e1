"""The screen "Now" in a browser: numbers, agents, the chart, and getting around by keyboard."""

import pytest

from browser.home import GATES, UNICODE

NUMBER = "([at, text]) => document.querySelectorAll('#numbers strong')[at].textContent === text"
# How many different colours, other than see-through, the chart has.
COLOURS = """() => {
  const canvas = document.querySelector('#chart canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const found = new Set();
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] === 255) found.add(data.slice(at, at + 3).join());
  }
  return [...found];
}"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_chart_has_the_colours_of_the_page(filled_page, new_tab, dark):
    tab = filled_page.open(new_tab(dark=dark))
    tab.wait_for_selector("#chart canvas")
    colours = tab.evaluate(COLOURS)
    for name in ("ok", "back", "bad", "warn"):
        shown = tab.evaluate(
            "name => { const probe = document.createElement('i'); probe.className = name;"
            " document.body.append(probe); const shown = getComputedStyle(probe).color;"
            " probe.remove(); return shown; }",
            name,
        )
        assert shown.removeprefix("rgb(").removesuffix(")").replace(" ", "") in colours


def test_the_chart_follows_the_width_and_the_colours_of_the_window(filled_page, tab):
    filled_page.open(tab)
    tab.wait_for_selector("#chart canvas")
    before = tab.evaluate(COLOURS)
    tab.evaluate("document.querySelector('#chart canvas').isLight = true")
    tab.emulate_media(color_scheme="dark")
    tab.wait_for_function("() => !document.querySelector('#chart canvas').isLight")
    assert set(before).isdisjoint(tab.evaluate(COLOURS))
    tab.set_viewport_size({"width": 390, "height": 800})
    fits = "() => document.querySelector('#chart canvas').clientWidth < 380"
    tab.wait_for_function(fits)


def test_numbers_agents_and_chart_change_by_themselves(home, page_server, tab, seconds_until):
    shop = home.project("shop", GATES)
    page_server(home).open(tab)
    assert tab.inner_text("#agents .empty") == "No agent is at work."
    home.stop("claude", shop, "4a232a7e", "One.", broken={"pytest": UNICODE})
    seconds_until(tab, NUMBER, [0, "1"])
    tab.locator("#agents li", has_text="sent back once").wait_for()
    tab.wait_for_selector("#chart canvas")
    tab.click("#chart-table summary")
    home.stop("claude", shop, "4a232a7e", "Two.", stop_hook_active=True)
    seconds_until(tab, NUMBER, [3, "1 of 1"])
    assert tab.inner_text("#agents .empty") == "No agent is at work."
    assert tab.locator("#chart canvas").count() == 1
    assert tab.locator("#chart-table tbody tr").first.is_visible()  # it stays open
    assert "passed" in tab.inner_text("#chart-table")


def test_every_number_leads_to_the_stops_that_it_counts(filled_page, tab):
    filled_page.open(tab)
    for at, word in ((2, "sent back"), (4, "NOT PASSED")):
        count = int(tab.locator("#numbers strong").nth(at).inner_text())
        tab.locator("#numbers li").nth(at).locator("a").click()
        tab.wait_for_url("**/stops?**")
        assert tab.locator("#stops tbody tr").count() == count
        assert tab.locator("#stops .chip", has_text=word).count() == count
        tab.go_back()


def test_getting_around_by_keyboard(filled_page, tab):
    filled_page.open(tab)
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "to the content"
    tab.keyboard.press("Enter")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.closest('ul').id") == "numbers"
    reached = set()
    for _ in range(40):
        tab.keyboard.press("Tab")
        reached.add(tab.evaluate("document.activeElement.closest('section')?.id"))
    assert {"agents", "over-time", "stops"} <= reached


def test_the_span_of_the_chart_is_in_the_address(filled_page, tab):
    filled_page.open(tab)
    tab.click("text=7 days")
    tab.wait_for_url("**/?span=7d")
    tab.wait_for_selector("#chart canvas")
    assert tab.inner_text(".spans [aria-current]") == "7 days"
