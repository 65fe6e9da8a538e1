"""The commands that are registered, and how they are read again."""

import shutil
import subprocess

import pytest

from notyet.install.own_line import portable_line
from notyet.install.settings import read_settings, settings_of

EVENTS = settings_of("claude").events


def script(folder, name="notyet"):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text('#!/bin/sh\necho "$@"\n')
    path.chmod(0o755)
    return path


def test_every_event_has_its_command_and_the_hosts_timeout_is_ours():
    made = settings_of("codex").entries("/x/notyet", 600)
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
    assert settings_of("codex").entries("/x/notyet", 5)[2].timeout == 5


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "fish", "csh", "tcsh"])
def test_the_portable_line_runs_notyet_in_every_shell_and_nothing_where_it_is_missing(
    tmp_path, shell
):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    line = portable_line("hook --host codex --timeout 9")
    script(tmp_path / "bin")
    for path, said in (
        (f"{tmp_path}/bin:/usr/bin:/bin", "hook --host codex --timeout 9\n"),
        ("/usr/bin:/bin", ""),
    ):
        done = subprocess.run(
            [program, "-c", line], env={"PATH": path}, capture_output=True, text=True, timeout=30
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


def test_a_host_as_data_needs_no_code_and_its_timeout_has_its_own_unit(tmp_path):
    gemini = settings_of("gemini")
    (made,) = gemini.entries("/x/notyet", 600)
    assert (made.event, made.timeout) == ("AfterAgent", 600_000)
    place = gemini.target("user", "/", {"HOME": str(tmp_path)})
    text = gemini.added("", place, [made])
    (found,) = gemini.registrations(place, read_settings(text, place))
    assert (found.timeout, found.is_hook, found.is_main) == (600.0, True, True)
    assert gemini.removed(text, place) == "{}\n"
