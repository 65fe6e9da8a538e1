"""Every screen opens without an error, on wide and narrow windows, in light and dark."""

import pytest

SCREENS = ("/", "/stops", "/gates", "/setup")
_TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("path", SCREENS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_screen_can_be_read_on_a_desk_and_on_a_phone(filled_page, new_tab, axe, path, dark):
    wide = filled_page.open(new_tab(dark=dark), path)
    axe(wide)
    assert wide.evaluate(_TOO_WIDE) == 0
    narrow = filled_page.open(new_tab(dark=dark, width=390), path)
    axe(narrow)
    assert narrow.evaluate(_TOO_WIDE) == 0


@pytest.mark.parametrize("path", SCREENS)
def test_a_screen_has_one_headline_and_no_token_in_its_address(filled_page, tab, path):
    filled_page.open(tab, path)
    assert tab.locator("h1").count() == 1
    assert tab.url == f"{filled_page.origin}{path}"
    assert "token" not in tab.evaluate("document.documentElement.outerHTML + document.referrer")
