"""`notyet with acp:"COMMAND"`: an agent that speaks ACP, and what it may do."""

import shlex
import sys

import pytest

from acp_editor import AGENT
from with_runs import Terminal, command_line, project, run_with

COMMAND = f"acp:{shlex.join([sys.executable, AGENT])}"
ONCE = '[gates.tests]\nrun = "test -e seen || { touch seen; exit 1; }"\nwhen = "always"\n'


def test_it_is_sent_back_until_its_gates_pass(tmp_path):
    done = run_with(project(tmp_path / "p", gates=ONCE), agent=COMMAND)
    assert (done.returncode, done.stdout) == (0, "prompts=2\n")
    assert "passed after 1 send-back" in done.stderr


@pytest.mark.parametrize(
    ("options", "outcome", "said"),
    [
        (["--permit", "allow"], '"selected"', "allowed: write"),
        (["--permit", "deny"], '"cancelled"', "denied: write"),
        ([], '"cancelled"', "denied, because there is no terminal to ask (--permit): write"),
    ],
)
def test_permission_is_by_the_stated_policy(tmp_path, options, outcome, said):
    folder = project(tmp_path / "p", gates='[gates.tests]\nrun = "true"\nwhen = "always"\n')
    done = run_with(folder, *options, agent=COMMAND, prompt="ASK")
    assert said in done.stderr
    assert done.returncode == 0
    assert outcome in done.stdout


@pytest.mark.parametrize(("key", "outcome"), [(b"y", "selected"), (b"n", "cancelled")])
def test_permission_is_asked_of_the_user(tmp_path, key, outcome):
    folder = project(tmp_path / "p", gates='[gates.tests]\nrun = "true"\nwhen = "always"\n')
    with Terminal(folder, *command_line("with", COMMAND, "ASK")) as terminal:
        terminal.expect("may the agent do this? y or n: write")
        terminal.press(key)
        terminal.expect(f'"outcome": "{outcome}"')
        terminal.wait()


def test_an_agent_that_mixes_up_ids_ends_as_an_error(tmp_path):
    done = run_with(project(tmp_path / "p", gates=ONCE), agent=COMMAND, prompt="ODD")
    assert done.returncode != 0
    assert 'it answered with the unknown id "another-id"' in done.stderr
