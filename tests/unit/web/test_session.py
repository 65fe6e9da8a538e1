"""The screen of a session: its agents as lanes, page by page, and the task it belongs to."""

import re

import pytest

from notyet import Allow, Block, Engine
from notyet.core.task import Task
from notyet.core.verdict import skipped
from notyet.ledger.leases import Leases
from notyet.ledger.tasks import Tasks
from notyet.web import session
from supervised import first_run
from support import EVERY_SCOPE, decide, gate, stop

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"
HERE = "/session?host=claude&id=s1"


def check(page, answer=None, **fields):
    """Record a stop of session s1."""
    tests = gate("tests", answer or Allow(), scopes=EVERY_SCOPE)
    engine = Engine([tests], ledger=page.ledger, warn=lambda _: None)
    return engine.check_sync(stop(**({"host": "claude", "cwd": "/p"} | fields)))


def moments(shown):
    """Return the lane, the agent and the stop of each moment."""
    found = re.findall(r'<li class="lane-(\d)">(.*?)</li>', shown, re.DOTALL)
    return [
        (int(lane), re.search("<strong>(.*?)<", text)[1], int(re.search(r"stops/(\d+)", text)[1]))
        for lane, text in found
    ]


def test_a_conversation_goes_from_answer_to_gates_to_send_back(page):
    check(page, Block("FAILED test_a"), last_message="Done.", task="Port it.", turn_id="t1")
    check(page, last_message="Now it is.", task="Port it.", turn_id="t1")
    shown = page.get(HERE).text
    talk = shown[shown.index('id="conversation"') :]
    said = ("Port it.", "Done.", "sent back", "FAILED test_a", "Now it is.", "passed")
    places = [talk.index(words) for words in said]
    assert places == sorted(places)
    assert talk.count("Port it.") == 1
    assert "<dt>sent back</dt><dd>once</dd>" in shown
    assert 'href="/stops?place=%2Fp"' in shown
    assert "hx-select-oob" in shown


def test_very_many_subagents_hide_neither_stops_nor_send_backs(page, monkeypatch):
    monkeypatch.setattr(session, "_MOST_AGENTS", 2)
    for agent in ("a", "b", "c", "d"):
        check(page, Block("x"), scope="subagent", agent_id=agent, last_message=agent)
    shown = page.get(HERE).text
    assert [number for *_, number in moments(shown)] == [1, 2, 3, 4]
    assert "<dt>sent back</dt><dd>4 times</dd>" in shown
    assert '<a href="/stops/4">stop 4</a>' in shown.partition('id="conversation"')[0]


def test_each_agent_has_a_lane_and_time_goes_down(page):
    check(page, last_message="one")
    for number, agent in enumerate(("a", "b", "a", "c", "d")):
        sub = {"scope": "subagent", "agent_id": agent, "agent_type": f"kind {agent}"}
        check(page, last_message=str(number), **sub)
    check(page, last_message="two")
    check(page, session_id="s12")
    check(page, host="codex")
    shown = page.get(HERE).text
    assert moments(shown) == [
        (1, "main agent", 1),
        (2, "kind a", 2),
        (3, "kind b", 3),
        (2, "kind a", 4),
        (4, "kind c", 5),
        (4, "kind d", 6),
        (1, "main agent", 7),
    ]
    data = page.get(HERE.replace("session", "session.json")).json
    assert [agent["agent_id"] for agent in data["agents"]] == ["", "a", "b", "c", "d"]
    assert [past["id"] for past in data["stops"]] == [1, 2, 3, 4, 5, 6, 7]


def test_a_long_session_comes_page_by_page(page):
    for number in range(70):
        check(page, last_message=str(number))
    seen, path = [], HERE
    while path:
        shown = page.get(path).text
        assert ("hx-select-oob" in shown) == (not seen)
        seen = [number for _, _, number in moments(shown)] + seen
        older = re.search(r'href="([^"]*)" rel="prev"', shown)
        path = older and older[1].replace("&amp;", "&")
    assert seen == list(range(1, 71))
    newer = re.search(r'href="([^"]*)" rel="next"', shown)[1].replace("&amp;", "&")
    assert [number for *_, number in moments(page.get(newer).text)] == list(range(11, 41))


def test_a_stop_of_no_counted_agent_is_in_its_session(page):
    page.ledger.skip(stop(host="claude", session_id="quiet"), skipped("untrusted"))
    shown = page.get("/session?host=claude&id=quiet")
    assert shown.status == 200
    assert moments(shown.text) == [(1, "main agent", 1)]
    assert "NOT CHECKED" in shown.text


def test_very_many_stops_of_others_since_hide_nothing(page, monkeypatch):
    monkeypatch.setattr("notyet.ledger.stop_search.MOST_READ", 60)
    check(page, last_message="one")
    for number in range(100):
        event = stop(host="claude", session_id=f"quiet {number}")
        page.ledger.skip(event, skipped("untrusted"))
    assert moments(page.get(HERE).text) == [(1, "main agent", 1)]
    answer = page.get("/session?host=claude&id=quiet%201")
    assert answer.status == 200
    assert "None of the stops that were looked at is of this session" in answer.text
    assert 'rel="prev"' in answer.text


def test_a_supervised_session_leads_to_its_task(page):
    check(page, host="notyet", task_id="t1")
    owner = Leases(page.ledger.connection).enrol(1000.0)
    task = Task(id="t1", prompt="x", label="a <b>name")
    Tasks(page.ledger).start(task, first_run("t1"), owner, {}, "s1", max_depth=1, max_children=1)
    shown = page.get("/session?host=notyet&id=s1").text
    assert '<a class="item" href="/tasks/t1">a &lt;b&gt;name</a>' in shown
    assert page.get("/session.json?host=notyet&id=s1").json["tasks"] == ["t1"]


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ("", 400, "named by its host and its id"),
        ("?host=claude", 400, "named by its host and its id"),
        ("?host=claude&id=nowhere", 404, "No stop of session nowhere of claude is recorded"),
        ("?host=claude&id=s", 404, "No stop of session s of claude"),
        ("?host=codex&id=s1", 404, "No stop of session s1 of codex"),
        ("?host=claude&id=%3Cb%3E%00", 404, "session &lt;b&gt;\\x00 of claude"),
        ("?host=claude&id=s1&before=x", 400, "before is the number of a stop"),
        ("?host=claude&id=s1&outcome=passed", 400, "There is no filter “outcome”"),
    ],
)
def test_a_session_that_is_not_there_is_answered_in_words(page, asked, status, words):
    decide(page.ledger, stop(host="claude"))
    answer = page.get(f"/session{asked}")
    assert answer.status == status
    assert words in answer.text
    assert page.get(f"/session.json{asked}").status == status


def test_hostile_names_and_words_are_only_text(page):
    names = {"session_id": HOSTILE, "agent_name": HOSTILE, "cwd": f"/{HOSTILE}"}
    check(page, Block(HOSTILE * 500), last_message=HOSTILE * 500, task=HOSTILE, **names)
    where = page.get("/stops.json").json["stops"][0]["session_id"]
    assert where == HOSTILE
    link = re.search(r'href="(/session[^"]*)"', page.get("/stops").text)[1].replace("&amp;", "&")
    shown = page.get(link)
    assert shown.status == 200
    assert "<script>alert" not in shown.text
    assert "\x1b" not in shown.text
    assert "\u202e" not in shown.text
    assert len(shown.text) < 100_000
