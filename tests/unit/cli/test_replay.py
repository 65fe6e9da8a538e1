"""`notyet replay`: recorded stops settled again under other gates and limits."""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from conftest import git
from hook_runs import ask, ledger_path, trust
from notyet.cli.main import main
from notyet.core.event import StopEvent
from notyet.core.gate import Command, Gate
from notyet.engine.engine import Engine
from notyet.ledger.ledger import Ledger
from replays import EVIL, GATES, capped, changed, replayable, replayed, results, stop

LIMITS = GATES[: GATES.index("[gates.lint]")]
LINT = GATES[GATES.index("[gates.lint]") : GATES.index("[gates.tests]")]
TESTS = GATES[GATES.index("[gates.tests]") :]
DOCS = '[gates.docs]\nrun = "touch ran"\n'
TIMED_OUT = "seconds = 30.1, status = 'problem', reason = 'timeout'"
MORE = """echo '{\\"decision\\": \\"block\\", \\"reason\\": \\"on\\", \\"extend\\": 6}'"""


@pytest.fixture
def project(git_project, monkeypatch):
    return replayable(git_project, monkeypatch)


def in_force(project, text):
    (project / "notyet.toml").write_text(text)
    trust(project / "notyet.toml")


def against(capsys, project, text):
    """Replay against this configuration; return what was found of each stop."""
    (project / "new.toml").write_text(text)
    return replayed(capsys, "--config", "new.toml")[0]


@pytest.mark.parametrize(
    ("failing", "changes", "result", "cause"),
    [
        # Gates that are other ones now.
        ("lint-fails", (LINT, ""), ("blocked", "unknown", ""), ""),
        ("tests-fail", (LINT, ""), ("blocked", "same", "blocked"), ""),
        ("lint-fails", (LINT + TESTS, ""), ("blocked", "differs", "skipped"), "lint is gone"),
        ("lint-fails", (LINT, LINT + DOCS), ("blocked", "same", "blocked"), ""),
        ("", (LINT, LINT + DOCS), ("passed", "unknown", ""), ""),
        ("lint-fails", ("echo lint;", "echo Lint;"), ("blocked", "unknown", ""), ""),
        ("lint-fails", ("gates.lint", "gates.style"), ("blocked", "same", "blocked"), ""),
        (
            "lint-fails",
            ("[gates.lint]", "[gates.lint]\nhint = 'x'"),
            ("blocked", "same", "blocked"),
            "",
        ),
        # Policy that is another one now.
        (
            "tests-fail",
            ("slow = true", "slow = true\nobserve = true"),
            ("blocked", "differs", "observed"),
            "tests only observes now",
        ),
        ("lint-fails", ("slow = true", "priority = 5"), ("blocked", "same", "blocked"), ""),
        ("lint-fails", ("slow = true", "priority = 0"), ("blocked", "same", "blocked"), ""),
        (
            "lint-fails",
            ("[gates.lint]", '[gates.lint]\nfor = "subagents"'),
            ("blocked", "unknown", ""),
            "",
        ),
        ("", ('when = "always"', 'when = "changed"'), ("passed", "same", "passed"), ""),
        (
            "lint-fails",
            ("max_blocks = 2", "max_blocks = 0"),
            ("blocked", "differs", "capped"),
            "the limit is 0 (max_blocks), not 2",
        ),
    ],
)  # fmt: skip
def test_a_stop_is_settled_with_its_recorded_answers(  # noqa: PLR0917  # a row of the table
    project, capsys, failing, changes, result, cause
):
    stop(project, "s1", failing)

    (line,) = replayed(capsys, "--config", changed(project, changes))[0]

    assert results([line]) == [result]
    causes = [f"{one['gate']} {one['what']}".strip() for one in line["because"]]
    assert causes[:1] == ([cause] if cause else [])
    assert bool(line["missing"]) == (result[1] == "unknown")
    assert not (project / "ran").exists()


@pytest.mark.parametrize(
    ("most", "expected", "follows"),
    [
        (5, ["same", "same", "differs"], [None, None, None]),
        (1, ["same", "differs", "hypothetical"], [None, None, 2]),
    ],
)
def test_a_limit_counts_for_the_whole_turn(project, capsys, most, expected, follows):
    capped(project)
    lines = against(capsys, project, GATES.replace("max_blocks = 2", f"max_blocks = {most}"))
    assert [line["result"] for line in lines] == expected
    assert [line["follows"] for line in lines] == follows
    different = lines[expected.index("differs")]
    assert different["because"] == [
        {"gate": "", "what": f"the limit is {most} (max_blocks), not 2"}
    ]
    # It is known too where only the last stop of the turn is asked for.
    (line,) = replayed(capsys, "3", "--config", "new.toml")[0]
    assert (line["result"], line["follows"]) == (expected[2], follows[2])


def test_a_stop_after_an_unknown_one_says_so(project, capsys):
    stop(project, "s1")
    stop(project, "s1", "lint-fails", active=True)
    lines = against(capsys, project, GATES + DOCS)
    assert [(line["result"], line["follows"]) for line in lines] == [("unknown", None), ("same", 1)]


@pytest.mark.rule("B2")
def test_a_higher_limit_that_a_gate_asked_for_counts(project, capsys):
    in_force(project, GATES.replace(LINT, f'[gates.lint]\nrun = "{MORE}"\n'))
    capped(project)
    assert results(replayed(capsys)[0]) == [("blocked", "same", "blocked")] * 3
    lower = (project / "notyet.toml").read_text().replace("max_blocks = 2", "max_blocks = 1")
    assert results(against(capsys, project, lower)) == [("blocked", "same", "blocked")] * 3


def test_a_gate_that_observed_blocks_now(project, capsys):
    in_force(project, GATES.replace("slow = true", "observe = true"))
    stop(project, "s1", "tests-fail")
    (line,) = against(capsys, project, GATES)
    assert results([line]) == [("observed", "differs", "blocked")]
    assert line["because"] == [{"gate": "tests", "what": "no longer only observes"}]


def test_a_gate_that_was_skipped_and_runs_always_now_is_unknown(project, capsys):
    in_force(project, GATES.replace('"always"', '"changed"'))
    stop(project, "s1")
    stop(project, "s1")
    assert results(replayed(capsys)[0]) == [("passed", "same", "passed")] * 2
    first, second = against(capsys, project, GATES)
    assert first["result"] == "same"
    assert second["missing"][0] == {
        "gate": "lint",
        "why": "it was skipped then, files unchanged",
    }


def test_a_stop_that_was_skipped_as_unchanged_was_gated_all_the_same(project, capsys):
    in_force(project, GATES.replace('"always"', '"changed"'))
    fields = {"hook_event_name": "SessionStart", "session_id": "s2", "cwd": str(project)}
    ask(fields | {"source": "startup"}, "--host", "claude")
    stop(project, "s2")
    assert results(replayed(capsys)[0]) == [("skipped", "same", "skipped")]
    (line,) = against(capsys, project, "")
    assert (line["could_be"], line["why"]) == (["skipped"], "no-gate")


def test_patterns_decide_whether_a_gate_applies(project, capsys):
    text = GATES.replace("slow = true", 'for = ["coder"]')
    in_force(project, text)
    fields = {"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_type": "coder"}
    stop(project, "s1", "tests-fail", **fields)
    (line,) = against(capsys, project, text.replace('"coder"', '"writer"'))
    assert results([line]) == [("blocked", "differs", "skipped")]
    what = "no longer applies: no pattern fits (writer)"
    assert line["because"] == [{"gate": "tests", "what": what}]


def test_a_broken_gate_counts_as_if_broken_says(project, capsys):
    text = GATES.replace("test ! -e tests-fail || { echo tests; exit 1; }", "no-such-tool")
    in_force(project, text.replace("slow = true", 'slow = true\nif_broken = "allow"'))
    stop(project, "s1")
    (line,) = against(capsys, project, text)
    assert results([line]) == [("failed_open", "differs", "blocked")]
    assert line["because"] == [{"gate": "tests", "what": "has if_broken = block now"}]


@pytest.mark.parametrize(
    ("recorded", "timeout", "result"),
    [
        ("seconds = 30", "10s", ("passed", "differs", "failed_open")),
        ("seconds = 30", "40s", ("passed", "same", "passed")),
        (TIMED_OUT, "30s", ("failed_open", "same", "failed_open")),
        (TIMED_OUT, "5m", ("failed_open", "unknown", "")),
    ],
)  # fmt: skip
def test_a_gate_has_the_timeout_of_now(project, capsys, recorded, timeout, result):
    stop(project, "s1")
    with closing(sqlite3.connect(ledger_path())) as db, db:
        db.execute(f"UPDATE reports SET {recorded} WHERE gate = 'tests'")  # noqa: S608  # ours
        db.execute(f"UPDATE stops SET outcome = '{result[0]}'")  # noqa: S608  # ours
    more = f'slow = true\nif_broken = "allow"\ntimeout = "{timeout}"'
    slow = GATES.replace("slow = true", more)
    assert results(against(capsys, project, slow)) == [result]


def test_background_work_counts_as_the_limits_say(project, capsys):
    working = [{"id": "b1", "type": "subagent", "status": "running"}]
    stop(project, "s1", "lint-fails", background_tasks=working)
    assert results(replayed(capsys)[0]) == [("skipped", "same", "skipped")]
    (line,) = against(
        capsys, project, GATES.replace("max_blocks = 2", "wait_for_background = false")
    )
    assert line["result"] == "unknown"
    assert line["missing"][0] == {"gate": "lint", "why": "no gate ran then"}


@pytest.mark.parametrize("after", [2, 3])
def test_a_stop_is_stuck_as_the_limits_say(project, capsys, after):
    in_force(project, GATES.replace("stuck_after = 0", "stuck_after = 2"))
    git(project, "add", ".")
    (project / ".git" / "info" / "exclude").write_text("*-fail*\nnew.toml\n")
    stop(project, "s1", "lint-fails")
    stop(project, "s1", "lint-fails", active=True)

    lines = against(capsys, project, GATES.replace("stuck_after = 0", f"stuck_after = {after}"))

    patient = ("stuck", "differs", "blocked")
    assert results(lines)[1] == (patient if after == 3 else ("stuck", "same", "stuck"))
    if after == 3:
        assert lines[1]["because"] == [{"gate": "", "what": "stuck_after is 3 now"}]


def test_it_is_unknown_whether_a_stop_is_stuck_that_was_recorded_without_its_files(project, capsys):
    stop(project, "s1", "lint-fails")
    stop(project, "s1", "lint-fails", active=True)
    lines = against(capsys, project, GATES.replace("stuck_after = 0", "stuck_after = 2"))
    assert [line["result"] for line in lines] == ["same", "unknown"]
    main(["replay", "--config", "new.toml"])
    assert "whether a file changed since the stop before" in capsys.readouterr().out


# Which stops


def test_stops_that_no_configuration_decides_are_left_out(project, tmp_path, capsys, monkeypatch):
    with monkeypatch.context() as switched:
        switched.setenv("NOTYET_DISABLE", "1")
        stop(project, "s1")
    ledger = Ledger()
    gate = Gate(name=EVIL, check=Command(script="true"))
    Engine([gate], ledger=ledger).check_sync(StopEvent(session_id="s2", cwd=str(project)))
    working = [{"id": f"b{n}" * 20, "type": "subagent", "status": "running"} for n in range(200)]
    stop(project, "s3", background_tasks=working)
    Engine([gate], ledger=ledger).check_sync(StopEvent(host="claude", session_id="s4"))
    (project / EVIL).mkdir()
    stop(project, "s5", cwd=str(project / EVIL))
    (project / EVIL).rmdir()
    ledger.begin(StopEvent(host="claude", session_id="s6", cwd=str(project)))
    ledger.close()

    lines, summary = replayed(capsys, "--all")

    assert [line["left_out"] for line in lines] == [
        "skipped: off",
        "a program used gates of its own",
        "its background tasks were too many to record",
        "it names no folder",
        f"its folder is gone: {project}/\\x1b[31mred\\x1b[0m\\u202e",
        "skipped: lost",
    ]
    assert summary["left_out"] == 6
    main(["replay"])
    shown = capsys.readouterr().out
    assert "left out: skipped: off (1), a program used gates of its own (1)" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    os.chdir(tmp_path)
    shutil.rmtree(project)
    assert replayed(capsys, "--all")[1]["left_out"] == 6


def test_options_choose_stops(project, tmp_path, capsys):
    capped(project)
    stop(project, "s2")
    for words, found in (
        (["3"], [3]),
        (["--session", "s2"], [4]),
        (["--outcome", "capped"], [3]),
        (["--since", "2d"], [1, 2, 3, 4]),
    ):
        assert [line["id"] for line in replayed(capsys, *words)[0]] == found
    assert main(["replay", "--session", "s2", "--outcome", "capped"]) == 0
    assert capsys.readouterr().out.startswith("no stops to replay: no stop here matches;")
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")
    assert replayed(capsys)[1]["stops"] == 0
    assert replayed(capsys, "--all")[1]["stops"] == 4


@pytest.mark.parametrize("more", [[], ["--json"], ["--all"]])
def test_a_session_that_is_not_there_is_no_success(project, capsys, more):
    stop(project, "s1")
    assert main(["replay", "--session", "zzz", *more]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("notyet replay: no stop of session zzz is recorded")
