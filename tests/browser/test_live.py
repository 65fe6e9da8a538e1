"""An open page follows the ledger, leaves alone what its reader does, and says when it cannot."""

import os

import pytest

from browser.home import GATES, UNICODE

ROWS = "count => document.querySelectorAll('#stops tbody tr').length === count"
TROUBLE = "words => document.getElementById('trouble').textContent.includes(words)"
NO_TROUBLE = "() => document.getElementById('trouble').textContent === ''"
# Tabs of a headless Chromium do not say that they are behind others.
SHOW = (
    "state => { Object.defineProperty(document, 'visibilityState',"
    " { value: state, configurable: true });"
    " document.dispatchEvent(new Event('visibilitychange')); }"
)
STATE = "word => document.getElementById('connection').textContent === word"


@pytest.fixture
def shop(home):
    folder = home.project("shop", GATES)
    home.stop("claude", folder, "4a232a7e", "One.", broken={"pytest": UNICODE})
    return folder


def test_new_stops_appear_by_themselves(home, shop, page_server, tab, seconds_until):
    page_server(home).open(tab)
    seconds_until(tab, STATE, "live")
    seconds_until(tab, ROWS, 1)
    home.stop("codex", shop, "e0a066c1", "Two.")
    seconds_until(tab, ROWS, 2)
    tab.locator("#stop-2 .chip", has_text="passed").wait_for()


def test_a_page_that_is_opened_before_the_first_stop(home, page_server, tab, seconds_until):
    page_server(home).open(tab)
    seconds_until(tab, STATE, "live")
    assert "No agent has stopped yet" in tab.inner_text("main")
    home.stop("claude", home.project("shop", GATES), "4a232a7e")
    seconds_until(tab, ROWS, 1)


def test_focus_and_selected_text_stay_where_they_are(home, shop, page_server, tab):
    page_server(home).open(tab)
    tab.wait_for_function(ROWS, arg=1)
    tab.evaluate(
        "() => { const row = document.querySelector('#stops tbody tr');"
        " row.querySelector('a').focus(); row.wasThere = true;"
        " getSelection().selectAllChildren(row.querySelector('.why')); }"
    )
    selected = tab.evaluate("getSelection().toString()")
    assert "test_unicode" in selected
    home.stop("codex", shop, "e0a066c1", "Two.")
    tab.wait_for_function(ROWS, arg=2)
    assert tab.evaluate("getSelection().toString()") == selected
    assert tab.evaluate("document.activeElement.getAttribute('href')") == "/stops/1"
    assert tab.evaluate("document.querySelectorAll('#stops tbody tr')[1].wasThere")


def test_what_is_wrong_with_the_ledger_is_said_and_passes(home, shop, page_server, tab):
    page_server(home).open(tab)
    tab.wait_for_function(ROWS, arg=1)
    os.rename(home.ledger, f"{home.ledger}.away")
    os.mkdir(home.ledger)
    tab.wait_for_function(TROUBLE, arg="it is a directory")
    assert tab.locator("#stops tbody tr").count() == 1  # what was there stays
    other = tab.context.new_page()
    other.goto(tab.url)
    assert "it is a directory" in other.inner_text("main")
    os.rmdir(home.ledger)
    os.rename(f"{home.ledger}.away", home.ledger)
    for each in (tab, other):
        each.wait_for_function(ROWS, arg=1, polling=50)  # a tab behind others draws no frames
        each.wait_for_function(NO_TROUBLE, polling=50)
    home.stop("codex", shop, "e0a066c1", "Two.")
    for each in (tab, other):
        each.wait_for_function(ROWS, arg=2, polling=50)


def test_a_page_that_ends_says_so_and_its_tab_asks_no_more(home, shop, page_server, tab):
    server = page_server(home)
    server.open(tab)
    tab.wait_for_function(STATE, arg="live")
    server.end()
    tab.wait_for_function(STATE, arg="ended")
    assert "Start it again with: notyet page" in tab.inner_text("#offline")
    assert tab.locator("#stops tbody tr").count() == 1
    asked = []
    tab.on("request", lambda request: asked.append(request.url))
    server.start_again()
    tab.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    tab.wait_for_timeout(500)
    assert asked == []


def test_a_hidden_tab_holds_no_connection_and_catches_up(home, shop, page_server, tab):
    page_server(home).open(tab)
    tab.wait_for_function(STATE, arg="live")
    tab.wait_for_function(ROWS, arg=1)
    tab.evaluate(SHOW, "hidden")
    home.stop("codex", shop, "e0a066c1", "Two.")
    tab.wait_for_timeout(1_000)
    assert tab.locator("#stops tbody tr").count() == 1
    tab.evaluate(SHOW, "visible")
    tab.wait_for_function(ROWS, arg=2)


def test_more_tabs_than_a_browser_has_connections_for_can_be_open(home, shop, page_server, tab):
    server = page_server(home)
    server.open(tab)
    for _ in range(8):
        tab.evaluate(SHOW, "hidden")
        tab = tab.context.new_page()
        tab.goto(f"{server.origin}/stops")
        tab.wait_for_function(STATE, arg="live")
    home.stop("codex", shop, "e0a066c1", "Two.")
    tab.wait_for_function(ROWS, arg=2)


def test_a_connection_that_is_lost_and_comes_back(home, shop, page_server, new_tab, troubles):
    server = page_server(home)
    tab = server.open(new_tab())
    tab.wait_for_function(ROWS, arg=1)
    tab.context.set_offline(True)
    tab.evaluate(SHOW, "hidden")
    tab.evaluate(SHOW, "visible")
    tab.wait_for_function(STATE, arg="not live")
    assert "tries again" in tab.inner_text("#offline")
    home.stop("codex", shop, "e0a066c1", "Two.")
    tab.context.set_offline(False)
    tab.wait_for_function(STATE, arg="live")
    tab.wait_for_function(ROWS, arg=2)
    assert tab.inner_text("#offline") == ""
    expect_only(troubles, "ERR_INTERNET_DISCONNECTED")


def test_a_new_page_on_the_same_port_refuses_the_tab_of_the_old_one(
    home, shop, page_server, new_tab, troubles
):
    server = page_server(home)
    tab = server.open(new_tab())
    tab.wait_for_function(STATE, arg="live")
    tab.wait_for_timeout(1_000)  # until nothing is asked any more
    server.process.kill()  # so that it says nothing
    server.process.wait()
    tab.wait_for_function(STATE, arg="not live")
    server.start_again()
    tab.wait_for_function(STATE, arg="ended")
    assert "Open the address that the new one printed" in tab.inner_text("#offline")
    expect_only(troubles, "ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "403")


def expect_only(troubles, *causes):
    """Take what a browser itself says of a connection, which no page can prevent, as no trouble."""
    assert [one for one in troubles if not any(cause in one for cause in causes)] == []
    troubles.clear()
