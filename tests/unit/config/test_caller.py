import os
import subprocess
import sys

import pytest

from notyet.config import caller
from notyet.hosts.known_programs import every_program
from notyet.run import proc

CODE = "import os; from notyet.config.caller import inside_agent; print(inside_agent({}))"


def environ():
    home = os.path.dirname(os.path.dirname(os.path.dirname(caller.__file__)))
    return {"PYTHONPATH": home, "PATH": os.environ["PATH"]}


@pytest.mark.rule("N5")
@pytest.mark.parametrize(
    "variable", ["NOTYET_INSIDE", *(name for host in every_program() for name in host.inside)]
)
def test_a_variable_of_an_agent_gives_it_away(variable):
    assert caller.inside_agent({variable: "1"}) == f"{variable} is set"


@pytest.mark.rule("N5")
def test_a_program_among_the_ancestors_gives_itself_away(tmp_path):
    agent = tmp_path / "claude"
    agent.symlink_to("/bin/sh")
    shell = f"sh -c '{sys.executable} -c \"{CODE}\"; true'; true"
    done = subprocess.run(
        [agent, "-c", shell], env=environ(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "claude is among the programs that started this one\n"


@pytest.mark.rule("N5")
def test_a_script_among_the_ancestors_gives_itself_away_by_its_second_word(tmp_path):
    agent = tmp_path / "gemini"
    agent.write_text(f"#!/bin/sh\n{sys.executable} -c '{CODE}'\ntrue\n")
    agent.chmod(0o755)
    done = subprocess.run([agent], env=environ(), capture_output=True, text=True, timeout=60)
    assert done.stdout == "gemini is among the programs that started this one\n"


@pytest.mark.rule("N1")
@pytest.mark.parametrize(
    ("program", "began"), [("claude", 5.0), ("codex", 3.0), ("gemini", 5.0), ("none", 5.0)]
)
def test_a_host_began_with_the_outermost_program_of_its_name(monkeypatch, program, began):
    above = {9: ["sh"], 8: ["claude-2.1"], 3: ["codex"], 5: ["node", "claude"], 4: ["zsh"], 1: []}
    monkeypatch.setattr(proc, "ancestors", lambda _: [9, 8, 3, 5, 4])
    monkeypatch.setattr(proc, "program_names", above.get)
    monkeypatch.setattr(proc, "birth", float)
    assert caller.host_began_at(program) == began


def test_without_a_host_it_is_unknown_when_that_began(monkeypatch):
    monkeypatch.setattr(caller, "PROGRAMS", ())
    assert caller.host_began_at("no-such-program") is None
    monkeypatch.setattr(proc, "read", no_proc)
    assert proc.birth(os.getpid()) is None


def no_proc(path):
    raise FileNotFoundError(path)


def test_without_proc_ps_is_asked(monkeypatch):
    monkeypatch.setattr(proc, "read", no_proc)
    assert proc.parent(os.getpid()) == os.getppid()
    assert proc.program_names(os.getppid())


def test_where_nothing_can_be_found_out_there_is_no_ancestor(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    unknown = 2**22 + 5
    assert (proc.parent(unknown), proc.program_names(unknown)) == (0, [])
    assert list(proc.ancestors(unknown)) == []
