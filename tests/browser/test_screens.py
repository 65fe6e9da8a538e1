"""Every screen opens without an error, on wide and narrow windows, in light and dark."""

from urllib.parse import urlsplit

import pytest

SCREENS = (
    "/",
    "/stops",
    "/stops/1",
    "/stops/14?replay=1",
    "/session?host=claude&id=07efb1d2",
    "/gates",
    "/tasks",
    "/tasks/{active}",
    "/tasks/{ended}",
    "/setup",
)
_TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
def path(request, filled):
    """The address of a screen; tasks have an id that only the ledger knows."""
    (active,), (ended,) = filled.rows("SELECT id FROM tasks ORDER BY ended_at IS NOT NULL")
    return request.param.format(active=active, ended=ended)


every_screen = pytest.mark.parametrize("path", SCREENS, indirect=True)


@every_screen
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_screen_can_be_read_on_a_desk_and_on_a_phone(filled_page, new_tab, axe, path, dark):
    wide = filled_page.open(new_tab(dark=dark), path)
    axe(wide)
    assert wide.evaluate(_TOO_WIDE) == 0
    narrow = filled_page.open(new_tab(dark=dark, width=390), path)
    axe(narrow)
    assert narrow.evaluate(_TOO_WIDE) == 0


@every_screen
def test_a_screen_has_one_headline_and_no_token_in_its_address(filled_page, tab, path):
    filled_page.open(tab, path)
    assert tab.locator("h1").count() == 1
    assert tab.url == f"{filled_page.origin}{path}"
    token = urlsplit(filled_page.address).query.partition("=")[2]
    assert token not in tab.evaluate("document.documentElement.outerHTML + document.referrer")
