"""The screen "Setup": it comes at once, the rest follows, and can be asked for again."""

from playwright.sync_api import expect

from browser.home import GATES


def test_the_answer_comes_after_the_screen(filled_page, tab, axe):
    filled_page.open(tab, "/setup")
    expect(tab.locator(".verdict")).to_have_text("YES")
    expect(tab.get_by_role("heading", level=2)).to_contain_text(["are checked by 3 gates", "Gates"])
    expect(tab.get_by_role("cell", name="Claude Code", exact=True)).to_be_visible()
    axe(tab)


def test_another_folder_can_be_chosen_and_shared(filled_page, tab, filled):
    filled_page.open(tab, "/setup")
    tab.get_by_label("folder").select_option(str(filled.folder / "docs"))
    tab.get_by_role("button", name="Show").click()
    expect(tab.get_by_role("cell", name="links", exact=True)).to_be_visible()
    assert "place=" in tab.url
    assert "docs" in tab.url


def test_a_fault_is_fixed_with_its_command_and_looked_for_again(home, page_server, tab):
    folder = home.project("shop", GATES)
    (folder / "notyet.toml").write_text(GATES.replace("pytest -q", "pytest -q --hostile='<b>'"))
    home.install("claude", "2.1.325", folder)
    (folder / "notyet.toml").write_text(GATES.replace("ruff check .", "ruff check src"))
    page_server(home, folder=folder).open(tab, "/setup")
    expect(tab.get_by_text("config-changed")).to_be_visible()
    fix = tab.locator(".faults code.copy").first
    expect(fix).to_have_text("notyet trust")
    fix.click()
    assert tab.evaluate("getSelection().toString()") == "notyet trust"
    (folder / "notyet.toml").write_text(GATES.replace("pytest -q", "pytest -q --hostile='<b>'"))
    tab.get_by_role("link", name="look again").click()
    expect(tab.locator(".verdict")).to_have_text("YES")
    expect(tab.get_by_text("--hostile='<b>'")).to_be_visible()
    assert tab.url.endswith("/setup")


def test_a_folder_that_is_gone_is_told_in_place_of_its_answer(home, page_server, tab):
    folder = home.project("shop", GATES)
    home.stop("claude", folder, "s1")
    page_server(home).open(tab, f"/setup?place={folder}")
    expect(tab.locator(".verdict")).to_be_visible()
    folder.rename(home.folder / "moved")
    tab.get_by_role("link", name="look again").click()
    expect(tab.get_by_text("place is not a folder of this machine")).to_be_visible()
    expect(tab.locator(".verdict")).not_to_be_attached()


def test_without_scripts_a_link_leads_to_the_answer(filled_page, filled, new_tab):
    place = f"/setup?place={filled.folder / 'api'}"  # which no other tab looks at
    tab = filled_page.open(new_tab(java_script_enabled=False), place)
    tab.get_by_role("link", name="Without scripts").click()
    expect(tab.locator(".verdict")).to_have_text("YES")
