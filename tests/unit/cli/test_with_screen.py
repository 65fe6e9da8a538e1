"""The live view of `notyet with`: what the agent does now, and the gates that run."""

import re

from with_runs import Terminal, command_line, project

GATES = """
[gates]
lint = "echo 3 checks ok"
tests = "echo begun; while ! [ -e gated ]; do sleep 0.1; done; test -e ready"
"""
SLOW = """
[[turn]]
steps = [
  { tool = "bash", input = { script = "make" }, run = "while ! [ -e made ]; do sleep 0.1; done" },
  { say = "Done!" },
]

[[turn]]
steps = [
  { tool = "bash", run = "touch ready; while ! [ -e again ]; do sleep 0.1; done" },
  { say = "Now it is." },
]
"""
WITH = command_line("with", "scripted:agent.toml", "Make it ready.")


def test_a_terminal_shows_what_the_agent_does_its_gates_and_its_send_backs(tmp_path):
    folder = project(tmp_path / "p", SLOW, GATES)
    with Terminal(folder, *WITH, NO_COLOR="1") as terminal:
        terminal.until(r'\n +\S  scripted  bash: \{"script": "make"\} · \d+ s\Z')
        (folder / "made").touch()
        terminal.until(
            r"running \.\.\.\n  ✓ lint +\d.\d s  3 checks ok\n"
            r"  \S tests +\d+\.\d s  begun\n  1 of 2 done  ━{15}─{15}\Z"
        )
        (folder / "gated").touch()
        terminal.until(r"\n +\S  scripted  bash.* · \d+ s · sent back 1/3\Z")
        (folder / "gated").unlink()
        (folder / "again").touch()
        terminal.until(r"\n  \S tests +\d+\.\d s  begun\n  1 of 2 done · sent back 1/3  ━+─+\Z")
        (folder / "gated").touch()
        assert terminal.wait() == 0
        # The lines stay, the view is gone, and the answer stands below.
        assert re.search(r"passed after 1 send-back .*\nNow it is\.\Z", terminal.screen)
        assert "of 2 done" not in terminal.screen


def test_the_view_is_gone_when_the_agent_is_interrupted(tmp_path):
    folder = project(tmp_path / "p", SLOW, GATES)
    with Terminal(folder, *WITH, columns=40) as terminal:
        terminal.until(r"· \d+ s\Z")
        terminal.press(b"\x03")
        assert terminal.wait() == 130
        assert not re.search(r"· \d+ s", terminal.screen)
        assert "interrupted" in terminal.screen
