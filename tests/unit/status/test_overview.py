"""What `notyet status` shows of gates, limits, sessions and decisions."""

import os
import time

import pytest

from hook_runs import ask, new_project, payload, trust
from notyet.config.load import Setup, load
from notyet.core.gate import Command, Gate, Match
from notyet.ledger.stops import Ledger
from notyet.status.overview import agents_of, caps_here, gates_here, lately, limits_here, near
from notyet.status.report import HostStatus


def gate(name="lint", **fields):
    return Gate(name=name, check=Command(script="true"), **fields)


def test_gates_are_listed_by_stage_with_their_hosts():
    one = Setup(gates=(gate("slow", priority=-1), gate()))
    found = gates_here({"claude": one, "codex": Setup(gates=(gate(),))})
    assert [(each.name, each.stage, each.hosts) for each in found] == [
        ("lint", 1, ["claude", "codex"]),
        ("slow", 2, ["claude"]),
    ]


def test_gates_of_an_untrusted_file_are_listed_as_that(tmp_path):
    folder = new_project(tmp_path / "p", '[gates]\nlint = "true"\n', trusted=False)
    setup = load(str(folder), "claude", os.environ)
    (one,) = gates_here({"claude": setup})
    assert (one.name, one.trusted, one.stage, one.line) == ("lint", False, 0, 2)
    (folder / "notyet.toml").unlink()
    assert gates_here({"claude": setup}) == []


@pytest.mark.parametrize(
    ("match", "said"),
    [
        (Match(), "main agent"),
        (Match(events=("agent", "subagent")), "all"),
        (Match(events=("subagent",)), "subagents"),
        (Match(events=("subagent",), agents=("coder", "impl-*")), "coder, impl-*"),
        (Match(events=("subagent",), never=("Explore",)), "subagents but Explore"),
    ],
)
def test_it_is_said_for_whom_a_gate_is(match, said):
    assert agents_of(gate(match=match)) == said


def sources(setup):
    return {one["name"]: (one["value"], one["source"]) for one in limits_here(setup, os.environ)}


def test_every_limit_names_the_file_and_line_that_sets_it(tmp_path):
    own = os.path.join(os.environ["XDG_CONFIG_HOME"], "notyet")
    os.makedirs(own)
    with open(os.path.join(own, "notyet.toml"), "w") as file:
        file.write("[limits]\nmax_blocks = 9\nstuck_after = 2\n")
    folder = new_project(tmp_path / "p", "[limits]\n\nmax_blocks = 5\n")
    expected = {
        "max_blocks": (5, f"{folder}/notyet.toml:3"),
        "stuck_after": (2, f"{own}/notyet.toml:3"),
        "session_ceiling": (50, "default"),
        "wait_for_background": (True, "default"),
    }
    assert sources(load(str(folder), "claude", os.environ)) == expected
    # The trusted version is in force, so its lines count.
    (folder / "notyet.toml").write_text("# new\n\n\n\n[limits]\nmax_blocks = 7\n")
    assert sources(load(str(folder), "claude", os.environ)) == expected
    gone = Setup(limits={"max_blocks": 2}, limit_files={"max_blocks": "/gone/notyet.toml"})
    assert sources(gone)["max_blocks"] == (2, "/gone/notyet.toml")


def test_a_limit_of_openclaw_s_file_names_both(tmp_path):
    folder = new_project(tmp_path / "p", "", trusted=False)
    (folder / "openclaw.json").write_text(
        '{"agents": {"defaults": {"subagents": {"maxSteerRestarts": 8}}}}'
    )
    (folder / "notyet.toml").write_text('[read]\nopenclaw = "openclaw.json"\n')
    trust(folder / "notyet.toml")
    found = sources(load(str(folder), "claude", os.environ))
    assert found["max_blocks"] == (8, f"openclaw.json ({folder}/notyet.toml:2)")


@pytest.mark.rule("B8")
@pytest.mark.parametrize(("cap", "most"), [(8, 7), (1, 1), (3, 2)])
def test_a_host_s_own_cap_is_shown_as_what_it_leaves(cap, most):
    status = HostStatus(host="claude", title="Claude Code", is_here=True, cap=cap, setup=Setup())
    (one,) = caps_here([status])
    assert (one["name"], one["value"]) == ("claude cap", most)
    assert one["source"].endswith("less than max_blocks") is (most < 3)


def test_the_ledger_shows_sessions_and_decisions_of_this_project_only(tmp_path):
    project = new_project(tmp_path / "p", '[limits]\nmax_blocks = 2\n[gates]\nlint = "exit 1"\n')
    setups = {"claude": load(str(project), "claude", os.environ)}
    ledger = Ledger()
    assert lately(ledger, str(project), 1.0, setups, {}).size == 0
    assert not os.path.exists(ledger.path)
    ask(payload("claude", project), "--host", "claude")
    ask(payload("claude", new_project(tmp_path / "q"), session_id="s2"), "--host", "claude")
    found = lately(ledger, str(project), time.time(), setups, {"claude": 8})
    ((session,), (decision,)) = found.sessions, found.decisions
    assert [session[name] for name in ("session_id", "turn", "used", "limit")] == ["s1", 1, 1, 2]
    assert (session["source"], session["outcome"]) == ("max_blocks", "blocked")
    assert (decision["outcome"], decision["why"]) == ("blocked", "lint blocked")
    later = lately(ledger, str(project), time.time() + 13 * 3_600, setups, {})
    assert later.sessions == ()
    ledger.close()
    (tmp_path / "other.db").write_text("no ledger at all " * 100)
    broken = lately(Ledger(tmp_path / "other.db", patience=0.1), "/", 1.0, setups, {})
    assert broken.problem
    assert broken.size > 0


def test_paths_are_as_short_as_they_can_be(monkeypatch):
    monkeypatch.setenv("HOME", "/home/you")
    assert near("/p/a/notyet.toml:3", "/p/a") == "notyet.toml:3"
    assert near("/home/you/x", "/p") == "~/x"
    assert near("default", os.getcwd()) == "default"
