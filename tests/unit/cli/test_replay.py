"""`notyet replay`: recorded stops against what is in force now, or would be."""

import os
import sqlite3
from contextlib import closing

import pytest

from conftest import git
from hook_runs import ledger_path, trust
from replays import GATES, capped, changed, replayable, replayed, results, stop


@pytest.fixture
def project(git_project, monkeypatch):
    return replayable(git_project, monkeypatch)


def test_nothing_differs_where_nothing_changed(project, capsys):
    capped(project)
    stop(project, "s2")
    stop(project, "s3", "tests-fail")

    lines, summary = replayed(capsys)

    assert [line["was"] for line in lines] == ["blocked", "blocked", "capped", "passed", "blocked"]
    assert {line["result"] for line in lines} == {"same"}
    assert summary["stops"] == summary["same"] == 5
    assert summary["gates"] == []


def test_a_higher_limit_sends_back_who_was_let_go(project, capsys):
    capped(project)

    lines, _ = replayed(capsys, "--config", changed(project, ("max_blocks = 2", "max_blocks = 5")))

    assert results(lines)[:2] == [("blocked", "same", "blocked")] * 2
    assert results(lines)[2] == ("capped", "differs", "blocked")
    assert lines[2]["because"] == [
        {"gate": "", "what": "the limit is 5 (max_blocks), not 2"},
    ]


def test_a_lower_limit_lets_go_and_what_follows_is_hypothetical(project, capsys):
    capped(project)

    lines, _ = replayed(capsys, "--config", changed(project, ("max_blocks = 2", "max_blocks = 1")))

    assert [line["result"] for line in lines] == ["same", "differs", "hypothetical"]
    assert (lines[1]["was"], lines[1]["could_be"]) == ("blocked", ["capped"])
    assert lines[2]["follows"] == lines[1]["id"]
    assert lines[2]["could_be"] == []


def test_of_a_turn_after_one_that_differs_is_told_what_it_would_be(project, capsys):
    stop(project, "s1", "lint-fails")
    stop(project, "s1", last_assistant_message="more")  # a new turn

    lines, _ = replayed(capsys, "--config", changed(project, ("max_blocks = 2", "max_blocks = 0")))

    assert results(lines) == [("blocked", "differs", "capped"), ("passed", "same", "passed")]


def test_a_gate_that_is_gone_no_longer_holds_and_those_behind_it_were_not_asked(project, capsys):
    stop(project, "s1", "lint-fails")
    stop(project, "s2", "tests-fail")
    stop(project, "s3")
    (project / "new.toml").write_text(GATES[: GATES.index("[gates.lint]")])
    (project / "only.toml").write_text(
        GATES[: GATES.index("[gates.lint]")] + GATES[GATES.index("[gates.tests]") :]
    )

    lines, summary = replayed(capsys, "--config", "only.toml")
    assert results(lines)[0] == ("blocked", "unknown", "passed/blocked/failed_open")
    assert lines[0]["missing"] == [{"gate": "tests", "why": "it was not asked then"}]
    assert results(lines)[1:] == [("blocked", "same", "blocked"), ("passed", "same", "passed")]
    assert summary["gates"] == [
        {"gate": "lint", "what": "is gone", "stops": 3, "differ": 0, "unknown": 0}
    ]

    lines, _ = replayed(capsys, "--config", "new.toml")
    assert [result[1:] for result in results(lines)] == [("differs", "skipped")] * 3
    assert {line["why"] for line in lines} == {"no-gate"}
    assert lines[0]["because"] == [{"gate": "lint", "what": "is gone"}]


def test_a_new_gate_matters_only_where_nothing_else_held_the_agent(project, capsys):
    stop(project, "s1", "lint-fails")
    stop(project, "s2")
    new = changed(project, ("[gates.tests]", '[gates.docs]\nrun = "touch ran"\n[gates.tests]'))

    lines, summary = replayed(capsys, "--config", new)

    assert results(lines) == [
        ("blocked", "same", "blocked"),
        ("passed", "unknown", "passed/blocked/failed_open"),
    ]
    assert lines[1]["missing"] == [{"gate": "docs", "why": "it is new"}]
    assert summary["gates"] == [
        {"gate": "docs", "what": "is new", "stops": 2, "differ": 0, "unknown": 1}
    ]
    assert not (project / "ran").exists()


def test_a_new_gate_that_only_observes_cannot_change_the_verdict(project, capsys):
    stop(project, "s2")
    gate = '[gates.docs]\nrun = "true"\nobserve = true\nwhen = "always"\n[gates.tests]'

    lines, _ = replayed(capsys, "--config", changed(project, ("[gates.tests]", gate)))

    assert results(lines) == [("passed", "unknown", "passed/observed")]


def test_a_gate_that_only_observes_now_lets_go_whom_it_held(project, capsys):
    stop(project, "s1", "tests-fail")
    observing = changed(project, ("slow = true", "slow = true\nobserve = true"))

    lines, summary = replayed(capsys, "--config", observing)

    assert results(lines) == [("blocked", "differs", "observed")]
    assert lines[0]["because"] == [{"gate": "tests", "what": "only observes now"}]
    assert summary["gates"][0]["differ"] == 1


def test_a_gate_that_observed_holds_now(project, capsys):
    new = changed(project, ("slow = true", "observe = true"), name="notyet.toml")
    trust(new)
    stop(project, "s1", "tests-fail")

    lines, _ = replayed(capsys, "--config", changed(project, ("observe = true", "")))

    assert results(lines) == [("observed", "differs", "blocked")]
    assert lines[0]["because"] == [{"gate": "tests", "what": "does more than observe now"}]


def test_a_changed_command_is_another_question(project, capsys):
    stop(project, "s1", "lint-fails")

    lines, _ = replayed(capsys, "--config", changed(project, ("echo lint;", "echo Lint;")))

    assert lines[0]["result"] == "unknown"
    assert {"gate": "lint", "why": "it asks something else now"} in lines[0]["missing"]


def test_another_name_for_the_same_question_changes_nothing(project, capsys):
    stop(project, "s1", "lint-fails")

    lines, summary = replayed(capsys, "--config", changed(project, ("gates.lint", "gates.style")))

    assert results(lines) == [("blocked", "same", "blocked")]
    assert summary["gates"] == []


def test_another_name_is_no_cause_of_a_difference(project, capsys):
    capped(project)
    new = changed(project, ("[gates.lint]", "[gates.style]"), ("max_blocks = 2", "max_blocks = 3"))
    lines, summary = replayed(capsys, "--config", new)
    assert lines[2]["because"] == [{"gate": "", "what": "the limit is 3 (max_blocks), not 2"}]
    assert summary["gates"] == []

    watching = changed(
        project, ("[gates.lint]", "[gates.style]\nobserve = true"), name="watching.toml"
    )
    lines, summary = replayed(capsys, "--config", watching)
    assert summary["gates"][0]["gate"] == "style"
    assert summary["gates"][0]["what"] == "only observes now"


def test_a_hint_is_no_part_of_the_question(project, capsys):
    stop(project, "s1", "lint-fails")
    hinted = changed(project, ("[gates.lint]", '[gates.lint]\nhint = "Look at the log."'))

    lines, _ = replayed(capsys, "--config", hinted)

    assert results(lines) == [("blocked", "same", "blocked")]


def test_a_pattern_decides_whether_a_gate_applies(project, capsys):
    text = GATES.replace("slow = true", 'for = ["coder"]')
    (project / "notyet.toml").write_text(text)
    trust(project / "notyet.toml")
    fields = {"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_type": "coder"}
    stop(project, "s1", "tests-fail", **fields)

    lines, _ = replayed(capsys, "--config", changed(project, ('"coder"', '"writer"')))
    assert results(lines) == [("blocked", "differs", "skipped")]
    assert lines[0]["because"] == [
        {"gate": "tests", "what": "no longer applies: no pattern fits (writer)"}
    ]

    lines, _ = replayed(
        capsys, "--config", changed(project, ('for = ["coder"]', 'for = "all"\nnever = ["co*"]'))
    )
    assert lines[0]["because"][0]["what"].startswith("no longer applies: never: agent_type coder")


def test_the_order_of_stages_decides_who_is_asked(project, capsys):
    stop(project, "s1", "lint-fails", "tests-fail")
    stop(project, "s2", "lint-fails")
    first = changed(project, ("slow = true", "priority = 5"))

    lines, _ = replayed(capsys, "--config", first)

    # Whatever the tests say, which were not asked then, somebody holds the agent.
    assert results(lines) == [("blocked", "same", "blocked")] * 2
    together = changed(project, ("slow = true", "priority = 0\nobserve = true"))
    lines, _ = replayed(capsys, "--config", together)
    assert results(lines) == [("blocked", "same", "blocked")] * 2


def test_a_problem_counts_as_if_broken_says_now(project, capsys):
    missing = changed(project, ("test ! -e tests-fail || { echo tests; exit 1; }", "no-such-tool"))
    os.replace(missing, project / "notyet.toml")
    trust(project / "notyet.toml")
    stop(project, "s1")

    lines, _ = replayed(
        capsys, "--config", changed(project, ("slow = true", 'slow = true\nif_broken = "block"'))
    )

    assert results(lines) == [("failed_open", "differs", "blocked")]
    assert lines[0]["because"] == [{"gate": "tests", "what": "has if_broken = block now"}]


def test_a_gate_that_took_longer_than_it_may_now_would_be_cut_off(project, capsys):
    stop(project, "s1")
    with closing(sqlite3.connect(ledger_path())) as db, db:
        db.execute("UPDATE reports SET seconds = 30 WHERE gate = 'tests'")

    lines, total = replayed(
        capsys, "--config", changed(project, ("slow = true", 'slow = true\ntimeout = "10s"'))
    )

    assert results(lines) == [("passed", "differs", "failed_open")]
    what = "took 30 s, and has a timeout of 10 s now"
    assert lines[0]["because"] == [{"gate": "tests", "what": what}]
    assert [(one["gate"], one["what"]) for one in total["gates"]] == [("tests", what)]


def test_a_gate_that_was_cut_off_and_has_more_time_now_is_not_known(project, capsys):
    stop(project, "s1")
    with closing(sqlite3.connect(ledger_path())) as db, db:
        db.execute(
            "UPDATE reports SET seconds = 30.1, status = 'problem', reason = 'timeout'"
            " WHERE gate = 'tests'"
        )
        db.execute("UPDATE stops SET outcome = 'failed_open'")

    lines, _ = replayed(capsys)
    assert lines[0]["missing"][0]["why"] == "it ran out of time then, and has more now"
    assert lines[0]["result"] == "unknown"

    limited = changed(project, ("slow = true", 'slow = true\ntimeout = "30s"'))
    lines, _ = replayed(capsys, "--config", limited)
    assert results(lines) == [("failed_open", "same", "failed_open")]


def test_background_work_counts_as_the_limits_say(project, capsys):
    working = [{"id": "b1", "type": "subagent", "status": "running"}]
    stop(project, "s1", "lint-fails", background_tasks=working)

    lines, _ = replayed(capsys)
    assert results(lines) == [("skipped", "same", "skipped")]
    eager = changed(project, ("max_blocks = 2", "wait_for_background = false"))
    lines, _ = replayed(capsys, "--config", eager)
    # Nobody was asked, so nobody knows what they would have said; but they would have been asked.
    assert results(lines) == [("skipped", "differs", "passed/blocked/failed_open")]
    assert lines[0]["because"] == [{"gate": "", "what": "wait_for_background is false now"}]
    assert lines[0]["missing"][0]["why"] == "nobody was asked then"
    # With `when = "changed"` nobody might have had to be asked, and it is let go all the same.
    lazy = changed(
        project, ("max_blocks = 2", "wait_for_background = false"), ("always", "changed")
    )
    assert results(replayed(capsys, "--config", lazy)[0])[0][1] == "unknown"


def test_work_in_the_background_that_was_too_much_to_record_is_not_taken_for_none(project, capsys):
    working = [{"id": f"b{n}" * 20, "type": "subagent", "status": "running"} for n in range(200)]
    stop(project, "s1", background_tasks=working)

    lines, _ = replayed(capsys)

    assert lines[0]["left_out"] == "too much was running then to be recorded"


def test_who_was_stuck_would_be_sent_back_with_more_patience(project, capsys):
    text = GATES.replace("stuck_after = 0", "stuck_after = 2")
    (project / "notyet.toml").write_text(text)
    trust(project / "notyet.toml")
    git(project, "add", ".")
    (project / ".git" / "info" / "exclude").write_text("*-fail*\nnew.toml\n")
    stop(project, "s1", "lint-fails")
    stop(project, "s1", "lint-fails", active=True)

    lines, _ = replayed(capsys)
    assert results(lines) == [("blocked", "same", "blocked"), ("stuck", "same", "stuck")]
    patient = changed(project, ("stuck_after = 2", "stuck_after = 3"))
    lines, _ = replayed(capsys, "--config", patient)
    assert results(lines)[1] == ("stuck", "differs", "blocked")
    assert lines[1]["because"] == [{"gate": "", "what": "stuck_after is 3 now"}]


def test_a_gate_beside_the_one_that_failed_alike_does_not_hide_that(project, capsys):
    text = GATES.replace("stuck_after = 0", "stuck_after = 2").replace("slow = true", "")
    (project / "notyet.toml").write_text(text)
    trust(project / "notyet.toml")
    (project / ".git" / "info" / "exclude").write_text("*-fail*\n*.toml\n")
    stop(project, "s1", "lint-fails", "tests-fail")
    stop(project, "s1", "lint-fails", "tests-fail", active=True)

    observing = changed(project, ("[gates.tests]", "[gates.tests]\nobserve = true"))
    lines, _ = replayed(capsys, "--config", observing)

    assert results(lines) == [("blocked", "same", "blocked"), ("stuck", "same", "stuck")]
