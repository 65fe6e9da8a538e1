"""`notyet log`: what stops came to, as a table, as one page, as JSON and as statistics."""

import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from hook_runs import ask, gate, ledger_path, new_project, payload
from notyet import Allow, Block, Decision, Halt, Ledger, Problem, Report
from notyet.cli.log import project_of
from notyet.cli.main import main
from support import stop

HOSTILE = {
    "escapes": "\x1b]0;owned\x07\x1b[31mred\x1b[0m",
    "lines": "one\r\ntwo\u2028three",
    "surrogate": "half \ud83d",
    "huge": "x" * 1_000_000,
    "hidden": "a\u202eb\u200bc\x00d",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    folder = tmp_path / "p"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def shown(capsys, *argv):
    capsys.readouterr()
    code = main(["log", *argv])
    said = capsys.readouterr()
    return code, said.out, said.err


def decided(folder, outcome="passed", reports=(), verdict=None, why="", **fields):
    """Write down a stop as an engine does."""
    ledger = Ledger()
    event = stop(**({"host": "claude", "cwd": str(folder)} | fields))
    begun = ledger.begin(event)
    decision = Decision(
        verdict=verdict or Allow(),
        outcome=outcome,
        turn=begun.history.turn,
        count=1 if outcome == "blocked" else 0,
        limit=3,
        limit_source="max_blocks",
        reports=tuple(reports),
        why=why,
    )
    ledger.record(begun, decision)
    ledger.close()
    return begun.stop


def test_every_way_that_a_report_can_end_has_its_mark(capsys, here):
    reports = [
        Report(gate="a", answer=Halt("no"), seconds=1),
        Report(gate="b", answer=Problem("timeout", "10 s"), seconds=10),
        Report(gate="c", answer=Allow(), spared="unchanged"),
        Report(gate="d"),
        Report(gate="e", answer=Block("x"), seconds=2, observed=True),
    ]
    decided(here, "halted", reports, Halt("no"), why="a")
    line = shown(capsys)[1].splitlines()[1]
    assert "a ■ 1.0s, b ! timeout 10s, c - unchanged, d - not run, e ✗ 2.0s (observed); a" in line


def test_a_send_back_after_which_nothing_came_is_shown_as_such(capsys, here):
    decided(here, "blocked", [], Block("x"), turn_id="t1")
    assert "sent back 1/3, no stop since" in shown(capsys)[1]
    decided(here, "passed", turn_id="t2")
    out = shown(capsys)[1]
    assert "overridden  then did not come again" in out
    page = shown(capsys, "1")[1]
    assert "stop      1  overridden" in page
    assert "send-back 1 of 3: the agent was sent back and did not come again (interrupt," in page
    assert "1 overridden" in shown(capsys, "--stats")[1]


def test_stops_of_other_folders_are_shown_when_asked_for(capsys, here, tmp_path):
    decided(tmp_path / "elsewhere")
    out = shown(capsys)[1]
    assert out == f"no stop in {here} is recorded; for stops of other folders, add --all\n"
    assert len(shown(capsys, "--all")[1].splitlines()) == 2
    decided(here / "sub", last_message="2")
    assert len(shown(capsys)[1].splitlines()) == 2
    assert shown(capsys, "--host", "mux")[1] == (
        f"no stop in {here} matches these options; for stops of other folders, add --all\n"
    )
    assert shown(capsys, "--host", "mux", "--all")[1] == "no stop matches these options\n"


def test_a_project_is_where_its_file_is_else_its_repository_else_the_folder(tmp_path):
    deep = tmp_path / "repo" / "app" / "src"
    deep.mkdir(parents=True)
    assert project_of(str(deep)) == str(deep)
    (tmp_path / "repo" / ".git").mkdir()
    assert project_of(str(deep)) == str(tmp_path / "repo")
    (tmp_path / "repo" / "app" / "notyet.toml").touch()
    assert project_of(str(deep)) == str(tmp_path / "repo" / "app")


@pytest.mark.rule("N3")
def test_groups_of_outcomes_are_found(capsys, here):
    for outcome in ("passed", "capped", "overridden", "failed_open"):
        decided(here, outcome)
    for cause in ("unchanged", "untrusted"):
        decided(here, "skipped", why=cause)

    def found(*outcomes):
        argv = [word for outcome in outcomes for word in ("--outcome", outcome)]
        return [json.loads(line)["id"] for line in shown(capsys, "--json", *argv)[1].splitlines()]

    assert found("not_passed") == [2, 3]
    assert found("not_checked") == [4, 6]
    assert found("not_checked", "skipped") == [4, 5, 6]
    assert found("not_passed", "not_checked", "passed") == [1, 2, 3, 4, 6]


def test_filters_narrow_it_down(capsys, here):
    decided(here, session_id="aaa-1", agent_id="sub-9")
    decided(here, "capped", [Report(gate="t", answer=Block("x"))], session_id="bbb", why="t still")

    def found(*argv):
        return [json.loads(line)["id"] for line in shown(capsys, "--json", *argv)[1].splitlines()]

    assert found() == [1, 2]
    assert found("--session", "aaa") == [1]
    assert found("--outcome", "capped", "--outcome", "stuck") == [2]
    assert found("--gate", "t") == [2]
    assert found("--host", "claude", "-n", "1") == [2]
    assert found("-n", "all") == [1, 2]
    assert found("--since", "1h", "--until", "today") == [1, 2]
    assert found("--until", "1h") == []
    assert "AGENT" in shown(capsys)[1]
    assert "sub-9" in shown(capsys)[1]


def test_a_line_of_json_holds_a_stop_and_its_reports(capsys, here):
    report = Report(gate="t", answer=Block("do " * 5_000, "because"), exit="exit 1", output="out")
    decided(here, "blocked", [report], Block("do " * 5_000, "why"), last_message="done")
    (line,) = shown(capsys, "--json")[1].splitlines()
    known = json.loads(line)
    assert (known["id"], known["outcome"], known["followed"]) == (1, "blocked", False)
    assert len(known["prompt"]) == len(known["reports"][0]["said"]) == 2_000
    assert known["odd"] == []
    assert known["event"]["last_message"] == "done"
    assert "tools_used" not in known["event"]
    (told,) = known["reports"]
    assert (told["status"], told["reason"], told["exit"]) == ("blocked", "because", "exit 1")
    assert not {"output", "answer", "passed_on", "failed_on"} & set(told)
    known = json.loads(shown(capsys, "1", "--json")[1])
    assert known["prompt"] == "do " * 5_000
    assert (known["reports"][0]["output"], known["reports"][0]["log_pruned"]) == ("out", False)
    assert known["turn_stops"] == []


def test_one_stop_is_shown_with_everything(capsys, here):
    folder = new_project(here, gate("seq 3000; exit 3"))
    ask(payload("claude", folder, last_assistant_message="All done."))
    ask(payload("claude", folder, stop_hook_active=True, last_assistant_message="Again."))
    code, out, err = shown(capsys, "2")
    assert (code, err) == (0, "")
    page = {line[:10].strip(): line[10:] for line in out.splitlines() if line[:1].isalpha()}
    assert page["stop"] == "2  blocked (sent back 2/3, no stop since)"
    assert page["when"].startswith(time.strftime("%Y-"))
    assert ", took " in page["when"]
    assert page["limit"] == "3 send-backs, by max_blocks"
    assert (page["host"], page["agent"], page["folder"]) == ("claude", "main", str(folder))
    assert (page["session"], page["said"]) == ("s1", "Again.")
    assert page["turn"] == "1"
    assert "  before  stop 1, " in out
    assert page["gates"].split() == ["gate", "result", "time", "how"]
    assert "g     blocked" in out
    assert "exit 3" in out
    assert page["prompt"].startswith("notyet: a check failed")
    assert "\ng printed:\n  1\n  2\n  3\n" in out
    assert out.endswith("  3000\n")
    assert "  1500\n" in out  # which the agent was not told


def test_a_log_that_was_removed_is_said_and_what_is_left_is_shown(capsys, here):
    folder = new_project(here, gate("seq 9000; exit 3"))
    ask(payload("claude", folder))
    for log in (Path(ledger_path()).parent / "logs").iterdir():
        log.unlink()
    out = shown(capsys, "1")[1]
    assert "was removed to make room; this is what is left" in out
    assert "characters left out" in out
    assert out.endswith("  9000\n")
    assert json.loads(shown(capsys, "1", "--json")[1])["reports"][0]["log_pruned"] is True


def test_how_each_gate_ended_is_said_in_words(capsys, here):
    reports = [
        Report(gate="a", answer=Allow(), spared="passed"),
        Report(gate="b", answer=Allow(), spared="unchanged"),
        Report(gate="c", answer=Problem("timeout", "after 10 s"), held=True, workspace="ssh://h/p"),
        Report(gate="d", answer=Allow(note="a note"), observed=True, matched="coder", hidden=True),
    ]
    decided(here, "blocked", reports, Block("x"), agent_type="coder", model="m1", agent_id="a9",
            scope="subagent", task_id="tk1", error="it broke", ending="error",
            workspace="ssh://h/p", host_version="2.1")  # fmt: skip
    out = shown(capsys, "1")[1]
    assert "remembered  0.0s  it had passed on the same files before" in out
    assert "unchanged   0.0s  no file had changed since the agent began" in out
    assert "timeout; after 10 s; blocked the agent; on ssh://h/p" in out
    assert "only observes; coder" in out
    assert "d said (and wants it hidden):\n  a note" in out
    assert "agent     a9 (coder, m1)" in out
    assert "host      claude 2.1" in out
    for line in ("task      tk1", "error     it broke", "ending    error", "workspace ssh://h/p"):
        assert line in out


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_in_any_field_stays_text(capsys, here, kind):
    text = HOSTILE[kind]
    ledger = Ledger()
    event = stop(cwd=str(here), session_id=text, host=text, agent_id=text, agent_type=text,
                 agent_name=text, label=text, model=text, error=text, last_message=text,
                 task_id=text, host_version=text)  # fmt: skip
    begun = ledger.begin(event)
    report = Report(gate=text, answer=Block(text, text), output=text, matched=text, warning=text,
                    exit=text[:50].replace("\ud83d", ""), log="/x", tell_user=text)  # fmt: skip
    decision = Decision(
        verdict=Block(text, text), outcome="blocked", turn=1, count=1, limit=3,
        limit_source=text[:40].replace("\ud83d", ""), reports=(report,), why=text, warnings=(text,),
    )  # fmt: skip
    ledger.record(begun, decision)
    for argv in ([], ["1"], ["--stats"]):
        code, out, err = shown(capsys, *argv)
        assert (code, err) == (0, "")
        out.encode()
        assert all(line.isprintable() for line in out.split("\n"))
    assert len(shown(capsys)[1].splitlines()) == 2
    assert all(len(line) <= 120 for line in shown(capsys)[1].splitlines())
    for argv in (["--json"], ["1", "--json"], ["--stats", "--json"]):
        out = shown(capsys, *argv)[1]
        out.encode()
        assert all(json.loads(line) for line in out.splitlines())


def test_pruning_by_hand_says_what_went(capsys, here):
    for n in range(102):
        decided(here, session_id=f"s{n}")
    assert shown(capsys, "--prune")[1].startswith("nothing to remove; ")
    with closing(sqlite3.connect(ledger_path())) as db, db:
        db.execute("UPDATE stops SET begun_at = 1000 WHERE id < 3")
    code, out, err = shown(capsys, "--prune")
    assert (code, err) == (0, "")
    assert out.startswith(f"removed 2 stops; {ledger_path()} has ")
    assert len(shown(capsys, "-n", "all")[1].splitlines()) == 1 + 100


def test_a_stop_whose_asker_was_killed_is_lost_wherever_it_is_shown(capsys, here):
    code = (
        "import os; from notyet import Ledger, StopEvent\n"
        f"kept = Ledger().begin(StopEvent(session_id='s', cwd={str(here)!r}))\n"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    ledger = Ledger()
    alive = ledger.begin(stop(cwd=str(here), session_id="alive"))
    lost, asking = shown(capsys)[1].splitlines()[1:]
    assert "skipped" in lost
    assert lost.endswith("lost: the process that ran its gates is gone")
    assert asking.endswith("still running")
    assert "stop      1  skipped (lost: the process that ran" in shown(capsys, "1")[1]
    known = json.loads(shown(capsys, "1", "--json")[1])
    assert (known["outcome"], known["why"]) == ("skipped", "lost")
    assert "2 stops in" in shown(capsys, "--stats")[1]
    assert "1 skipped, 1 asking" in shown(capsys, "--stats")[1]

    def found(*outcomes):
        argv = [word for outcome in outcomes for word in ("--outcome", outcome)]
        return [json.loads(line)["id"] for line in shown(capsys, "--json", *argv)[1].splitlines()]

    assert found("skipped") == found("skipped", "passed") == found("not_checked") == [1]
    assert found("asking") == found("asking", "passed") == [2] == [alive.stop]
    assert found("asking", "skipped") == [1, 2]
    assert found("passed") == []
