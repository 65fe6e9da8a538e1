"""The screen of one stop: what was said, found and read, and what it would come to today."""

import re
from pathlib import Path

import pytest

from hook_runs import new_project
from notyet import Allow, Block, Engine, Halt
from notyet.hosts import HOSTS
from support import decide, gate, rows, stop, substop

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31mred\x1b[0m\u202eturned\n"


def check(page, *gates, **fields):
    """Record a stop whose gates gave these answers."""
    engine = Engine(
        [gate(name, answer, **more) for name, answer, more in gates],
        ledger=page.ledger,
        warn=lambda _: None,
    )
    return engine.check_sync(stop(**fields))


def test_a_stop_shows_what_was_said_found_and_read(page):
    gates = [("tests", Block("FAILED test_a"), {}), ("lint", Allow(note="fine"), {})]
    check(page, *gates, host="claude", cwd="/p", last_message="I am done.", model="opus")
    shown = page.get("/stops/1")
    assert shown.status == 200
    for words in (
        "<title>Stop 1 · notyet</title>",
        "I am done.",
        "send-back 1 of 3 (max_blocks)",
        "FAILED test_a",
        "main agent, opus",
        'href="/session?host=claude&amp;id=s1"',
        'href="/stops?place=%2Fp"',
        "What the agent read",
        '<a href="/stops" aria-current="true">Stops</a>',
    ):
        assert words in shown.text, words
    details = re.findall(r'<details class="said"( open)?>.*?<span class="gate.*?>(\w+)', shown.text)
    assert details == [(" open", "tests"), ("", "lint")]


def test_the_json_is_what_the_log_prints_with_whole_texts(page):
    check(page, ("tests", Block("x" * 5_000), {}), last_message="y" * 5_000)
    data = page.get("/stops/1.json").json
    assert data["event"]["last_message"] == "y" * 5_000
    assert data["prompt"] == "x" * 5_000
    assert data["reports"][0]["output"] == ""
    assert (data["outcome"], data["turn_stops"], data["before"], data["after"]) == (
        "blocked",
        [],
        None,
        None,
    )
    assert "replay" not in data


@pytest.mark.parametrize("number", ["0", "99", "9" * 30, "-1", "x", "1.5", "²", "<b>"])
def test_a_number_of_no_stop_is_not_found(page, number):
    decide(page.ledger, stop())
    for path in (f"/stops/{number}", f"/stops/{number}.json"):
        answer = page.get(path.replace("²", "%C2%B2").replace("<b>", "%3Cb%3E"))
        assert answer.status == 404
        assert "There is no stop" in answer.text
        assert "<b>" not in answer.text or answer.text.startswith("{")


def test_a_name_that_no_stop_has_is_refused(page):
    decide(page.ledger, stop())
    assert "There is no filter “rerun”" in page.get("/stops/1?rerun=1").text


def test_hostile_output_is_only_text(page):
    output = HOSTILE * 4_000  # about 300 KB
    check(page, (HOSTILE, Block(output), {}), host=HOSTILE, last_message=output)
    rows(page.ledger, "UPDATE reports SET output = ?, warning = ?", output, HOSTILE)
    rows(page.ledger, "UPDATE stops SET warnings = ?", '["<script>alert(3)</script>"]')
    shown = page.get("/stops/1").text
    assert "<script>alert" not in shown
    assert "<img" not in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 4_000
    assert "redturned" in shown
    assert "&lt;script&gt;alert(3)&lt;/script&gt;" in shown


def test_the_whole_output_comes_from_its_log(page):
    check(page, ("tests", Block("x"), {}))
    log = Path(page.ledger.connection.beside).parent / "logs" / "stop-1.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("every line\n")
    rows(page.ledger, "UPDATE reports SET output = 'short', log = ?", str(log))
    shown = page.get("/stops/1").text
    assert "every line" in shown
    assert f"All of it is in <code>{log}</code>" in shown
    log.unlink()
    shown = page.get("/stops/1").text
    assert ">short</pre>" in shown
    assert "was removed to make room" in shown
    assert page.get("/stops/1.json").json["reports"][0]["log_pruned"] is True


def test_a_log_that_a_shared_ledger_names_opens_no_other_file(page, tmp_path):
    check(page, ("tests", Block("x"), {}))
    secret = tmp_path / "secret"
    secret.write_text("a key of this machine\n")
    logs = Path(page.ledger.connection.beside).parent / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    page.site.ledger.connection.is_file = False
    for log in (secret, f"{logs}/../{secret.name}", f"{logs}/../../../../../../../{secret}"):
        rows(page.ledger, "UPDATE reports SET output = 'short', log = ?", str(log))
        shown = page.get("/stops/1").text
        assert "a key" not in shown
        assert "or is on another machine" in shown


def test_an_output_that_no_browser_could_draw_is_cut_in_the_middle(page):
    check(page, ("tests", Block("x"), {}))
    rows(page.ledger, "UPDATE reports SET output = ?", "a" + "b" * 500_000 + "c")
    shown = page.get("/stops/1").text
    assert len(shown) < 450_000
    assert "characters left out" in shown


def test_the_stops_of_a_turn_are_a_path_and_those_of_an_agent_are_linked(page):
    for number, answer in enumerate((Block("no"), Block("no"), Allow())):
        check(page, ("tests", answer, {}), turn_id="t1", last_message=str(number))
    check(page, ("tests", Allow(), {}), turn_id="t2", last_message="again")
    decide(page.ledger, stop(session_id="other"))
    shown = page.get("/stops/2").text
    path = re.search(r'<ol class="path">(.*?)</ol>', shown)[1]
    assert re.findall(r'href="/stops/(\d)"( aria-current="page")?', path) == [
        ("1", ""),
        ("2", ' aria-current="page"'),
        ("3", ""),
    ]
    assert re.findall(r'class="chip \w+" title="\w+">([\w ]+)<', path) == [
        "sent back",
        "sent back",
        "passed",
    ]
    assert '<a href="/stops/1" rel="prev">' in shown
    assert '<a href="/stops/3" rel="next">' in shown
    assert '<a href="/stops/4" rel="next">' in page.get("/stops/3").text
    assert "rel=" not in re.sub("<head>.*</head>", "", page.get("/stops/5").text)
    assert 'class="path"' not in page.get("/stops/5").text


def test_what_differs_between_outcomes_is_said(page):
    check(page, ("tests", Halt("enough <b>"), {}))
    shown = page.get("/stops/1").text
    assert "enough &lt;b&gt;" in shown
    assert "Its turn was ended." in shown
    decide(page.ledger, substop(ending="error", error="the model is <i>gone"), "failed_open")
    shown = page.get("/stops/2").text
    assert "subagent, coder" in shown
    assert "error the model is &lt;i&gt;gone" in shown
    assert "NOT CHECKED" in shown
    assert "Nothing: it was allowed to stop." in shown


def test_a_stop_that_is_being_checked_is_live_and_a_decided_one_is_not(page):
    begun = page.ledger.begin(stop(last_message="wait"))
    shown = page.get("/stops/1").text
    assert "being checked" in shown
    assert "The gates run now." in shown
    assert "What the agent read" not in shown
    assert 'id="stop"' in shown
    del begun
    decide(page.ledger, stop(session_id="s2"), "passed")
    assert "hx-select-oob" in shown
    assert "hx-select-oob" not in page.get("/stops/2").text


# With today's gates.


def gated(page, folder, **fields):
    """Record a stop of a host in a project, with a gate `ready`, as its hook does."""
    host = next(iter(HOSTS))
    engine = Engine([gate("ready", Block("not ready"))], ledger=page.ledger, warn=lambda _: None)
    return engine.check_sync(stop(host=host, cwd=str(folder), **fields))


def test_a_stop_is_decided_again_only_if_asked(page):
    decide(page.ledger, stop())
    shown = page.get("/stops/1").text
    assert 'href="/stops/1?replay=1#today"' in shown
    assert "would decide" not in shown


def test_a_stop_without_a_recorded_answer_is_unknown_and_nothing_is_run(serve, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    new_project(folder, '[gates]\nready = "touch ran"\n', trusted=True)
    page = serve()
    gated(page, folder)
    shown, data = page.get("/stops/1?replay=1"), page.get("/stops/1.json?replay=1").json
    assert "It is unknown what today&#39;s gates would decide" in shown.text
    assert "ready: " in shown.text
    assert "notyet replay 1 --run" in shown.text
    assert data["replay"]["result"] == "unknown"
    assert not (folder / "ran").exists()


def test_a_stop_whose_gates_are_gone_differs(serve, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    page = serve()
    gated(page, folder)
    shown = page.get("/stops/1?replay=1").text
    assert "Today&#39;s gates would decide otherwise." in shown
    assert "ready is gone" in shown


def test_a_stop_of_another_program_is_left_out(page):
    decide(page.ledger, stop(host="mine"))
    shown = page.get("/stops/1?replay=1").text
    assert "It cannot be decided again." in shown
    assert "a program used gates of its own" in shown
    data = page.get("/stops/1.json?replay=1").json
    assert (data["replay"]["result"], data["replay_notes"]) == ("left_out", [])
