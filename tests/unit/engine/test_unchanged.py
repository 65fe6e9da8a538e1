"""Gates are asked only when it matters: real git, real commands, a real ledger (N1)."""

import asyncio
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from conftest import git
from gated_files import Place, statuses
from notyet import Command, Engine, Function, Gate, Ledger, LedgerError, Limits, replace
from notyet.core.gate import Source
from notyet.engine.unchanged import files_of
from notyet.ledger.memory import MemoryLedger
from process_table import children
from support import rows, stop

pytestmark = pytest.mark.rule("N1")


@pytest.fixture(params=["file", "memory"])
def ledger(request, tmp_path):
    return Ledger(tmp_path / "ledger.db") if request.param == "file" else MemoryLedger()


@pytest.fixture
def place(git_project, tmp_path):
    return Place(git_project, tmp_path, Ledger(tmp_path / "ledger.db"))


def test_a_pass_is_remembered_until_a_file_changes(git_project, tmp_path, ledger):
    place = Place(git_project, tmp_path, ledger)
    assert (place.stop().outcome, place.asked) == ("passed", ["g"])
    again = place.stop()
    assert (again.outcome, statuses(again), place.asked) == ("passed", {"g": "remembered"}, [])
    place.write()
    assert (place.stop().outcome, place.asked) == ("passed", ["g"])
    place.git("commit", "--quiet", "-am", "two")
    assert (place.stop().outcome, place.asked) == ("passed", ["g"])
    assert (place.stop(session_id="another").outcome, place.asked) == ("passed", [])


def test_an_agent_that_only_answers_a_question_runs_no_gate(git_project, tmp_path, ledger):
    place = Place(git_project, tmp_path, ledger)
    place.write("bad")  # the gate would fail, and that is not this agent's doing
    place.begin()
    decision = place.stop()
    assert (decision.outcome, decision.why, place.asked) == ("skipped", "unchanged", [])
    assert statuses(decision) == {"g": "unchanged"}
    place.write()
    assert (place.stop().outcome, place.asked) == ("blocked", ["g"])


def test_a_failure_is_never_remembered(place):
    place.write("bad")
    for _ in range(2):
        assert (place.stop().outcome, place.asked) == ("blocked", ["g"])
    assert rows(place.ledger, "SELECT * FROM passes") == []


def test_what_passed_is_remembered_beside_what_failed(place):
    place.gates.append(place.gate("h", "false"))
    assert statuses(place.stop()) == {"g": "allowed", "h": "blocked"}
    assert statuses(place.stop()) == {"g": "remembered", "h": "blocked"}
    assert sorted(place.asked) == ["g", "h", "h"]


def test_a_changed_definition_is_asked_again(place):
    place.stop()
    place.gates = [replace(place.gates[0], timeout=5.0, observe=True)]
    assert statuses(place.stop()) == {"g": "remembered"}
    place.gates = [place.gate(then="test ! -e bad # thoroughly")]
    assert statuses(place.stop()) == {"g": "allowed"}


def test_files_as_at_the_start_are_unchanged_however_they_came_to_be_so(place):
    place.begin()
    place.write("bad")
    assert place.stop().outcome == "blocked"
    (place.project / "bad").unlink()
    assert place.stop().why == "unchanged"


def test_a_start_that_comes_after_a_stop_is_none(git_project, tmp_path, ledger):
    place = Place(git_project, tmp_path, ledger)
    place.write("bad")
    for about in ({}, {"scope": "subagent", "agent_id": "a", "agent_type": "coder"}):
        assert place.stop(**about).outcome == "blocked"
        place.begin(source="startup", **about)
        assert place.stop(**about).outcome == "blocked"


def test_a_failure_takes_back_the_pass_on_the_same_files(git_project, tmp_path, ledger):
    place = Place(git_project, tmp_path, ledger)
    unseen = tmp_path / "unseen"  # such as a package, or a service
    place.gates = [place.gate(then=f"test ! -e {unseen}")]
    event = stop(cwd=str(place.project))
    assert place.stop().outcome == "passed"
    unseen.write_text("x")
    assert statuses(place.stop()) == {"g": "remembered"}
    decision = place.engine().decide_sync(event, asked="all")
    ledger.remember(decision.reports)
    assert [place.stop().outcome for _ in range(2)] == ["blocked", "blocked"]
    unseen.unlink()
    assert [statuses(place.stop()) for _ in range(2)] == [{"g": "allowed"}, {"g": "remembered"}]


def test_a_gate_that_had_no_time_says_nothing_against_a_pass(place):
    place.gates = [place.gate(then="sleep 100")]
    decision = place.stop(within=1)
    assert [(r.answer.kind, r.failed_on) for r in decision.reports] == [("deadline", "")]


def test_a_start_in_the_middle_of_a_session_does_not_move_its_start(place):
    place.begin(source="startup")
    place.write()
    for n, source in enumerate(("compact", "resume", "startup")):
        place.begin(source=source)
        assert statuses(place.stop()) == {"g": "allowed"}
        place.write(text=f"{n}\n")
    place.write(text="one\n")
    assert place.stop().why == "unchanged"


@pytest.mark.parametrize("source", ["compact", "resume"])
def test_a_session_that_goes_on_did_not_begin_here(place, source):
    place.write("bad")
    place.begin(source=source)
    assert (place.stop().outcome, place.asked) == ("blocked", ["g"])


def test_a_session_does_not_begin_with_files_that_changed_after_its_host_began(place):
    place.write("bad")
    place.begin(since=0.0)
    place.begin(session_id="s2", since=float("inf"))
    place.begin(session_id="s3", scope="subagent", agent_id="a", since=0.0)
    assert place.stop().outcome == "blocked"
    assert place.stop(session_id="s2").why == "unchanged"
    assert place.stop(session_id="s3", scope="subagent", agent_id="a").why == "unchanged"
    place.gates = [place.gate(when="always")]
    place.begin(session_id="s4", since=0.0)  # without files to look at


def test_a_subagent_has_a_start_of_its_own_or_that_of_its_session(place):
    about = {"scope": "subagent", "agent_type": "coder", "cwd": str(place.project)}
    place.begin()
    place.write("bad")  # by the main agent
    place.begin(agent_id="own", **about)
    own = place.stop(agent_id="own", **about)
    assert (own.outcome, own.why) == ("skipped", "unchanged")
    other = place.stop(agent_id="other", **about)
    assert (other.outcome, place.asked) == ("blocked", ["g"])
    (place.project / "bad").unlink()
    assert place.stop(agent_id="other", **about).why == "unchanged"
    assert place.stop(agent_id="own", **about).outcome == "passed"


def test_a_file_that_changes_while_the_gate_looks_at_it_leaves_no_pass(place):
    place.gates = [place.gate(then="echo more >> new.txt")]
    assert (place.stop().outcome, place.asked) == ("passed", ["g"])
    assert rows(place.ledger, "SELECT * FROM passes") == []


def test_outside_of_git_a_gate_is_always_asked(tmp_path):
    (tmp_path / "bare").mkdir()
    place = Place(tmp_path / "bare", tmp_path, Ledger(tmp_path / "ledger.db"))
    place.begin()
    for _ in range(2):
        assert (place.stop().outcome, place.asked) == ("passed", ["g"])


def test_a_file_around_several_repositories_is_not_known_by_one_of_them(tmp_path):
    inner = tmp_path / "all" / "one"
    inner.mkdir(parents=True)
    git(inner, "init", "--quiet")
    place = Place(tmp_path / "all", tmp_path, Ledger(tmp_path / "ledger.db"))
    for _ in range(2):
        assert (place.stop(cwd=str(inner)).outcome, place.asked) == ("passed", ["g"])


def test_the_agents_own_repository_counts_too(place, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    place.stop(cwd=str(other))
    assert statuses(place.stop(cwd=str(other))) == {"g": "remembered"}
    (other / "new.txt").write_text("x")
    assert statuses(place.stop(cwd=str(other))) == {"g": "allowed"}
    assert statuses(place.stop(cwd=str(tmp_path))) == {"g": "allowed"}
    assert statuses(place.stop(cwd=str(tmp_path))) == {"g": "allowed"}  # nobody knows


def test_a_users_own_file_means_the_project_of_the_agent(git_project, tmp_path):
    own = tmp_path / "config"
    own.mkdir()
    place = Place(git_project, tmp_path, Ledger(tmp_path / "ledger.db"))
    place.gates = [place.gate(then="true", folder=own, paths=("*.txt",))]
    place.stop()
    place.write("other.md")
    assert statuses(place.stop()) == {"g": "remembered"}
    place.write("new.txt")
    assert statuses(place.stop()) == {"g": "allowed"}


@pytest.mark.parametrize("made", ["by the user", "in code"])
def test_paths_of_a_gate_of_no_project_begin_at_the_top_of_the_agents_repository(
    git_project, tmp_path, made
):
    place = Place(git_project, tmp_path, Ledger(tmp_path / "ledger.db"))
    place.write("src/code.txt", "good")
    own = place.gate(then="grep -q good", folder=tmp_path / "config", paths=("src/**",))
    script = f"grep -q good '{place.project}/src/code.txt'"
    own = replace(own, check=Command(script=script))
    place.gates = [own if made == "by the user" else replace(own, source=None)]
    inside = {"cwd": str(place.project / "src")}
    assert place.stop(**inside).outcome == "passed"
    assert statuses(place.stop(**inside)) == {"g": "remembered"}
    assert statuses(place.stop()) == {"g": "remembered"}
    place.write("docs/page.md")
    assert statuses(place.stop(**inside)) == {"g": "remembered"}
    place.write("src/code.txt", "broken")
    assert place.stop(**inside).outcome == "blocked"


def test_paths_narrow_what_a_gate_depends_on(place):
    place.gates = [place.gate(paths=("src/**",)), place.gate("all")]
    place.write("src/first.py")
    place.stop()
    place.write("docs/page.md")
    assert statuses(place.stop()) == {"g": "remembered", "all": "allowed"}
    place.write("src/deep/code.py")
    assert statuses(place.stop()) == {"g": "allowed", "all": "allowed"}
    place.git("add", ".")
    place.git("commit", "--quiet", "-m", "two")
    (place.project / "src/deep/code.py").write_text("again")
    assert statuses(place.stop()) == {"g": "allowed", "all": "allowed"}


def test_a_gate_that_runs_in_another_repository_depends_on_that_too(place, tmp_path):
    inner = place.project / "vendored"
    inner.mkdir()
    git(inner, "init", "--quiet")
    place.write(".gitignore", "vendored\n")
    place.gates = [replace(g, check=replace(g.check, dir=str(inner))) for g in place.gates]
    place.stop()
    assert statuses(place.stop()) == {"g": "remembered"}
    (inner / "x").write_text("x")
    assert statuses(place.stop()) == {"g": "allowed"}


def test_another_process_knows_what_this_one_remembered(place):
    place.stop()
    program = f"""
        import sys
        sys.path[:0] = {sys.path!r}
        from gated_files import Place, statuses
        from notyet import Ledger
        ledger = Ledger({place.ledger.path!r})
        place = Place({str(place.project)!r}, {str(place.marks.parent)!r}, ledger)
        print(statuses(place.stop()))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "{'g': 'remembered'}"


class Failing(MemoryLedger):
    """A ledger whose memory of passes is out of order."""

    in_memory = False

    def fail(self, *_args):
        raise LedgerError("ledger.db", "disk I/O error")

    recall = fail


def test_a_ledger_that_cannot_recall_costs_a_run_and_does_not_block(git_project, tmp_path):
    place = Place(git_project, tmp_path, Failing())
    for _ in range(2):
        assert (place.stop().outcome, place.asked) == ("passed", ["g"])
    assert place.warnings == ["ledger ledger.db: disk I/O error (so every gate runs)"] * 2


class CannotBegin(MemoryLedger):
    def begin(self, event, patience=None):
        raise LedgerError("ledger.db", "disk full")


@pytest.mark.parametrize("kind", [CannotBegin, MemoryLedger])
def test_where_no_gate_runs_git_is_ended(git_project, tmp_path, monkeypatch, kind):
    place = Place(git_project, tmp_path, kind())
    same = {"last_message": "the same", "stop_hook_active": False}
    place.write("bad")
    first = place.stop(**same)
    assert place.asked == ([] if kind is CannotBegin else ["g"])
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text("#!/bin/sh\nexec sleep 600\n")
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    before = children()
    again = place.stop(**same)
    assert (again.outcome, again.why, place.asked) == (first.outcome, first.why, [])
    assert children() <= before


def test_when_the_time_is_up_while_looking_the_agent_is_let_go(place):
    decision = place.stop(within=0.0)
    assert decision.outcome == "failed_open"
    assert rows(place.ledger, "SELECT * FROM passes") == []


def test_a_slow_gate_can_be_spared_while_a_quick_one_holds(place):
    place.gates = [
        place.gate("quick", paths=("bad", "quick.txt")),
        place.gate("slow", "true", priority=-1),
    ]
    place.write("quick.txt")
    assert statuses(place.stop()) == {"quick": "allowed", "slow": "allowed"}
    place.gates[1] = replace(place.gates[1], paths=("file.txt",))
    assert statuses(place.stop()) == {"quick": "remembered", "slow": "allowed"}
    place.write("bad")
    decision = place.stop()
    assert statuses(decision) == {"quick": "blocked", "slow": "remembered"}
    assert "Passed: slow." in decision.verdict.prompt
    place.write()
    assert statuses(place.stop()) == {"quick": "blocked", "slow": "not_asked"}


def test_an_agent_that_is_stuck_is_still_found_out(place):
    place.write("bad")
    outcomes = [place.stop(stop_hook_active=True).outcome for _ in range(4)]
    assert outcomes == ["blocked", "blocked", "stuck", "stuck"]


def test_at_the_limit_a_gate_is_still_asked_or_spared(place):
    place.engine = lambda: Engine(
        place.gates, ledger=place.ledger, limits=Limits(max_blocks=1), warn=place.warnings.append
    )
    place.stop()
    place.write("bad")
    assert place.stop(stop_hook_active=True).outcome == "blocked"
    assert place.stop(stop_hook_active=True).outcome == "capped"
    (place.project / "bad").unlink()
    decision = place.stop(stop_hook_active=True)
    assert (decision.outcome, statuses(decision)) == ("passed", {"g": "remembered"})


def test_asked_all_runs_all_gates_and_can_remember_their_passes(place):
    event = stop(cwd=str(place.project))
    for _ in range(2):
        decision = place.engine().decide_sync(event, asked="all")
        assert (statuses(decision), place.asked) == ({"g": "allowed"}, ["g"])
    place.ledger.remember(decision.reports)
    assert statuses(place.engine().decide_sync(event)) == {"g": "remembered"}
    assert statuses(asyncio.run(place.engine().decide(event))) == {"g": "remembered"}
    with pytest.raises(ValueError, match="asked must be 'needed' or 'all'"):
        place.engine().decide_sync(event, asked="some")


def test_a_function_is_asked_whatever_changed(git_project, tmp_path):
    asked = []
    place = Place(git_project, tmp_path, Ledger(tmp_path / "ledger.db"))
    place.gates = [Gate(name="f", check=Function(lambda event: asked.append(1)), when="changed")]
    place.begin()
    assert [place.stop().outcome for _ in range(2)] == ["passed", "passed"]
    assert len(asked) == 2


def test_that_files_could_not_be_looked_at_is_said_once_with_the_reason(place):
    place.gates.append(place.gate("h", paths=("file.txt",)))
    place.git("config", "filter.theirs.clean", "cat")  # which is never run, so nobody can tell
    decision = place.stop()
    (said,) = decision.warnings
    assert said == (
        f"cannot find out what changed in {place.project} (the repository names filters of its own)"
        ", so these gates run: g, h"
    )
    assert place.warnings == [said]
    (stored,) = rows(place.ledger, "SELECT warnings FROM stops")
    assert "filters of its own" in stored[0]


@pytest.mark.parametrize("cwd", ["", "/nowhere/at/all", "nul\0", "half \ud800"])
def test_gates_run_in_an_unknown_place(place, cwd):
    for _ in range(2):
        assert place.stop(cwd=cwd).outcome in {"passed", "failed_open"}
    assert rows(place.ledger, "SELECT * FROM passes") == []


def test_a_command_made_in_code_is_about_the_agents_project(git_project, tmp_path):
    marks = tmp_path / "marks"
    gate = Gate(name="c", check=Command(script=f"echo x >> {marks}"), when="changed")
    engine = Engine([gate], ledger=Ledger(tmp_path / "ledger.db"))
    for n in range(2):
        engine.check_sync(stop(cwd=git_project, last_message=f"{n}"))
    assert marks.read_text() == "x\n"
    other = replace(gate, source=Source(os.path.join(git_project, "notyet.toml"), 1))
    assert files_of(other, stop(cwd=git_project)) == files_of(gate, stop(cwd=git_project))
    assert Path(git_project).is_dir()
