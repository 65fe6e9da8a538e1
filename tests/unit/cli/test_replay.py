"""`notyet replay`: recorded stops against what is in force now, or would be."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from commands import pids_in, running, until
from conftest import git
from hook_runs import ENTRY, ask, clean_environ, ledger_path, payload, trust
from notyet.cli.main import main
from notyet.core.command import Command
from notyet.core.event import StopEvent
from notyet.core.gate import Gate
from notyet.engine import Engine
from notyet.ledger.sqlite import Ledger
from notyet.report import replay_places

GATES = """\
[limits]
max_blocks = 2
stuck_after = 0

[gates.lint]
run = "test ! -e lint-fails || { echo lint; exit 1; }"
when = "always"

[gates.tests]
run = "test ! -e tests-fail || { echo tests; exit 1; }"
when = "always"
slow = true
"""
EVIL = "\x1b[31mred\x1b[0m\u202e"


@pytest.fixture
def project(git_project, tmp_path, monkeypatch):
    """A project with two gates, each of which fails when a file is there."""
    monkeypatch.setattr("notyet.checks.orphans.adopt_orphans", lambda: False)
    monkeypatch.setattr("notyet.checks.orphans.sweep", lambda *_: 0)
    monkeypatch.chdir(git_project)
    folder = type(tmp_path)(git_project)
    (folder / "notyet.toml").write_text(GATES)
    trust(folder / "notyet.toml")
    return folder


def stop(project, session, *failing, active=False, **fields):
    """Let an agent stop, while these gates fail."""
    for name in ("lint-fails", "tests-fail"):
        if name in failing:
            (project / name).touch()
        else:
            (project / name).unlink(missing_ok=True)
    host = fields.pop("host", "claude")
    more = {"stop_hook_active": active} | fields
    return ask(payload(host, project, session_id=session, **more), "--host", host)


def capped(project, session="s1"):
    """Let an agent stop until it is let go: blocked, blocked, capped."""
    stop(project, session, "lint-fails")
    stop(project, session, "lint-fails", active=True)
    stop(project, session, "lint-fails", active=True)


def changed(project, *changes, name="new.toml"):
    """Write the configuration with changes to a file beside the one that is in force."""
    text = (project / "notyet.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (project / name).write_text(text)
    return str(project / name)


def replayed(capsys, *words):
    """Replay, and return what was found of each stop, and of all."""
    capsys.readouterr()
    code = main(["replay", "--json", *words])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    summary = lines.pop()
    assert summary["kind"] == "summary"
    assert code == (1 if summary["differs"] else 0)
    return lines, summary


def results(lines):
    return [(line["was"], line["result"], "/".join(line["could_be"])) for line in lines]


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


# -- limits that gates ask for (B2)

MORE = """echo '{\\"decision\\": \\"block\\", \\"reason\\": \\"on\\", \\"extend\\": 6}'"""


@pytest.mark.rule("B2")
def test_a_new_gate_may_ask_for_a_higher_limit(project, capsys):
    capped(project)
    first = f'[gates.first]\nrun = "{MORE}"\nwhen = "always"\n[gates.lint]'
    new = changed(project, ("[gates.lint]", first))

    lines, _ = replayed(capsys, "--config", new)

    assert results(lines) == [
        ("blocked", "same", "blocked"),
        ("blocked", "same", "blocked"),
        ("capped", "unknown", "blocked/capped"),
    ]
    assert [line["limit_missing"] for line in lines] == [False, False, True]
    why = "it might have asked for a higher limit before"
    assert lines[2]["missing"] == [{"gate": "first", "why": why}]
    trust(new)
    lines, _ = replayed(capsys, "--config", new, "--run")
    assert lines[2]["asked_now"] == ["first"]
    assert results(lines)[2] == ("capped", "differs", "blocked")


@pytest.mark.rule("B2")
def test_what_limit_was_asked_for_by_a_stop_that_is_gone_nobody_knows(project, capsys):
    capped(project)
    with closing(sqlite3.connect(ledger_path())) as db, db:
        db.execute("DELETE FROM stops WHERE id = 1")

    assert results(replayed(capsys)[0]) == [
        ("blocked", "same", "blocked"),
        ("capped", "unknown", "blocked/capped"),
    ]
    main(["replay"])
    assert "whether a gate asked for a higher limit before" in capsys.readouterr().out


@pytest.mark.rule("B2")
def test_the_limit_that_a_gate_asked_for_is_known(project, capsys):
    lint = GATES[GATES.index("[gates.lint]") : GATES.index("[gates.tests]")]
    changed(project, (lint, f'[gates.lint]\nrun = "{MORE}"\n'), name="notyet.toml")
    trust(project / "notyet.toml")
    capped(project)

    assert results(replayed(capsys)[0]) == [("blocked", "same", "blocked")] * 3
    lines, _ = replayed(capsys, "--config", changed(project, ("max_blocks = 2", "max_blocks = 1")))
    assert results(lines) == [("blocked", "same", "blocked")] * 3


# -- gates that may be spared (N1)


def test_a_gate_that_may_be_spared_now_is_not_known(project, capsys):
    stop(project, "s1")
    stop(project, "s1", "lint-fails")
    lazy = changed(project, ('when = "always"', 'when = "changed"'))

    lines, summary = replayed(capsys, "--config", lazy)

    assert results(lines)[1][1] == "unknown"
    assert {"passed", "blocked"} <= set(lines[1]["could_be"])
    assert lines[1]["missing"][0] == {
        "gate": "lint",
        "why": "it was asked then, and might be spared now",
    }
    assert summary["gates"][0]["what"] == "has when = changed now"


def test_a_gate_that_was_spared_and_is_asked_always_now_is_not_known(project, capsys):
    changed(project, ('when = "always"', 'when = "changed"'), name="notyet.toml")
    trust(project / "notyet.toml")
    stop(project, "s1")
    stop(project, "s1")

    assert results(replayed(capsys)[0]) == [("passed", "same", "passed")] * 2
    eager = changed(project, ('when = "changed"', 'when = "always"'))
    lines, _ = replayed(capsys, "--config", eager)
    assert results(lines)[0] == ("passed", "same", "passed")
    assert results(lines)[1] == ("passed", "unknown", "passed/blocked/failed_open")
    assert lines[1]["missing"][0]["why"] == "it was spared then, because nothing had changed"


def test_who_was_spared_is_not_known_where_it_might_not_have_passed_before(project, capsys):
    changed(project, ('when = "always"', 'when = "changed"'), name="notyet.toml")
    trust(project / "notyet.toml")
    stop(project, "s1")  # both pass
    stop(project, "s1", active=True)  # and are spared: in the same turn
    stop(project, "s2")  # and in another one
    unlike = changed(project, ("slow = true", "slow = true\nobserve = true"))
    lines, _ = replayed(capsys, "--config", unlike)
    assert results(lines) == [("passed", "same", "passed")] * 3
    assert not any(line["takes_passes"] for line in lines)

    # Had a new gate held the agent before them, neither would have passed.
    first = '[gates.first]\nrun = "exit 1"\nwhen = "always"\npriority = 5\n[gates.lint]'
    new = changed(project, ("[gates.lint]", first))
    lines, _ = replayed(capsys, "--config", new)
    missing = [{one["gate"]: one["why"] for one in line["missing"]} for line in lines]
    assert missing[1]["lint"] == "it was spared then, and might be asked now"
    assert "lint" not in missing[2]
    assert [line["takes_passes"] for line in lines] == [False, False, True]
    main(["replay", "--config", new])
    said = "Taken as recorded: on which files gates had passed in other turns."
    assert said in capsys.readouterr().out


# -- gates that may halt


def test_that_halting_was_not_tried_is_said(project, capsys):
    stop(project, "s1", "lint-fails")
    docs = '[gates.docs]\nrun = "true"\n[gates.lint]'
    new = changed(project, ("[gates.lint]", docs))

    lines, _ = replayed(capsys, "--config", new)

    assert results(lines) == [("blocked", "same", "blocked")]
    assert lines[0]["not_halting"] == ["docs"]
    main(["replay", "--config", new])
    said = "Not tried, because it happened at none of these stops: a halt by docs."
    assert said in capsys.readouterr().out


def test_a_gate_that_halted_may_halt_again_whatever_it_is_called_now(project, capsys):
    halt = """echo '{\\"decision\\": \\"halt\\", \\"reason\\": \\"enough\\"}'"""
    lint = GATES[GATES.index("[gates.lint]") : GATES.index("[gates.tests]")]
    end = f'[gates.end]\nrun = "{halt}"\npriority = -5\nwhen = "always"\n'
    changed(project, (lint, lint + end), name="notyet.toml")
    trust(project / "notyet.toml")
    stop(project, "s1")
    stop(project, "s2", "lint-fails")

    new = changed(project, (lint, ""), ("[gates.end]", "[gates.over]"))
    lines, _ = replayed(capsys, "--config", new)

    assert results(lines)[0] == ("halted", "same", "halted")
    assert "halted" in lines[1]["could_be"]
    assert lines[1]["not_halting"] == ["tests"]


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


def test_what_only_a_trusted_version_says_is_in_force(project, capsys):
    capped(project)
    (project / "notyet.toml").write_text(GATES.replace("max_blocks = 2", "max_blocks = 9"))

    lines, _ = replayed(capsys)
    assert {line["result"] for line in lines} == {"same"}
    assert main(["replay"]) == 0
    assert "notyet.toml changed since it was trusted" in capsys.readouterr().err
    lines, _ = replayed(capsys, "--config", "notyet.toml")
    assert results(lines)[2] == ("capped", "differs", "blocked")


def test_a_stop_that_met_an_untrusted_file_would_be_checked_now(git_project, capsys, monkeypatch):
    monkeypatch.chdir(git_project)
    with open("notyet.toml", "w") as file:
        file.write(GATES)
    ask(payload("claude", git_project))

    lines, _ = replayed(capsys)
    assert results(lines) == [("skipped", "same", "skipped")]
    trust(os.path.join(git_project, "notyet.toml"))
    lines, _ = replayed(capsys)
    assert results(lines) == [("skipped", "differs", "passed/blocked/failed_open")]
    said = "its gates were not in force then (untrusted)"
    assert lines[0]["because"] == [{"gate": "", "what": said}]


def test_stops_that_no_configuration_changes_are_left_out_and_counted(project, capsys, monkeypatch):
    with monkeypatch.context() as switched:
        switched.setenv("NOTYET_DISABLE", "1")
        stop(project, "s1")
    Engine([lambda _event: None], ledger=Ledger()).check_sync(
        StopEvent(session_id="s2", cwd=str(project))
    )

    lines, summary = replayed(capsys)

    assert [line["left_out"] for line in lines] == [
        "skipped: off",
        "a program asked gates of its own",
    ]
    assert summary["left_out"] == 2
    main(["replay"])
    out = capsys.readouterr().out
    assert "2  left out: skipped: off (1), a program asked gates of its own (1)" in out


def test_a_folder_that_is_gone_has_no_configuration(project, tmp_path, capsys):
    stop(project, "s1")
    os.chdir(tmp_path)
    shutil.rmtree(project)

    lines, _ = replayed(capsys, "--all")

    assert lines[0]["left_out"] == f"its folder is gone: {project}"


def test_a_block_that_the_host_overrode_was_a_block(project, capsys):
    stop(project, "s1", "lint-fails")
    stop(project, "s1", last_assistant_message="more")

    lines, _ = replayed(capsys)

    assert [line["recorded"] for line in lines] == ["overridden", "passed"]
    assert results(lines)[0] == ("blocked", "same", "blocked")


def test_a_record_of_an_older_version_does_not_say_what_was_asked(project, capsys):
    stop(project, "s1")
    with closing(sqlite3.connect(ledger_path())) as db, db:
        db.execute("UPDATE reports SET definition = ''")

    lines, _ = replayed(capsys)

    assert results(lines) == [("passed", "unknown", "passed/blocked/failed_open")]
    assert lines[0]["missing"][0]["why"] == "what it asked then was not recorded"


def test_that_gating_is_off_now_is_said(project, capsys, monkeypatch):
    stop(project, "s1")
    monkeypatch.setenv("NOTYET_DISABLE", "1")

    assert main(["replay"]) == 0

    assert "replayed as if it were on" in capsys.readouterr().err


def test_only_the_stops_that_are_named_are_told_of(project, capsys):
    capped(project)
    stop(project, "s2")

    assert [line["id"] for line in replayed(capsys, "3")[0]] == [3]
    assert [line["id"] for line in replayed(capsys, "--session", "s2")[0]] == [4]
    assert [line["id"] for line in replayed(capsys, "--outcome", "capped")[0]] == [3]
    assert [line["id"] for line in replayed(capsys, "--since", "2d")[0]] == [1, 2, 3, 4]
    # It is still known that the stop before it would have ended the turn.
    lower = changed(project, ("max_blocks = 2", "max_blocks = 1"))
    assert replayed(capsys, "3", "--config", lower)[0][0]["follows"] == 2


def test_stops_of_other_projects_are_told_of_when_asked_for(project, tmp_path, capsys):
    stop(project, "s1")
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")

    assert replayed(capsys)[1]["stops"] == 0
    assert replayed(capsys, "--all")[1]["stops"] == 1
    assert main(["replay"]) == 0
    assert capsys.readouterr().out.startswith("no stops to replay")


def test_a_filter_that_fits_no_stop_is_told_from_a_project_without_any(project, capsys):
    stop(project, "s1")
    for argv in (["--outcome", "capped"], ["--session", "s1", "--outcome", "capped"]):
        assert main(["replay", *argv]) == 0
        assert capsys.readouterr().out.startswith("no stops to replay: no stop here is like that;")


@pytest.mark.parametrize("more", [[], ["--json"], ["--all"]])
def test_a_session_that_is_not_there_is_no_success(project, capsys, more):
    stop(project, "s1")
    assert main(["replay", "--session", "zzz", *more]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("notyet replay: no stop of session zzz is recorded")


def test_gates_are_really_asked_only_if_somebody_says_so(project, capsys):
    stop(project, "s1")
    stop(project, "s2")
    ran = '[gates.docs]\nrun = "echo x >> ran; exit 1"\nwhen = "always"\n[gates.tests]'
    changed(project, ("[gates.tests]", ran), name="notyet.toml")

    assert replayed(capsys, "--config", "notyet.toml")[1]["unknown"] == 2
    assert not (project / "ran").exists()
    trust(project / "notyet.toml")
    lines, _ = replayed(capsys, "--run")

    assert results(lines) == [("passed", "differs", "blocked")] * 2
    assert lines[0]["because"] == [{"gate": "docs", "what": "is new"}]
    assert lines[0]["asked_now"] == ["docs"]
    assert (project / "ran").read_text() == "x\n"  # once for all stops of this place
    main(["replay", "--run"])
    said = "Asked just now, on today's files and not on those of then: docs."
    assert said in capsys.readouterr().out


def test_a_gate_is_asked_as_the_stop_would_ask_it(project, capsys):
    working = [{"id": "b1", "type": "subagent", "status": "running"}]
    stop(project, "s1", background_tasks=working)
    (project / "lint-fails").touch()
    changed(project, ("max_blocks = 2", "wait_for_background = false"), name="notyet.toml")
    trust(project / "notyet.toml")

    lines, _ = replayed(capsys, "--run")

    assert results(lines) == [("skipped", "differs", "blocked")]
    assert lines[0]["asked_now"] == ["lint", "tests"]


def test_a_gate_is_told_how_often_the_agent_was_sent_back(project, capsys):
    capped(project)
    lint = GATES[GATES.index("[gates.lint]") : GATES.index("[gates.tests]")]
    docs = '[gates.docs]\nrun = "cat > told; exit 1"\nwhen = "always"\n'
    changed(project, (lint, docs), name="notyet.toml")
    trust(project / "notyet.toml")

    lines, _ = replayed(capsys, "2", "--run")

    assert results(lines) == [("blocked", "same", "blocked")]
    assert json.loads((project / "told").read_text())["block_count"] == 1


@pytest.mark.rule("E11")
def test_inside_a_gate_nobody_is_asked(project, capsys, monkeypatch):
    stop(project, "s1")
    docs = '[gates.docs]\nrun = "touch ran"\n[gates.tests]'
    changed(project, ("[gates.tests]", docs), name="notyet.toml")
    trust(project / "notyet.toml")
    monkeypatch.setenv("NOTYET_INSIDE", "1")

    assert main(["replay", "--run"]) == 2

    said = "notyet replay: this runs inside a gate, and a gate does not ask the gates"
    assert capsys.readouterr().err.startswith(said)
    assert not (project / "ran").exists()
    assert replayed(capsys)[1]["stops"] == 1  # without it nobody is asked anyway


@pytest.mark.rule("E2")
def test_what_a_gate_leaves_behind_is_swept(project, tmp_path):
    stop(project, "s1")
    file = tmp_path / "a.pid"
    left = f"setsid sh -c 'echo $$ > {file}; sleep 60' & while ! [ -s {file} ]; do sleep 0.01; done"
    docs = f'[gates.docs]\nrun = """{left}"""\n[gates.tests]'
    changed(project, ("[gates.tests]", docs), name="notyet.toml")
    trust(project / "notyet.toml")
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(ENTRY), "replay", "--run"],
        cwd=project,
        env=clean_environ(),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert b"Asked just now" in done.stdout
    assert until(lambda: not any(map(running, pids_in(tmp_path))))


def test_nothing_of_a_file_is_run_that_nobody_trusted(project, capsys):
    stop(project, "s1")
    new = changed(project, ("[gates.tests]", '[gates.docs]\nrun = "touch ran"\n[gates.tests]'))

    assert main(["replay", "--config", new, "--run"]) == 2
    assert "is not trusted, so nothing of it is run" in capsys.readouterr().err
    trust(new)
    lines, _ = replayed(capsys, "--config", new, "--run")

    assert results(lines) == [("passed", "same", "passed")]
    assert (project / "ran").exists()  # in the project's folder, as if it were its file


def test_a_draft_leaves_no_trace(project, tmp_path, capsys):
    stop(project, "s1")
    before = sorted(os.walk(os.environ["XDG_STATE_HOME"]))
    known = (tmp_path / "new.toml").write_text(GATES + '[gates.more]\nrun = "touch ran"\n')

    assert known
    replayed(capsys, "--config", str(tmp_path / "new.toml"))

    assert sorted(os.walk(os.environ["XDG_STATE_HOME"])) == before
    stop(project, "s1")
    assert not (project / "ran").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["77"], "there is no stop 77; list them with: notyet log --all"),
        (["1", "--all"], "an ID does not go together with --all; choose one"),
        (["--config", "no.toml"], "no.toml: it cannot be read: No such file or directory"),
        (["--config", "."], ".: it is a folder, not a file"),
        (["--config", "bad.toml"], "bad.toml:2:1: `gates.x.rum` is not a known key"),
    ],
)
def test_what_cannot_be_found_out_is_said_and_exits_2(project, capsys, words, said):
    stop(project, "s1")
    (project / "bad.toml").write_text('[gates.x]\nrum = "true"\n')

    assert main(["replay", *words]) == 2

    assert said in capsys.readouterr().err


@pytest.mark.parametrize("word", ["x", "-1", "9" * 30, "٣"])
def test_a_stop_is_a_number(project, capsys, word):
    with pytest.raises(SystemExit) as ended:
        main(["replay", word])
    assert ended.value.code == 2


def test_text_of_others_cannot_reach_the_terminal(project, capsys):
    evil = Gate(name=EVIL, check=Command(script=f"echo '{EVIL}'; exit 1"))
    ledger = Ledger()
    for host in ("claude", EVIL):
        event = StopEvent(host=host, session_id=EVIL, cwd=str(project), last_message=EVIL)
        Engine([evil], ledger=ledger).check_sync(event)
    gone = StopEvent(host="claude", session_id="s2", cwd=f"{project}/{EVIL}")
    Engine([evil], ledger=ledger).check_sync(gone)
    ledger.close()

    main(["replay"])
    shown = capsys.readouterr()

    assert "is gone" in shown.out
    assert "its folder is gone" in shown.out
    assert "\x1b" not in shown.out + shown.err
    assert "\u202e" not in shown.out + shown.err
    lines, summary = replayed(capsys)
    assert summary["gates"][0]["gate"] == EVIL
    assert lines[1]["host"] == EVIL


def test_the_table_names_what_differs_and_what_nobody_knows(project, capsys):
    capped(project)
    stop(project, "s2")
    docs = '[gates.docs]\nrun = "true"\n[gates.tests]'
    new = changed(project, ("max_blocks = 2", "max_blocks = 3"), ("[gates.tests]", docs))
    capsys.readouterr()

    assert main(["replay", "--config", os.path.relpath(new)]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "4 recorded stops against new.toml",
        "     2  same",
        "     1  differ",
        "     1  cannot be known",
    ]
    assert lines[5].split() == ["STOP", "WHEN", "HOST", "WAS", "WOULD", "BE", "BECAUSE"]
    assert lines[6].endswith("capped  blocked   the limit is 3 (max_blocks), not 2")
    assert lines[9].endswith("passed  passed/blocked/failed_open  docs: it is new")
    assert lines[11:13] == [
        "GATE  STOPS  DIFFER  UNKNOWN  WHAT CHANGED",
        "docs      4       0        1  is new",
    ]


def test_who_was_gated_and_need_not_be_asked_is_not_like_one_who_is_not_gated(project, capsys):
    text = GATES.replace('"always"', '"changed"')
    (project / "notyet.toml").write_text(text)
    trust(project / "notyet.toml")
    fields = {"hook_event_name": "SessionStart", "session_id": "s2", "cwd": str(project)}
    ask(fields | {"source": "startup"}, "--host", "claude")
    ask(payload("claude", project, session_id="s2"), "--host", "claude")

    lines, _ = replayed(capsys)
    assert results(lines) == [("skipped", "same", "skipped")]
    asking = changed(project, ('"changed"', '"always"'))
    lines, _ = replayed(capsys, "--config", asking)
    assert results(lines) == [("skipped", "differs", "passed/blocked/failed_open")]
    assert lines[0]["missing"][0]["why"] == "it was spared then, because nothing had changed"
    (project / "new.toml").write_text("")
    lines, _ = replayed(capsys, "--config", "new.toml")
    assert results(lines) == [("skipped", "differs", "skipped")]
    assert lines[0]["why"] == "no-gate"
    assert {"gate": "lint", "what": "is gone"} in lines[0]["because"]


def test_too_many_unknown_answers_are_said_to_be_too_many(project, capsys):
    stop(project, "s1")
    more = "".join(f'[gates.g{n}]\nrun = "true"\npriority = {n}\n' for n in range(12))
    (project / "new.toml").write_text(GATES + more)

    lines, _ = replayed(capsys, "--config", "new.toml")

    assert (lines[0]["result"], lines[0]["too_many"]) == ("unknown", True)
    main(["replay", "--config", "new.toml"])
    assert "too many gates have no recorded answer to try them all" in capsys.readouterr().out


def test_what_follows_a_stop_that_cannot_be_known_says_so(project, capsys):
    stop(project, "s1")
    stop(project, "s1", "lint-fails", active=True)
    docs = '[gates.docs]\nrun = "true"\n[gates.tests]'
    new = changed(project, ("[gates.tests]", docs))

    lines, _ = replayed(capsys, "--config", new)

    assert [(line["result"], line["follows"]) for line in lines] == [("unknown", None), ("same", 1)]
    main(["replay", "--config", new])
    said = "Said of 2 as far as a stop before in the same turn, which cannot be known, stays"
    assert said in capsys.readouterr().out


def test_a_stop_that_is_still_being_asked_is_left_out(project, capsys):
    begun = Ledger().begin(StopEvent(host="claude", session_id="s1", cwd=str(project)))

    lines, _ = replayed(capsys)

    assert lines[0]["left_out"] == "it is still being asked"
    assert lines[0]["id"] == begun.stop


def test_a_stop_without_a_folder_has_no_configuration(capsys):
    evil = Gate(name="g", check=Command(script="true"))
    Engine([evil], ledger=Ledger()).check_sync(StopEvent(host="claude", session_id="s1"))

    lines, _ = replayed(capsys, "--all")

    assert lines[0]["left_out"] == "it names no folder"


def test_a_long_table_is_cut_and_json_is_not(project, capsys):
    stop(project, "s1")
    with closing(sqlite3.connect(ledger_path())) as db, db:
        stops = [name for _, name, *_ in db.execute("PRAGMA table_info(stops)") if name != "id"]
        reports = [name for _, name, *_ in db.execute("PRAGMA table_info(reports)")][1:]
        for number in range(2, 261):
            db.execute(
                f"INSERT INTO stops (id, {', '.join(stops)})"  # noqa: S608  # their own names
                f" SELECT {number}, {', '.join(stops)} FROM stops WHERE id = 1"
            )
            db.execute(
                f"INSERT INTO reports (stop, {', '.join(reports)})"  # noqa: S608  # as above
                f" SELECT {number}, {', '.join(reports)} FROM reports WHERE stop = 1"
            )
    (project / "new.toml").write_text("")

    lines, _ = replayed(capsys, "--config", "new.toml", "--since", "2d")
    assert len(lines) == 260
    main(["replay", "--config", "new.toml"])
    assert "and 150 before these; --json has them all" in capsys.readouterr().out


def test_configuration_is_looked_at_once_for_each_place(project, capsys, monkeypatch):
    for number in range(5):
        stop(project, f"s{number}")
    looked = []
    real = replay_places.load
    monkeypatch.setattr(
        replay_places, "load", lambda *args, **more: looked.append(args) or real(*args, **more)
    )

    assert replayed(capsys)[1]["same"] == 5

    assert len(looked) == 1


def test_in_a_folder_that_is_gone_there_is_no_project(tmp_path, monkeypatch, capsys):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    assert main(["replay"]) == 2
    assert "this folder is gone; go to another one, or use --all" in capsys.readouterr().err
    assert main(["replay", "--all"]) == 0


def test_a_ledger_that_is_none_is_said_to_be_none(project, capsys, monkeypatch):
    (project / "notes.txt").write_text("no ledger\n" * 100)
    monkeypatch.setenv("NOTYET_LEDGER", str(project / "notes.txt"))

    assert main(["replay"]) == 2
    assert "notes.txt" in capsys.readouterr().err
