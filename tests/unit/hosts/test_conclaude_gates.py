"""Which gates a `.conclaude.yaml` makes, where they apply and in which order."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from notyet import Block
from notyet.core.gate import Command, Exit, Gate, Source, why_not
from notyet.core.plan import select
from notyet.hosts.conclaude import hooks as conclaude
from notyet.hosts.hook_answers import HookAnswer
from support import stop, substop

VECTORS = Path(__file__).parents[2] / "vectors" / "conclaude"
FILE = "/home/u/proj/.conclaude.yaml"


def vectors(name):
    return json.loads((VECTORS / name).read_text())


def gates(settings, line_of=lambda path: 1):
    return conclaude.gates(settings, FILE, line_of)


@pytest.mark.rule("E6")
def test_stop_commands_become_gates_that_are_asked_one_after_another():
    lines = {("stop", "commands", 0): 3, ("stop", "commands", 1): 5}
    first, second = gates(
        {"stop": {"commands": [{"run": "npm test"}, {"run": "a\nb", "timeout": 60}]}},
        lines.__getitem__,
    )
    assert first == Gate(
        name="stop.commands[0] npm test",
        check=Command(  # noqa: S604  # a description; nothing is run here
            script="npm test",
            shell="bash",
            dir="/home/u/proj",
            speaks="conclaude",
            options={"section": "stop"},
        ),
        step=0,
        timeout=None,
        if_broken="block",
        source=Source(FILE, 3),
    )
    assert (second.name, second.step, second.timeout) == ("stop.commands[1] a ...", 1, 60)
    assert second.source == Source(FILE, 5)
    assert select(stop(), [first, second]) == (first, second)
    assert select(substop(), [first, second]) == ()
    assert "'error'" in why_not(first, stop(ending="error"))


@pytest.mark.rule("E8")
def test_a_run_of_several_lines_is_one_script(tmp_path):
    script = 'part=one\nif [ -n "$part" ]; then\n  echo "$part"\nfi\n'
    (gate,) = gates({"stop": {"commands": [{"run": script}]}})
    done = subprocess.run([gate.check.shell, "-c", gate.check.script], capture_output=True)
    assert (done.stdout, done.returncode) == (b"one\n", 0)


@pytest.mark.rule("E7")
def test_commands_run_in_the_folder_of_their_file():
    for gate in gates({"stop": {"commands": [{"run": "x"}], "infinite": True}}):
        assert gate.check.dir == "/home/u/proj"


def test_every_option_of_a_command_reaches_the_one_who_reads_its_reply():
    entry = {
        "message": "m",
        "showCommand": False,
        "showStdout": True,
        "showStderr": True,
        "maxOutputLines": 9,
        "notifyPerCommand": True,
    }
    (gate,) = gates({"stop": {"commands": [{"run": "x", "timeout": 5} | entry]}})
    assert gate.check.options == entry | {"section": "stop"}
    (gate,) = gates({"subagentStop": {"commands": {"*": [{"run": "x", "block": True}]}}})
    assert gate.check.options == {"section": "subagentStop", "block": True}
    assert gate.if_broken == "block"


def test_infinite_sends_back_after_all_commands_whatever_happens():
    settings = {"stop": {"commands": [{"run": "true"}], "infinite": True}}
    _, last = gates(settings)
    assert (last.name, last.step) == ("stop.infinite", 1)
    for exit_ in (Exit(code=0), Exit(code=1), Exit(problem="no such program")):
        answer = conclaude.read_reply(last, exit_).answer
        assert answer == Block("continue working on the task")
    for words, told in (("On you go.", "On you go."), (" ", conclaude.CONTINUE)):
        (last,) = gates({"stop": {"infinite": True, "infiniteMessage": words}})
        assert conclaude.read_reply(last, Exit(code=0)).answer == Block(told)


def test_commands_of_stop_failure_only_watch_and_only_errors():
    (gate,) = gates({"stopFailure": {"commands": [{"run": "./tell.sh"}]}})
    assert gate.observe
    assert not why_not(gate, stop(ending="error"))
    assert not why_not(gate, substop(ending="error"))
    assert why_not(gate, stop())
    reading = conclaude.read_reply(gate, Exit(code=1))
    failed = "Command failed with exit code 1: ./tell.sh"
    assert reading == HookAnswer(answer=Block(failed), warning=failed)


@pytest.mark.rule("D3")
def test_the_example_of_the_proposal_is_read_and_asked_as_it_says():
    expected = vectors("example.json")
    found = gates(yaml.safe_load((VECTORS / "example.yaml").read_text()))
    assert expected["gates"] == [
        {
            "name": gate.name,
            "agents": list(gate.match.agents),
            "step": gate.step,
            "script": gate.check.script,
            "message": gate.check.options.get("message"),
        }
        for gate in found
    ]
    for agent, patterns in expected["asked"].items():
        asked = select(substop(agent_type=agent, agent_id="a1"), found)
        assert [gate.match.agents[0] for gate in asked] == patterns
        assert select(substop(agent_type=None, agent_id=agent), found) == asked
    assert select(stop(), found) == ()


@pytest.mark.rule("D3")
def test_every_pattern_that_fits_runs_star_first_then_in_lexical_order():
    patterns = ("coder", "c*", "[a-z]*", "*coder", "*", "!x", "Coder")
    commands = {pattern: [{"run": "one"}, {"run": "two"}] for pattern in patterns}
    found = gates({"subagentStop": {"commands": commands}})
    assert [gate.step for gate in found] == list(range(14))
    order = [(gate.match.agents[0], gate.check.script) for gate in found]
    assert order == [
        (pattern, script)
        for pattern in ("*", "!x", "*coder", "Coder", "[a-z]*", "c*", "coder")
        for script in ("one", "two")
    ]


@pytest.mark.rule("D1", "D2")
@pytest.mark.parametrize("vector", vectors("globs.json"), ids=lambda vector: vector["pattern"])
def test_patterns_fit_what_the_proposal_says(vector):
    (gate,) = gates({"subagentStop": {"commands": {vector["pattern"]: [{"run": "x"}]}}})
    for field in ("agent_id", "agent_type", "agent_name"):
        names = {"agent_id": "", "agent_type": "", "agent_name": ""}
        for name in vector["fits"]:
            assert not why_not(gate, substop(**(names | {field: name}))), name
        for name in vector["fits_not"]:
            assert why_not(gate, substop(**(names | {field: name}))), name


@pytest.mark.rule("D1")
@pytest.mark.parametrize("pattern", ["", "[abc", "{a,b}"])
def test_a_bad_pattern_is_an_error(pattern):
    with pytest.raises(ValueError):
        gates({"subagentStop": {"commands": {pattern: [{"run": "x"}]}}})


@pytest.mark.rule("D3")
def test_all_commands_but_those_of_stop_run_whatever_other_gates_say():
    found = gates(
        {
            "stop": {"commands": [{"run": "a"}], "infinite": True},
            "stopFailure": {"commands": [{"run": "b"}]},
            "subagentStop": {"commands": {"*": [{"run": "c"}, {"run": "d", "block": True}]}},
        }
    )
    assert [gate.always for gate in found] == [False, False, True, True, True]


def test_gates_whose_cut_names_are_equal_stay_two():
    long = "x" * 200
    commands = {f"{long}1": [{"run": "a"}], f"{long}2": [{"run": "a"}]}
    first, second = gates({"subagentStop": {"commands": commands}})
    assert second.name == f"{first.name}'"
