"""Gates of notyet's own at real stops: the hook takes a snapshot, and the gates compare with it."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from conftest import git
from hook_runs import begin, new_project, payload, run_hook
from notyet import Engine, StartEvent, StopEvent
from notyet.git.snapshot_store import snapshots_folder

RUN = f"{sys.executable} -m unittest"
TESTS = f"[gates.tests]\nrun = {json.dumps(RUN)}\nnew_failures_only = true\n"
GUARD = '[gates.guard]\nguard = "tests"\n'
HEAD = "import unittest\n\n\nclass T(unittest.TestCase):\n"
OLD = f"{HEAD}    def test_old(self):\n        self.assertEqual(1, 2)\n"
FINE = "    def test_fine(self):\n        self.assertEqual(1, 1)\n"
BROKEN = FINE.replace("(1, 1)", "(1, 3)")


@pytest.fixture
def red(git_project):
    """A project whose tests fail before any agent comes."""
    project = Path(git_project)
    (project / "test_red.py").write_text(OLD + FINE)
    (project / ".gitignore").write_text("__pycache__/\n")
    return project


def gated(project, text):
    new_project(project, text)
    git(project, "add", ".")
    git(project, "commit", "--quiet", "--message", "more")
    return project


def stop(project, message="done", **fields):
    """Let an agent stop in a process of its own, as hosts do; return what it answers."""
    done = run_hook(
        payload("claude", project, last_assistant_message=message, **fields), "--host", "claude"
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout or "{}")


def test_failures_that_were_there_at_the_start_do_not_hold_an_agent(red):
    gated(red, TESTS)
    begin("claude", red)
    (red / "file.txt").write_text("two\n")
    answer = stop(red)
    assert "decision" not in answer
    assert "tests: 1 failure, there at the start" in answer["systemMessage"]


def test_an_agent_that_broke_something_reads_only_what_it_broke(red):
    gated(red, TESTS)
    begin("claude", red)
    (red / "test_red.py").write_text(OLD + BROKEN)
    answer = stop(red)
    assert answer["decision"] == "block"
    assert "test_fine" in answer["reason"]
    assert "test_old" not in answer["reason"]
    assert "1 new failure since your session began. The 1 that was" in answer["reason"]
    assert "1 new failure, 1 that was there at the start" in answer["systemMessage"]


def test_a_report_counts_although_a_slower_gate_ended_long_after_it(red):
    case = "<testcase name='old'><failure message='no'/></testcase>"
    junit = f"<testsuite failures='1'>{case}</testsuite>"
    (red / "report.sh").write_text(f'echo "{junit}" > __pycache__/report.xml; exit 1\n')
    (red / "__pycache__").mkdir()
    made = 'run = "sh report.sh"\nnew_failures_only = true\nreport = "__pycache__/report.xml"\n'
    gated(red, f'[gates.tests]\n{made}[gates.slow]\nrun = "sleep 3"\n')
    begin("claude", red)
    (red / "file.txt").write_text("two\n")
    answer = stop(red)
    assert "decision" not in answer, answer["reason"]
    assert "tests: 1 failure, there at the start" in answer["systemMessage"]


def test_a_release_on_old_failures_is_no_pass_that_spares_the_next_run(red):
    gated(red, TESTS)
    begin("claude", red)
    (red / "file.txt").write_text("two\n")
    assert "decision" not in stop(red)
    assert "there at the start" in stop(red, "again", prompt="more")["systemMessage"]


def test_without_a_start_every_failure_counts_and_the_agent_reads_why(red):
    gated(red, TESTS)
    answer = stop(red)
    assert answer["decision"] == "block"
    assert "test_old" in answer["reason"]
    assert "no snapshot was taken when the session began" in answer["reason"]


def test_a_start_that_was_planted_after_edits_takes_no_snapshot(red):
    gated(red, TESTS)
    assert stop(red)["decision"] == "block"  # the session is known from now on
    (red / "test_red.py").write_text(OLD + BROKEN)
    begin("claude", red)
    answer = stop(red, "again")
    assert answer["decision"] == "block"
    assert "no snapshot was taken" in answer["reason"]


def test_a_resumed_session_keeps_the_snapshot_of_its_start(red):
    gated(red, TESTS)
    begin("claude", red)
    (red / "test_red.py").write_text(OLD + BROKEN)
    begin("claude", red, source="resume")
    begin("claude", red, source="startup")
    assert "test_fine" in stop(red)["reason"]


def test_only_gates_that_compare_cost_a_snapshot(red):
    gated(red, '[gates.ok]\nrun = "true"\n')
    begin("claude", red)
    state = os.environ["XDG_STATE_HOME"] + "/notyet"
    assert not Path(snapshots_folder(state)).exists()


def test_a_removed_test_is_told_to_the_agent_until_it_declares_it(red):
    gated(red, GUARD)
    begin("claude", red)
    (red / "test_red.py").write_text(HEAD + FINE)
    answer = stop(red)
    assert answer["decision"] == "block"
    assert "test_old" in answer["reason"]
    answer = stop(red, "I removed test_old from test_red.py because nothing needs it.")
    assert "decision" not in answer
    assert "test_old" in answer["systemMessage"]


def test_the_guard_compares_with_the_start_and_not_with_the_last_commit(red):
    gated(red, GUARD)
    begin("claude", red)
    (red / "test_red.py").write_text(HEAD + FINE)
    git(red, "commit", "--quiet", "--all", "--message", "tests pass now")
    assert "test_old" in stop(red)["reason"]


def test_fixes_run_one_after_another_before_the_checks(red):
    fix = "echo {} >> order; sleep 0.1; echo {} >> order"
    text = "".join(
        f'[gates.{name}]\nrun = "test -e order"\nfix = "{fix.format(name, name)}"\n'
        for name in ("a", "b")
    )
    gated(red, '[gates.last]\nrun = "cat order"\nwhen = "always"\n' + text)
    begin("claude", red)
    (red / "file.txt").write_text("two\n")
    assert "decision" not in stop(red)
    order = (red / "order").read_text().split()
    assert order in (["a", "a", "b", "b"], ["b", "b", "a", "a"])


def test_an_agent_that_another_gate_sends_back_reads_what_a_fix_changed(red):
    lint = '[gates.lint]\nrun = "true"\nfix = "echo fixed > file.txt"\n'
    gated(red, lint + '[gates.tests]\nrun = "false"\n')
    begin("claude", red)
    (red / "file.txt").write_text("two\n")
    said = "lint: `echo fixed > file.txt` changed file.txt"
    answer = stop(red)
    assert f"{said}. Read that again before you edit it." in answer["reason"]
    assert said in answer["systemMessage"]


def test_a_command_gets_the_files_that_the_agent_changed(red):
    gated(red, "[gates.files]\nrun = \"printf '%s;' {files} >> seen; exit 1\"\n")
    (red / "before.txt").write_text("not of this agent\n")
    begin("claude", red)
    (red / "file.txt").write_text("two\n")
    (red / "a new one; rm.txt").write_text("new\n")
    assert stop(red)["decision"] == "block"
    assert (red / "seen").read_text() == "a new one; rm.txt;file.txt;"


def test_an_untrusted_kind_of_gate_does_not_run(red):
    new_project(red, GUARD, trusted=False)
    begin("claude", red)
    assert "not trusted" in stop(red).get("systemMessage", "")


def test_an_engine_takes_a_snapshot_when_its_agent_starts(red):
    gated(red, TESTS)
    engine = Engine.from_project(str(red))
    assert engine.acts_at_start

    async def work():
        about = {"host": "notyet", "session_id": "s9", "cwd": str(red)}
        await engine.start(StartEvent(scope="agent", **about))
        (red / "test_red.py").write_text(OLD + BROKEN)
        return await engine.check(StopEvent(scope="agent", **about))

    decision = asyncio.run(work())
    assert decision.outcome == "blocked"
    assert "test_fine" in decision.verdict.prompt
    assert "test_old" not in decision.verdict.prompt
