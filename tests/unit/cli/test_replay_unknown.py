"""What `notyet replay` cannot know: limits that gates ask for, who is spared, who halts."""

import sqlite3
from contextlib import closing

import pytest

from hook_runs import ledger_path, trust
from notyet.cli.main import main
from replays import GATES, capped, changed, replayable, replayed, results, stop


@pytest.fixture
def project(git_project, monkeypatch):
    return replayable(git_project, monkeypatch)


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
