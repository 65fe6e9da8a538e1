"""The screen Fleet in a browser, on a real PostgreSQL."""

import pytest

_TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_fleet_can_be_read_on_a_desk_and_on_a_phone(fleet_page, new_tab, axe, dark):
    for width in (1280, 390):
        tab = fleet_page.open(new_tab(dark=dark, width=width), "/fleet")
        axe(tab)
        assert tab.evaluate(_TOO_WIDE) == 0
        assert tab.locator("nav a[aria-current=page]").inner_text() == "Fleet"


def test_a_worker_appears_by_itself(fleet_page, fleet, tab, seconds_until):
    fleet_page.open(tab, "/fleet")
    tab.wait_for_selector("#connection.live")
    owner = fleet.worker("box-late")
    shows = "document.getElementById('workers').innerText.includes('box-late')"
    seconds_until(tab, f"() => {shows}")
    fleet.leases.retire(owner)
    seconds_until(tab, f"() => !{shows}")


def test_a_result_leads_to_its_task(fleet_page, tab):
    fleet_page.open(tab, "/fleet")
    tab.locator("#results a", has_text="Upgrade the linter").click()
    assert "Upgrade the linter" in tab.locator("#task h2").inner_text()
