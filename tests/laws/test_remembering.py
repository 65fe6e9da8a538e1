"""Laws of sparing: whatever is edited, passed and failed, no gate is spared without a reason (N1).

The files are real, and so is git. What must hold is said by a model that knows all that happened.
"""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from conftest import git
from gated_files import Place, statuses
from notyet import Ledger
from notyet.ledger.memory import MemoryLedger

NAMES = ("src/a", "docs/c", "bad")
SCOPES = {"all": (), "src": ("src/**",), "docs": ("docs/**", "bad")}
sessions = st.sampled_from(["s1", "s1", "s2"])
edits = st.tuples(st.just("write"), st.sampled_from(NAMES), st.sampled_from("xyz"))
steps = st.one_of(
    edits,
    edits,
    st.tuples(st.just("remove"), st.sampled_from(NAMES), st.just("")),
    st.tuples(st.just("commit"), st.just(""), st.just("")),
    st.tuples(st.just("begin"), sessions, st.sampled_from(["", "a"])),
    st.tuples(st.just("compact"), sessions, st.just("")),
    st.tuples(st.just("stop"), sessions, st.sampled_from(["", "a", "b"])),
    st.tuples(st.just("stop"), sessions, st.sampled_from(["", "a", "b"])),
)
# What chance finds rarely: a start that is told twice, one that comes late, a subagent's own.
BEGUN, WRITTEN, STOPPED = ("begin", "s1", ""), ("write", "src/a", "x"), ("stop", "s1", "")
TWICE = [BEGUN, WRITTEN, BEGUN, STOPPED]
LATE = [WRITTEN, ("compact", "s1", ""), STOPPED]
AFTER = [WRITTEN, STOPPED, ("write", "bad", "x"), STOPPED, BEGUN, STOPPED]
OWN = [BEGUN, WRITTEN, ("begin", "s1", "a"), ("stop", "s1", "a"), STOPPED, ("stop", "s1", "b")]


class Model:
    """What really happened: who began with which files, and what passed on which."""

    def __init__(self, place):
        self.place = place
        self.begun = {}
        self.passed = set()
        self.stopped = set()

    def files(self, name):
        """Return the content of what a gate depends on, HEAD included where that is all."""
        project = self.place.project
        found = {
            str(path.relative_to(project)): path.read_text()
            for path in project.rglob("*")
            if path.is_file() and ".git" not in path.parts
        }
        if name == "all":
            return frozenset(found.items())
        tops = {"src": ("src/",), "docs": ("docs/", "bad")}[name]
        return frozenset((path, text) for path, text in found.items() if path.startswith(tops))

    def now(self):
        return {name: self.files(name) for name in SCOPES}

    def start_of(self, session, agent):
        return self.begun.get((session, agent)) or self.begun.get((session, "")) or {}


def about(session, agent):
    fields = {"session_id": session}
    return fields | ({"agent_id": agent, "scope": "subagent"} if agent else {})


def obey(model, what, one, two):
    place = model.place
    if what == "write":
        place.write(one, two)
    elif what == "remove":
        (place.project / one).unlink(missing_ok=True)
    elif what == "commit":
        place.git("add", "--all")
        place.git("commit", "--quiet", "--allow-empty", "-m", "more")
    elif what == "begin":
        place.begin(source="startup", **about(one, two))
        if (one, two) not in model.stopped:  # else it began before
            model.begun.setdefault((one, two), model.now())
    elif what == "compact":
        place.begin(source="compact", **about(one, ""))
    else:
        stop(model, one, two)


def stop(model, session, agent):
    place = model.place
    now = model.now()
    fails = {"all": (place.project / "bad").exists(), "docs": (place.project / "bad").exists()}
    decision = place.stop(**about(session, agent))
    model.stopped.add((session, agent))
    for name, status in statuses(decision).items():
        if status == "remembered":
            assert (name, now[name]) in model.passed
            assert not fails.get(name)
        elif status == "unchanged":
            assert now[name] == model.start_of(session, agent).get(name)
        else:
            assert status == ("blocked" if fails.get(name) else "allowed")
            assert not fails.get(name) or decision.outcome in {"blocked", "capped", "stuck"}
        if status == "allowed":
            model.passed.add((name, now[name]))
    spared = {report.spared for report in decision.reports}
    assert (decision.outcome == "skipped") == (spared == {"unchanged"})


@pytest.mark.rule("N1")
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(TWICE)
@example(LATE)
@example(AFTER)
@example(OWN)
@given(st.lists(steps, min_size=4, max_size=12))
def test_a_gate_is_spared_only_on_files_on_which_it_passed_or_with_which_the_agent_began(history):
    with tempfile.TemporaryDirectory() as folder:
        play(Path(folder), MemoryLedger(), history)


@pytest.mark.rule("N1")
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(TWICE)
@example(LATE)
@example(AFTER)
@example(OWN)
@given(st.lists(steps, min_size=4, max_size=12))
def test_a_ledger_of_a_file_spares_no_other_gates(history):
    with tempfile.TemporaryDirectory() as folder:
        play(Path(folder), Ledger(Path(folder) / "ledger.db"), history)


def play(folder, ledger, history):
    project = folder / "project"
    project.mkdir()
    git(project, "init", "--quiet")
    place = Place(project, folder, ledger)
    place.gates = [
        place.gate(name, "true" if name == "src" else "test ! -e bad", paths=paths)
        for name, paths in SCOPES.items()
    ]
    model = Model(place)
    for step in history:
        obey(model, *step)
