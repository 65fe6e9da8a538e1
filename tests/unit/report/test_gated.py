"""The answer to "am I gated?", and what stands behind it."""

import json
import os

import pytest

from hook_runs import new_project, trust
from notyet.config.load import load
from notyet.config.setup import Setup
from notyet.core.command import Command
from notyet.core.gate import Gate, Match
from notyet.install.place import Place
from notyet.install.registered import Registration
from notyet.report.faults.fault import fault
from notyet.report.gated import answered, caps_here, gates_here, limits_here, size_of, whom
from notyet.report.hosts import HostStatus


def gate(name="lint", **fields):
    return Gate(name=name, check=Command(script="true"), **fields)


def host(name="claude", title="Claude Code", gates=(), faults=(), **fields):
    entry = Registration(
        place=Place(path="/settings", scope="user", form="json"),
        event="Stop",
        group=0,
        index=0,
        command="notyet hook",
        handler={},
    )
    known = {"registrations": (entry,), "setup": Setup(gates=tuple(gates))} | fields
    return HostStatus(host=name, title=title, is_here=True, faults=tuple(faults), **known)


CODEX = ("codex", "Codex")
UNTRUSTED = fault("config-untrusted", "Nobody trusted it.", where="/p/notyet.toml", fix="run: x")
UNAPPROVED = fault("hook-untrusted", "Nobody approved it.", host="codex", fix="approve it")


def test_gates_that_a_host_calls_are_a_yes():
    said = answered([], [host(gates=[gate(), gate("tests")])], Setup())
    assert (said.is_gated, said.fix) == (True, "")
    assert said.says == "yes: 2 gates are asked at each stop of Claude Code"


def test_one_gate_is_one_gate_and_subagents_are_named():
    both = [gate(), gate("review", match=Match(events=("subagent",)))]
    assert answered([], [host(gates=both)], Setup()).says == (
        "yes: 1 gate is asked at each stop of Claude Code, and 1 more at those of subagents"
    )
    assert answered([], [host(gates=both[1:])], Setup()).says == (
        "yes: 1 gate is asked at each stop of subagents of Claude Code"
    )


def test_gates_that_only_watch_hold_nobody():
    said = answered([], [host(gates=[gate(observe=True)])], Setup()).says
    assert said.endswith("none of them holds anybody, they only observe")


def test_of_several_hosts_those_that_do_not_gate_are_a_but():
    hosts = [host(gates=[gate()]), host(*CODEX, gates=[gate()], faults=[UNAPPROVED])]
    said = answered([], hosts, Setup())
    assert said.is_gated
    assert said.says.endswith("of Claude Code")
    assert said.but == ("not with Codex: Nobody approved it.",)


def test_a_file_of_ours_that_is_wrong_is_a_but_while_another_is_in_force():
    said = answered([UNTRUSTED], [host(gates=[gate()])], Setup(gates=(gate(),)))
    assert said.is_gated
    assert said.but == ("Nobody trusted it.",)


def test_a_switch_comes_before_everything_else():
    off = fault("switched-off", "notyet is off.", fix="run: notyet on")
    said = answered([UNTRUSTED, off], [host(gates=[gate()])], Setup(gates=(gate(),)))
    assert (said.is_gated, said.says, said.fix) == (False, "no: notyet is off.", "run: notyet on")


def test_without_gates_the_file_that_nobody_trusted_is_the_reason():
    said = answered([UNTRUSTED], [host()], Setup())
    assert said.says == "no: /p/notyet.toml: Nobody trusted it."


def test_without_a_host_that_calls_there_is_no_gate():
    nobody = HostStatus(host="claude", title="Claude Code", is_here=False)
    codex = HostStatus(host="codex", title="Codex", is_here=True)
    said = answered([], [nobody, codex], Setup(gates=(gate(),)))
    assert (said.says, said.fix) == (
        "no: nothing calls notyet here",
        "run: notyet install codex",
    )
    said = answered([], [nobody], Setup(gates=(gate(),)))
    assert said.fix == "run: notyet install claude"


def test_when_no_host_is_well_the_first_fault_is_the_reason():
    said = answered([], [host(*CODEX, gates=[gate()], faults=[UNAPPROVED])], Setup())
    assert (said.says, said.fix) == ("no: Nobody approved it.", "approve it")


def test_gates_that_are_for_another_host_are_none_for_this_one():
    said = answered([], [host()], Setup(gates=(gate(),)))
    assert said.says == "no: no gate is for Claude Code"


def test_gates_are_listed_by_stage_with_their_hosts():
    one = Setup(gates=(gate("slow", priority=-1), gate()))
    other = Setup(gates=(gate(),))
    found = gates_here({"claude": one, "codex": other})
    assert [(each.name, each.stage, each.hosts) for each in found] == [
        ("lint", 1, ("claude", "codex")),
        ("slow", 2, ("claude",)),
    ]


def test_gates_of_a_file_that_nobody_trusted_are_listed_as_that(tmp_path):
    folder = new_project(tmp_path / "p", '[gates]\nlint = "true"\n', trusted=False)
    (one,) = gates_here({"claude": load(str(folder), "claude", os.environ)})
    assert (one.name, one.trusted, one.stage, one.line) == ("lint", False, 0, 2)


def test_a_file_that_cannot_be_read_lists_nothing(tmp_path):
    folder = new_project(tmp_path / "p", '[gates]\nlint = "true"\n', trusted=False)
    setup = load(str(folder), "claude", os.environ)
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
    assert whom(gate(match=match)) == said


def sources(setup):
    return {one.name: (one.value, one.source) for one in limits_here(setup, os.environ)}


def test_every_limit_names_the_file_and_line_that_it_comes_from(tmp_path):
    own = os.path.join(os.environ["XDG_CONFIG_HOME"], "notyet")
    os.makedirs(own)
    with open(os.path.join(own, "notyet.toml"), "w") as file:
        file.write("[limits]\nmax_blocks = 9\nstuck_after = 2\n")
    folder = new_project(tmp_path / "p", "[limits]\n\nmax_blocks = 5\n")
    assert sources(load(str(folder), "claude", os.environ)) == {
        "max_blocks": (5, f"{folder}/notyet.toml:3"),
        "stuck_after": (2, f"{own}/notyet.toml:3"),
        "session_ceiling": (50, "default"),
        "wait_for_background": (True, "default"),
    }


def test_the_line_is_that_of_the_version_in_force(tmp_path):
    folder = new_project(tmp_path / "p", "[limits]\nmax_blocks = 5\n")
    (folder / "notyet.toml").write_text("# new\n\n[limits]\nmax_blocks = 7\n")
    found = sources(load(str(folder), "claude", os.environ))
    assert found["max_blocks"] == (5, f"{folder}/notyet.toml:2")


def test_a_limit_of_openclaw_s_file_names_both(tmp_path):
    folder = new_project(tmp_path / "p", "", trusted=False)
    (folder / "openclaw.json").write_text(
        '{"agents": {"defaults": {"subagents": {"maxSteerRestarts": 8}}}}'
    )
    (folder / "notyet.toml").write_text('[read]\nopenclaw = "openclaw.json"\n')
    trust(folder / "notyet.toml")
    found = sources(load(str(folder), "claude", os.environ))
    assert found["max_blocks"] == (8, f"openclaw.json ({folder}/notyet.toml:2)")


def test_openclaw_s_file_is_read_anew_for_the_user_s_own_file(tmp_path):
    own = os.path.join(os.environ["XDG_CONFIG_HOME"], "notyet")
    os.makedirs(own)
    with open(os.path.join(own, "notyet.toml"), "w") as file:
        file.write('[read]\nopenclaw = "o.json"\n')
    for number in (8, 6):
        with open(os.path.join(own, "o.json"), "w") as file:
            known = {"subagents": {"maxSteerRestarts": number}}
            json.dump({"agents": {"defaults": known}}, file)
        found = sources(load(str(tmp_path), "claude", os.environ))
        assert found["max_blocks"] == (number, f"o.json ({own}/notyet.toml:2)")


def test_a_limit_of_a_record_that_is_gone_names_its_file(tmp_path):
    setup = Setup(limits={"max_blocks": 2}, limit_files={"max_blocks": "/gone/notyet.toml"})
    assert sources(setup)["max_blocks"] == (2, "/gone/notyet.toml")


@pytest.mark.parametrize(
    ("cap", "most", "words"), [(8, 7, "9th"), (1, 1, "2nd"), (10, 9, "11th"), (21, 20, "22nd")]
)
def test_a_host_s_own_cap_is_shown_as_what_it_leaves(cap, most, words):
    (one,) = caps_here([host(cap=cap)])
    assert (one.name, one.value) == ("claude cap", most)
    assert one.source.startswith(f"Claude Code overrides the {words} block in a row")
    assert one.source.endswith("less than max_blocks") is (most < 3)


def test_a_host_without_a_cap_is_not_shown():
    assert caps_here([host(), host(setup=None, cap=8)]) == []


def test_the_size_counts_what_sqlite_keeps_beside_the_file(tmp_path):
    (tmp_path / "l").write_text("12345")
    (tmp_path / "l-wal").write_text("123")
    assert (size_of(str(tmp_path / "l")), size_of(str(tmp_path / "none"))) == (8, 0)
