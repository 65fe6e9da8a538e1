"""The screen Stops: filters in the address, pages, JSON, and values that mean nothing."""

import re
import time

import pytest

from notyet import Allow, Block, Engine
from notyet.web.filters import stop_filter
from notyet.web.site import NotShownError, Query
from support import decide, gate, stop

EVIL = "<script>alert(1)</script>\x1b[31m\u202e"


def numbers(answer):
    return [int(number) for number in re.findall(r'href="/stops/(\d+)"', answer.text)]


def filled(page):
    """Record 5 stops: two of claude in /p with a gate, three of codex."""
    for answer in (Block("FAILED test_a"), Allow()):
        engine = Engine([gate("tests", answer)], ledger=page.ledger, warn=lambda _: None)
        engine.check_sync(
            stop(host="claude", cwd="/p/a", session_id="abc", last_message=str(answer))
        )
    for outcome in ("capped", "failed_open", "skipped"):
        decide(page.ledger, stop(host="codex", session_id=f"of {outcome}"), outcome)


def test_each_filter_finds_its_stops_as_html_and_as_json(page):
    filled(page)
    for asked, expected in {
        "": [5, 4, 3, 2, 1],
        "?host=claude": [2, 1],
        "?outcome=not_passed": [3],
        "?outcome=not_checked": [5, 4],
        "?outcome=blocked,capped": [3, 1],
        "?session=abc": [2, 1],
        "?gate=tests&outcome=passed": [2],
        "?place=/p": [2, 1],
        "?place=/q": [],
        "?since=1h": [5, 4, 3, 2, 1],
        "?until=2001-01-01": [],
        "?before=3": [2, 1],
        "?after=3": [5, 4],
    }.items():
        shown = page.get(f"/stops{asked}")
        assert (shown.status, numbers(shown)) == (200, expected), asked
        data = page.get(f"/stops.json{asked}").json
        assert [one["id"] for one in data["stops"]] == expected, asked
    assert data["known"] == {"hosts": ["claude", "codex"], "gates": ["tests"], "places": ["/p/a"]}
    assert page.get("/stops.json").json["stops"][-1]["reports"][0]["status"] == "blocked"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("outcome=sent", "There is no outcome “sent”; there are passed, blocked"),
        ("since=soon", "since: invalid time &#39;soon&#39;; try 2d, 90m, today or 2026-11-01"),
        ("since=today&until=2020-01-01", "until is before since"),
        ("before=x", "before is the number of a stop, not “x”"),
        ("after=-1", "after is the number of a stop"),
        ("before=" + "9" * 40, "before is the number of a stop"),
        ("place=shop", "place is the whole path of a folder, not “shop”"),
        ("place=/a%00b", "place is too long, or has a character that no name has"),
        ("host=" + "x" * 5_000, "host is too long"),
        ("outcomes=blocked", "There is no filter “outcomes”; there are outcome, host"),
        ("outcome=%3Cb%3E%1B", "There is no outcome “&lt;b&gt;\\x1b”"),
    ],
)
def test_a_value_that_means_nothing_is_refused_in_a_sentence(page, asked, words):
    shown, data = page.get(f"/stops?{asked}"), page.get(f"/stops.json?{asked}")
    assert (shown.status, data.status) == (400, 400)
    assert words in shown.text
    assert data.json["error"] == "That address means nothing here"


def test_times_are_as_people_write_them():
    found = stop_filter(Query("/stops", {"since": "2d", "place": "~"}), most=3)
    assert abs(found.since - (time.time() - 172_800)) < 60
    assert found.place.startswith("/")
    assert found.most == 3
    assert stop_filter(Query("/now"), default_since="1d").since > found.since
    with pytest.raises(NotShownError, match="since: invalid time"):
        stop_filter(Query("/now", {"since": "2"}))


def test_the_form_has_what_can_be_chosen_and_keeps_what_was(page):
    filled(page)
    shown = page.get("/stops?host=codex&outcome=not_passed&place=/p&before=9").text
    form = shown[shown.index("<form") : shown.index("</form>")]
    assert '<option value="codex" selected>codex</option>' in form
    assert '<option value="claude">claude</option>' in form
    assert '<option value="not_passed" selected>NOT PASSED</option>' in form
    assert '<option value="blocked">sent back</option>' in form
    assert '<option value="tests">tests</option>' in form
    assert 'value="/p"' in form
    assert '<option value="/p/a">' in form
    assert 'name="before"' not in form  # another filter begins with its first page
    assert '<a href="/stops">clear</a>' in form
    assert '<option value="gone" selected>' in page.get("/stops?host=gone").text
    assert "clear</a>" not in page.get("/stops").text


def test_pages_follow_each_other_and_only_the_first_one_is_live(page):
    for number in range(120):
        decide(page.ledger, stop(session_id=f"s{number}"))
    seen, path = [], "/stops?outcome=blocked"
    while path:
        shown = page.get(path)
        seen.append(numbers(shown))
        assert ("hx-select-oob" in shown.text) == (len(seen) == 1)
        older = re.search(r'href="([^"]*)" rel="next"', shown.text)
        path = older and older[1].replace("&amp;", "&")
        newer = re.search(r'href="([^"]*)" rel="prev"', shown.text)
        assert bool(newer) == (len(seen) > 1)
    assert [len(part) for part in seen] == [50, 50, 20]
    assert [one for part in seen for one in part] == list(range(120, 0, -1))
    assert numbers(page.get(newer[1].replace("&amp;", "&"))) == list(range(70, 20, -1))


def test_a_search_that_goes_on_too_long_says_how_far_it_came(page, monkeypatch):
    monkeypatch.setattr("notyet.ledger.stop_search.MOST_READ", 60)
    monkeypatch.setattr("notyet.ledger.stop_search._MOST_LANES", 0)  # as for very many agents
    for number in range(100):
        decide(page.ledger, stop(session_id=f"s{number}"))
    shown = page.get("/stops?host=x")
    assert "None of these stops matches." in shown.text
    assert "as far as stop 41; the link looks further" in shown.text
    assert 'href="/stops?host=x&amp;before=41" rel="next"' in shown.text
    assert "No stop matches these filters" in page.get("/stops?host=x&before=41").text


def test_hostile_names_are_shown_as_text(page):
    answer = Block(EVIL * 1_000)
    engine = Engine([gate(EVIL, answer)], ledger=page.ledger, warn=lambda _: None)
    engine.check_sync(stop(host=EVIL, cwd=f"/{EVIL}", session_id=EVIL, agent_name=EVIL))
    shown = page.get("/stops").text
    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert" in shown
    shown = re.sub(r'value="[^"]*"', "", shown)  # which a form sends as it is
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert len(shown) < 20_000


def test_an_empty_ledger_says_how_to_begin(page):
    assert "notyet install claude" in page.get("/stops").text
    assert "No stop matches these filters" in page.get("/stops?host=x").text
