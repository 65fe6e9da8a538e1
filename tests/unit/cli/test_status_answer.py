"""The first line of `notyet status` says only what is known, and the exit code says the same."""

import pytest

from hook_runs import trust
from planted_programs import each_stop
from status_world import GATES, World

REVIEW = '[gates.review]\nrun = "true"\nfor = ["coder"]\n'


@pytest.fixture
def world(tmp_path, monkeypatch, capsys):
    return World("claude", tmp_path, monkeypatch, capsys)


def write(world, text):
    (world.project / "notyet.toml").write_text(text)
    trust(world.project / "notyet.toml")


def told(world):
    """The exit code, what a program reads, and the lines for people."""
    code, said = world.status()
    shown, text = world.shown()
    assert code == shown == (0 if said["ok"] else 1)
    assert said["gated"] is (said["answer"]["state"] == "yes")
    return code, said, [" ".join(line.split()) for line in text.splitlines()]


@pytest.mark.parametrize("line", ["false && {}", "if false; then {}; fi"])
def test_a_line_that_may_never_come_to_us_is_perhaps(world, line):
    each_stop(world, line.format(f"{world.notyet} hook --host claude --timeout 1800"))
    code, said, lines = told(world)
    assert (code, said["answer"]["state"]) == (1, "perhaps")
    assert lines[0] == (
        "perhaps: 2 gates are for the stops of Claude Code, but its command was not tried, "
        "because it also runs other commands"
    )
    assert not any(line.startswith("ok ") for line in lines)
    assert "nothing keeps gates from gating here" not in lines


def without_subagents(world):
    world.change(lambda value: value["hooks"].pop("SubagentStop"))


def test_a_stop_of_subagents_that_no_gate_is_for_need_not_be_registered(world):
    without_subagents(world)
    code, said, lines = told(world)
    assert (code, said["gated"]) == (0, True)
    assert lines[0] == "yes: 2 gates are asked at each stop of Claude Code"
    assert "ok Claude Code calls notyet at Stop" in lines


def test_one_that_a_gate_is_for_is_a_fault_beside_the_yes_of_the_main_agent(world):
    write(world, GATES + REVIEW)
    without_subagents(world)
    code, said, lines = told(world)
    assert (code, said["gated"]) == (1, True)
    assert lines[1] == (
        "but not subagents of Claude Code: Claude Code does not call notyet at SubagentStop."
    )


def test_a_matcher_is_no_every_stop(world):
    write(world, REVIEW)
    world.change(lambda value: value["hooks"]["SubagentStop"][0].update(matcher="reviewer"))
    code, _, lines = told(world)
    assert code == 1
    assert lines[0] == (
        "perhaps: 1 gate is for the stops of subagents of Claude Code, but the matcher "
        "`reviewer` keeps notyet from those it does not fit"
    )
    assert "ok Claude Code calls notyet at Stop" in lines


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[gates.a]\nrun = "true"\nobserve = true\n', "they only observe"),
        ('[limits]\nmax_blocks = 0\n[gates]\na = "true"\n', "max_blocks is 0"),
        ('[gates.a]\nrun = "true"\nendings = ["error"]\n', "an ending by error"),
    ],
)
def test_gates_that_can_hold_nobody_are_a_no(world, text, words):
    write(world, text)
    code, said, lines = told(world)
    assert (code, said["answer"]["state"], said["faults"]) == (1, "no", [])
    assert words in lines[0]
    assert lines[1].startswith("to change that: ")


def test_a_changed_file_is_named_in_the_but(world):
    (world.project / "notyet.toml").write_text(GATES + REVIEW)
    code, _, lines = told(world)
    assert code == 1
    assert lines[1].startswith(f"but {world.project}/notyet.toml: It changed since it was trusted")
