"""Supervised agents on the page: watched, talked to, steered, interrupted and killed."""

import signal

import pytest
from playwright.sync_api import expect

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202e"
GATES = '[gates]\ntests = "pytest -q"\n'
# An agent whose first turn lasts until there is a file `go`.
WAITS = """\
[[turn]]
steps = [
  { say = "I wait." },
  { tool = "bash", run = "while [ ! -e go ]; do sleep 0.05; done" },
  { say = "That was the first part." },
]

[[turn]]
say = "I have read your words."
"""


@pytest.fixture
def folder(home):
    return home.project("shop", GATES)


@pytest.fixture
def start(home, folder, page_server, tab):
    """Start an agent, and open its task; the process of its supervisor is `start.process`."""

    def start(script=WAITS, label="waits", prompt="Port it."):
        start.process = home.start_with(folder, script, prompt, "--label", label)
        sql = "SELECT task FROM runs WHERE state = 'running' AND sent != 'reserved'"
        ((start.task,),) = home.wait_for_rows(sql)
        start.server = page_server(home)
        start.server.open(tab, "/tasks")
        tab.locator("#tasks td a").first.click()
        expect(tab.locator("#task h2")).to_contain_text("running")
        return tab

    return start


def notice(tab):
    return tab.locator("#done")


def acts(tab, name):
    return tab.locator("#actions summary", has_text=name)


def test_a_message_reaches_the_agent_when_its_turn_ends(start, folder, axe):
    tab = start()
    acts(tab, "Say…").click()
    axe(tab)
    tab.locator("textarea:visible").fill("And the docs,\nplease.")
    tab.get_by_role("button", name="Send the message").click()
    expect(notice(tab)).to_have_text(f"{start.task} gets your message when its turn ends")
    expect(notice(tab)).to_be_focused()
    expect(tab).to_have_url(f"{start.server.origin}/tasks/{start.task}")
    axe(tab)
    expect(tab.locator("#talk")).to_contain_text("message of its user, queued")
    (folder / "go").touch()
    expect(tab.locator("#talk")).to_contain_text("I have read your words.")
    expect(tab.locator("#talk pre", has_text="And the docs,\nplease.")).to_be_visible()
    expect(tab.locator("#task h2")).to_contain_text("passed")
    expect(tab.locator("#actions")).to_be_hidden()
    tab.reload()
    expect(notice(tab)).to_have_count(0)


def test_a_double_click_sends_a_message_once(start, home):
    tab = start()
    acts(tab, "Say…").click()
    tab.locator("textarea:visible").fill("Once.")
    tab.get_by_role("button", name="Send the message").dblclick()
    expect(notice(tab)).to_contain_text("gets your message")
    assert home.rows("SELECT text FROM messages") == [("Once.",)]


def test_a_prompt_ends_the_turn_and_goes_on_from_there(start):
    tab = start()
    acts(tab, "Steer…").click()
    tab.locator("textarea:visible").fill("Use the new API.")
    tab.get_by_role("button", name="Steer it now").click()
    expect(notice(tab)).to_have_text(f"{start.task} continues with your prompt")
    expect(tab.locator("#talk")).to_contain_text("steered by hand")
    expect(tab.locator("#talk")).to_contain_text("I have read your words.")
    expect(tab.locator("#task h2")).to_contain_text("done")
    assert start.process.wait(timeout=20) == 0


@pytest.mark.parametrize(
    ("name", "ending", "code"), [("Interrupt", "interrupted", 130), ("Kill", "killed", 137)]
)
def test_an_agent_is_ended_with_the_keyboard_alone(start, name, ending, code):
    tab = start()
    tab.locator("#main").focus()
    button = tab.get_by_role("button", name=f"{name} it now")
    expect(button).to_be_hidden()
    _tab_to(tab, name)
    tab.keyboard.press("Enter")
    expect(button).to_be_visible()
    assert start.process.poll() is None  # that was only the question
    tab.keyboard.press("Tab")
    expect(button).to_be_focused()
    tab.keyboard.press("Enter")
    expect(notice(tab)).to_have_text(f"{start.task} is {ending}")
    expect(tab.locator("#task h2")).to_contain_text(ending)
    expect(tab.locator("#actions")).to_be_hidden()
    assert start.process.wait(timeout=20) == code


def _tab_to(tab, name):
    for _ in range(60):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.textContent") == name:
            return
    raise AssertionError(f"the keyboard does not come to {name}")


def test_what_is_typed_stays_while_the_page_changes(start, home, folder):
    tab = start()
    acts(tab, "Say…").click()
    tab.locator("textarea:visible").type("I am not")
    home.stop("claude", folder, "other", "Something else happened.")
    home.rows("UPDATE tasks SET steers = 7 WHERE id = ?", start.task)
    expect(tab.locator("#task")).to_contain_text("7 times by gates")
    tab.keyboard.type(" done.")
    expect(tab.locator("textarea:visible")).to_have_value("I am not done.")


def test_what_was_refused_can_be_sent_again(start):
    tab = start()
    start.process.send_signal(signal.SIGSTOP)
    try:
        acts(tab, "Say…").click()
        tab.locator("textarea:visible").fill("Keep <this>.")
        tab.get_by_role("button", name="Send the message").click()
        expect(notice(tab)).to_contain_text(f"process {start.process.pid}, which has task")
        expect(tab.locator("textarea:visible")).to_have_value("Keep <this>.")
    finally:
        start.process.send_signal(signal.SIGCONT)
    tab.get_by_role("button", name="Send the message").click()
    expect(notice(tab)).to_contain_text("gets your message")
    expect(tab.locator("textarea:visible")).to_have_count(0)


def test_hostile_words_of_an_agent_run_nothing(start, folder):
    script = f"""\
[[turn]]
steps = [
  {{ tool = "bash", run = "cat hostile > .broken/pytest" }},
  {{ say = '{HOSTILE}' }},
]

[[turn]]
steps = [ {{ say = '{HOSTILE}' }}, {{ hang = true }} ]
"""
    (folder / "hostile").write_text(f"{HOSTILE}\x1b[2J" * 200)
    tab = start(script, label=HOSTILE, prompt=HOSTILE)
    expect(tab.locator("#talk")).to_contain_text("a gate sent it back")
    expect(tab.locator("#talk pre", has_text="<script>alert(2)</script>").first).to_be_visible()
    assert tab.locator("img").count() == 0
    start.server.open(tab, "/tasks?show=active")
    expect(tab.locator("#tasks td a").first).to_contain_text("<script>alert(2)</script>")


def test_without_scripts_the_forms_work_too(start, new_tab):
    start()
    tab = start.server.open(new_tab(java_script_enabled=False), f"/tasks/{start.task}")
    acts(tab, "Say…").click()
    tab.locator("textarea:visible").fill("Hello.")
    tab.get_by_role("button", name="Send the message").click()
    expect(notice(tab)).to_contain_text("gets your message")
    acts(tab, "Kill").click()
    tab.get_by_role("button", name="Kill it now").click()
    expect(notice(tab)).to_contain_text("is killed")
    expect(tab.get_by_text("a message that came too late")).to_be_visible()


def test_a_page_that_only_shows_offers_nothing(start, home, page_server, new_tab):
    start()
    tab = page_server(home, "--read-only").open(new_tab(), f"/tasks/{start.task}")
    expect(tab.locator("#task h2")).to_contain_text("running")
    assert tab.locator("form, button, #actions").count() == 0
