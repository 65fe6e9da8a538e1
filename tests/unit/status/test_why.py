"""Why a stop meets a gate or not, and what the ledger says of it."""

import os

import pytest

from conftest import git
from hook_runs import ask, new_project, payload
from notyet.config.load import load
from notyet.core.event import BackgroundTask, StopEvent
from notyet.core.limits import History
from notyet.core.plan import select
from notyet.errors import LedgerError
from notyet.ledger.stops import Ledger
from notyet.status.why import explained, history_now, unchanged_now

TEXT = """\
[limits]
max_blocks = 2
[gates.lint]
run = "test ! -e bad"
[gates.always]
run = "true"
when = "always"
[gates.review]
run = "true"
for = ["cod*"]
never = ["coder-x"]
"""


@pytest.fixture
def project(tmp_path):
    folder = new_project(tmp_path / "p", TEXT)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one")
    return folder


@pytest.fixture
def ledger():
    made = Ledger()
    yield made
    made.close()


def event_in(project, **fields):
    known = {"host": "claude", "session_id": "s1", "cwd": str(project)} | fields
    return StopEvent(**known)


def why(project, ledger, **fields):
    event = event_in(project, **fields)
    setup = load(str(project), "claude", os.environ)
    spared = unchanged_now(event, select(event, setup.gates), ledger)
    return explained(event, setup, history_now(ledger, event), os.environ, spared)


def stop(project, **fields):
    return ask(payload("claude", project, **fields), "--host", "claude")


def by_name(found):
    return {gate.gate: gate for gate in found.gates}


def test_each_gate_says_why_it_applies_or_not(project, ledger):
    found = by_name(why(project, ledger))
    assert {name: (one.applies, one.because) for name, one in found.items()} == {
        "lint": (True, "it is for the main agent"),
        "always": (True, "it is for the main agent"),
        "review": (False, "it is not for the main agent"),
    }
    assert (found["lint"].file, found["lint"].line) == (f"{project}/notyet.toml", 3)


@pytest.mark.parametrize(
    ("agent", "applies", "because"),
    [
        ("coder", True, "agent_type coder fits cod*"),
        ("coder-x", False, "never: agent_type coder-x fits coder-x"),
        ("writer", False, "no pattern fits (cod*)"),
    ],
)
def test_of_a_subagent_it_says_which_name_fits_which_pattern(
    project, ledger, agent, applies, because
):
    found = by_name(why(project, ledger, scope="subagent", agent_id="a1", agent_type=agent))
    assert (found["review"].applies, found["review"].because) == (applies, because)


def test_a_gate_that_passed_on_these_files_is_spared_and_says_by_which_stop(project, ledger):
    before = by_name(why(project, ledger))["lint"]
    assert (before.asked, before.spared.because) == (True, "no pass of it is remembered")
    stop(project)
    found = by_name(why(project, ledger))
    assert not found["lint"].asked
    assert (found["lint"].spared.cause, found["lint"].spared.stop) == ("passed", 1)
    assert found["lint"].spared.at > 0
    assert (found["always"].asked, found["always"].spared.because) == (True, "it runs always")
    (project / "new").write_text("x")
    after = by_name(why(project, ledger))["lint"]
    assert (after.asked, after.spared.because) == (True, "it passed on other files")


def test_a_gate_is_spared_where_nothing_changed_since_the_agent_began(project, ledger):
    start = {"hook_event_name": "SessionStart", "source": "startup"}
    ask(payload("claude", project) | start, "--host", "claude")
    found = by_name(why(project, ledger))["lint"]
    assert (found.asked, found.spared.cause) == (False, "unchanged")


def test_without_git_nobody_can_tell_and_the_gate_is_asked(tmp_path, ledger):
    folder = new_project(tmp_path / "plain", TEXT)
    found = by_name(why(folder, ledger))["lint"]
    assert (found.asked, found.spared.because) == (
        True,
        "it is unknown whether its files changed",
    )


def test_a_ledger_that_cannot_be_read_spares_nobody(project, monkeypatch, tmp_path):
    stop(project)
    (tmp_path / "other.db").write_text("no ledger at all " * 100)
    broken = Ledger(tmp_path / "other.db", patience=0.1)
    event = event_in(project)
    setup = load(str(project), "claude", os.environ)
    spared = unchanged_now(event, select(event, setup.gates), broken)
    with pytest.raises(LedgerError, match="it is not a ledger"):
        history_now(broken, event)
    found = explained(event, setup, None, os.environ, spared)
    assert by_name(found)["lint"].asked
    assert "ledger" in by_name(found)["lint"].spared.because
    assert found.used is None


@pytest.mark.rule("B1")
def test_the_limit_says_where_it_comes_from_and_what_is_used(project, ledger):
    (project / "bad").touch()
    stop(project)
    found = why(project, ledger, stop_hook_active=True)
    assert (found.used, found.limit) == (1, 2)
    assert found.limit_source == f"max_blocks, {project}/notyet.toml:2"
    fresh = why(project, ledger, session_id="another")
    assert fresh.used == 0


def test_a_host_s_cap_is_named_as_it_is(project, ledger):
    assert why(project, ledger, host_cap=2).limit_source == "below the host's cap of 2"


def test_a_stop_that_nothing_is_asked_for_says_why(project, ledger):
    assert why(project, ledger, internal=True).skipped == "the agent is one of the host's own"
    none = why(project, ledger, scope="subagent", agent_id="a", agent_type="writer")
    assert none.skipped == "no gate applies"
    task = BackgroundTask(id="b", type="subagent", status="running")
    waits = why(project, ledger, background_tasks=(task,))
    assert waits.skipped.startswith("other agents of the session are running")


def test_an_agent_that_hands_back_is_not_asked(project):
    event = event_in(project, stop_hook_active=True, last_message="BLOCKED: which port?")
    setup = load(str(project), "claude", os.environ)
    found = explained(event, setup, History(turn=1, blocks=1), os.environ, {})
    lint = by_name(found)["lint"]
    assert (lint.applies, lint.asked) == (True, False)
    assert "hands back" in lint.because
