"""What `notyet status` shows of gates, limits, sessions and decisions."""

import os

import pytest

from hook_runs import new_project, trust
from notyet.config.load import Setup, load
from notyet.core.gate import Command, Gate, Match
from notyet.status.overview import agents_of, caps_here, gates_here, limits_here
from notyet.status.report import HostStatus


def gate(name="lint", **fields):
    return Gate(name=name, check=Command(script="true"), **fields)


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
        "jobs": ("cores", "default"),
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
