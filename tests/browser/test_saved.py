"""A saved page, opened as a file: all of it is there, it asks for nothing, and can be filtered."""

import pytest
from playwright.sync_api import expect

from browser.home import GATES

HOSTILE = "</script></style><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202e"
_TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
def open_saved(saved, new_tab):
    """Open the file, which must not ask for any other."""
    requests = []

    def open_saved(place="", **options):
        tab = new_tab(**options)
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(f"{saved.as_uri()}{place}")
        return tab

    yield open_saved
    own = (saved.as_uri(), "data:")
    assert [url for url in requests if not url.startswith(own)] == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390], ids=["desk", "phone"])
def test_it_can_be_read(open_saved, axe, dark, width):
    tab = open_saved(dark=dark, width=width)
    expect(tab.locator(".stop")).to_have_count(19)
    assert tab.evaluate(_TOO_WIDE) == 0
    axe(tab)


def test_a_stop_opens_to_what_was_said_printed_and_read(open_saved, axe):
    tab = open_saved()
    stop = tab.locator("#stop-1")
    expect(stop.get_by_text("The totals are right now.")).to_be_hidden()
    stop.locator("> summary").press("Enter")
    expect(stop.get_by_text("The totals are right now.")).to_be_visible()
    expect(stop.get_by_text("2 failed, 118 passed").first).to_be_visible()
    expect(stop.get_by_role("heading", name="The agent read")).to_be_visible()
    axe(tab)


def test_stops_are_filtered_by_outcome_gate_and_text(open_saved):
    tab = open_saved()
    shown = tab.locator(".stop:visible")
    tab.get_by_label("outcome").select_option("NOT PASSED")
    expect(shown).to_have_count(1)
    expect(tab.get_by_role("status")).to_have_text("1 of 19 shown")
    tab.get_by_label("outcome").select_option("")
    tab.get_by_label("gate").select_option("links")
    expect(shown).to_have_count(1)
    tab.get_by_label("gate").select_option("")
    tab.get_by_label("text").fill("ROUTES.py")
    expect(shown).to_have_count(1)
    tab.get_by_label("text").fill("")
    expect(shown).to_have_count(19)


def test_links_lead_to_the_stops_of_a_gate_and_to_one_stop(open_saved):
    tab = open_saved()
    tab.get_by_role("link", name="review").click()
    expect(tab.locator(".stop:visible")).to_have_count(7)
    opened = open_saved("#stop-4")
    expect(opened.locator("#stop-4")).to_have_attribute("open", "")
    expect(opened.get_by_text("The route is there.")).to_be_in_viewport()


def test_without_scripts_it_is_a_long_page(open_saved):
    tab = open_saved(java_script_enabled=False)
    expect(tab.locator(".stop")).to_have_count(19)
    expect(tab.locator("#filters")).to_be_hidden()
    tab.locator("#stop-3 > summary").click()
    expect(tab.get_by_text("Types are right, too.")).to_be_visible()


def test_what_agents_and_gates_write_is_only_text(home, new_tab, axe):
    folder = home.project("shop", GATES)
    home.stop("claude", folder, HOSTILE, HOSTILE, broken={"pytest": HOSTILE * 500})
    home.stop("claude", folder, "s2", HOSTILE)
    path = home.folder / "stops.html"
    assert home.start(folder, "page", "--save", str(path)).wait(timeout=60) == 0
    tab = new_tab()
    tab.goto(path.as_uri())
    for stop in tab.locator(".stop > summary").all():
        stop.click()
    expect(tab.get_by_text("alert(1)").first).to_be_visible()
    tab.get_by_label("gate").select_option(index=1)
    expect(tab.locator(".stop:visible")).to_have_count(2)
    assert tab.locator("img, iframe, base").count() == 0
    axe(tab)
