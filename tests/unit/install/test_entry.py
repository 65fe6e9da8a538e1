"""The commands that are registered, and how they are read again."""

import shutil
import subprocess

import pytest

from notyet.install.entry import EVENTS, Ours, entries, parsed, portable

LAUNCHER = "/d/notyet/0123456789ab/launch.py"


def script(folder, name="notyet"):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text('#!/bin/sh\necho "$@"\n')
    path.chmod(0o755)
    return path


def test_every_event_has_its_command_and_the_hosts_timeout_is_ours():
    made = entries("codex", "/x/notyet", 600)
    assert [entry.event for entry in made] == list(EVENTS)
    assert made[0].handler == {
        "type": "command",
        "command": "/x/notyet hook --host codex --timeout 600",
        "timeout": 600,
    }
    assert {entry.event: entry.timeout for entry in made} == {
        "Stop": 600,
        "SubagentStop": 600,
        "SessionStart": 30,
        "SubagentStart": 30,
    }
    assert entries("codex", "/x/notyet", 5)[2].timeout == 5


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "fish", "csh", "tcsh"])
def test_the_portable_line_runs_notyet_in_every_shell_and_nothing_where_it_is_missing(
    tmp_path, shell
):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    line = portable("hook --host codex --timeout 9")
    script(tmp_path / "bin")
    for path, said in (
        (f"{tmp_path}/bin:/usr/bin:/bin", "hook --host codex --timeout 9\n"),
        ("/usr/bin:/bin", ""),
    ):
        done = subprocess.run(
            [program, "-c", line], env={"PATH": path}, capture_output=True, text=True, timeout=30
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        ("notyet hook", Ours(program="notyet")),
        ("notyet conclaude Hooks Stop", Ours(program="notyet", verb="conclaude")),
        (
            "notyet hook --host=codex --timeout=1.5",
            Ours(program="notyet", host="codex", timeout=1.5),
        ),
        ("notyet hook --host nobody --timeout x", Ours(program="notyet")),
        ("notyet hook --timeout -3", Ours(program="notyet")),
        ("notyet hook --timeout", Ours(program="notyet")),
        ("$HOME/bin/notyet hook", Ours()),
        ("~/bin/notyet hook", Ours()),
        ('"$(which notyet)" hook', Ours()),
        ("A=1 '/a b/notyet' hook", Ours(program="/a b/notyet")),
        (portable("hook --host codex"), Ours(program="notyet", host="codex", is_portable=True)),
        (
            "test -f /d/notyet/launch.py && exec /p/python -I -S /d/notyet/launch.py hook",
            Ours(program="/p/python", launcher="/d/notyet/launch.py"),
        ),
        (
            f"test -r {LAUNCHER} && exec /p/python -I -S {LAUNCHER} hook",
            Ours(program="/p/python", launcher=LAUNCHER),
        ),
        ("python /d/notyet/src/launch.py hook", None),
        ("python /d/other/0123456789ab/launch.py hook", None),
        ("echo notyet hook", None),
    ],
)
def test_a_command_of_ours_is_read_again(command, ours):
    assert parsed(command) == ours
