"""The screen "Gates": figures, what they are of, and gates that never blocked."""

import pytest

from notyet import Allow, Block, Engine
from notyet.web import gates
from support import gate, stop

HOSTILE = "<script>alert(1)</script>\u202e"


def check(page, *its_gates, **fields):
    engine = Engine(its_gates, ledger=page.ledger, warn=lambda _: None)
    return engine.check_sync(stop(**{"cwd": "/p", "host": "claude", **fields}))


@pytest.fixture
def filled(page):
    """A turn that was sent back once and then passed, and a dozen stops that passed at once."""
    check(page, gate("tests", Block("x")), gate("lint", Allow()), last_message="one")
    check(page, gate("tests", Allow()), gate("lint", Allow()), last_message="two")
    for number in range(10):
        observing = gate(HOSTILE, Block("x"), observe=True)
        check(page, gate("lint", Allow()), observing, session_id=f"s{number}", cwd="/q")
    return page


def figures(page, path="/gates.json"):
    return {one["figures"]["gate"]: one for one in page.get(path).json["gates"]}


def test_each_gate_has_its_figures_and_what_they_come_to(filled):
    found = figures(filled)
    assert [*found] == ["tests", "lint", HOSTILE] or [*found] == ["lint", "tests", HOSTILE]
    tests, lint = found["tests"]["figures"], found["lint"]["figures"]
    assert (tests["asked"], tests["blocked"]) == (2, 1)
    assert (tests["sent_back"], tests["led_to_pass"]) == (1, 1)
    assert lint["asked"] == 12
    assert [name for name, one in found.items() if one["never_blocked"]] == ["lint"]
    assert found["lint"]["worth"].startswith("never blocked in the last 30 days, costs")


def test_the_screen_says_what_led_to_a_pass_and_what_to_do_about_a_quiet_gate(filled):
    text = filled.get("/gates").text
    assert "of all 12 stops in the last 30 days" in text
    assert ">1 of 1<" in text
    assert "Never blocked in the last 30 days: <strong>lint</strong>" in text
    assert 'href="/stops?gate=tests&amp;since=30d"' in text
    assert "Gates that only observe" in text
    assert "<script>alert" not in text
    assert "\u202e" not in text


def test_the_filters_of_the_address_choose_the_stops(filled):
    assert set(figures(filled, "/gates.json?place=/p")) == {"tests", "lint"}
    assert figures(filled, "/gates.json?place=/p")["lint"]["figures"]["asked"] == 2
    assert figures(filled, "/gates.json?host=codex") == {}
    text = filled.get("/gates?host=codex&since=7d").text
    assert "No gate ran in the last 7 days." in text
    assert 'href="/gates?host=codex&amp;since=1d"' in text


def test_a_block_before_the_stops_that_are_counted_is_not_forgotten(filled, monkeypatch):
    monkeypatch.setattr(gates, "_MOST", 11)
    check(filled, gate("tests", Allow()), session_id="later")
    found = figures(filled)
    assert found["tests"]["never_blocked"] is False
    assert found["lint"]["never_blocked"] is True
    text = filled.get("/gates").text
    assert "of the newest 11 stops in the last 30 days" in text
    assert 'href="/gates?most=20000">count up to 20,000</a>' in text
    assert "of all 13 stops" in filled.get("/gates?most=20000").text


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("since=soon", "invalid time"),
        ("most=7", "`most` is 20000"),
        ("place=/%00", "place is too long, or has a character that no name has"),
        ("place=shop", "place is the whole path of a folder"),
        ("gat=tests", "There is no filter “gat”"),
    ],
)
def test_a_value_that_means_nothing_is_said(page, asked, says):
    answer = page.get(f"/gates?{asked}")
    assert answer.status == 400
    assert says in answer.text
    assert page.get(f"/gates.json?{asked}").json["detail"]


def test_an_empty_ledger_says_what_to_do(page):
    assert "No gate ran in the last 30 days." in page.get("/gates").text
    assert page.get("/gates.json?since=2026-01-01").json["stops"] == 0
