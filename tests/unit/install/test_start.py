"""How hosts start notyet: lines that outlive upgrades, and are known again."""

import json
import shutil
import subprocess
import sys

import pytest

from notyet.install.launcher import (
    NoCommand,
    Start,
    absolute_start,
    launched,
    launched_start,
)
from notyet.install.notyet_line import is_notyets_hook, notyet_line, portable_line
from notyet.install.settings import read_settings, settings_of

USUAL = Start(line="/x/notyet")


def script(folder, name="notyet"):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text('#!/bin/sh\necho "$@"\n')
    path.chmod(0o755)
    return path


def start(argv0, prefix="/nowhere", python="/py/python3", main="/pkg/notyet/__main__.py"):
    return absolute_start(str(argv0), str(prefix), python, main)


def test_the_script_is_taken_by_the_name_it_was_called_by(tmp_path):
    real = script(tmp_path / "venv-1" / "bin")
    link = tmp_path / "bin" / "notyet"
    link.parent.mkdir()
    link.symlink_to(real)
    assert start(link).line == str(link)
    assert start(link).note == ""


def test_a_relative_name_becomes_absolute_and_odd_ones_are_quoted(tmp_path, monkeypatch):
    folder = tmp_path / "it's a folder"
    path = script(folder)
    monkeypatch.chdir(tmp_path)
    line = start("it's a folder/notyet").line
    said = subprocess.run(["/bin/sh", "-c", f"{line} hook"], capture_output=True, text=True)
    assert (said.stdout, said.stderr) == ("hook\n", "")
    assert notyet_line(f"{line} hook --host claude").program == str(path)


def test_without_a_script_the_module_is_run_and_that_is_said(tmp_path):
    made = start("/lib/notyet/__main__.py", tmp_path)
    assert made.line == "/py/python3 -I -S /pkg/notyet/__main__.py"
    assert made.note.startswith(f"there is no {tmp_path}/bin/notyet")
    assert notyet_line(f"{made.line} hook --timeout 5").program == "/py/python3"


@pytest.mark.parametrize(
    ("folder", "advice"),
    [
        (".cache/uv/archive-v0/Xy", "uv tool install notyet"),
        (".cache/uv/environments-v2/Xy", "uv tool install notyet"),
        (".cache/pipx/0a", "pipx install notyet"),
        (".local/pipx/.cache/0a", "pipx install notyet"),
    ],
)
def test_a_throw_away_copy_is_refused_with_what_to_do(tmp_path, folder, advice):
    path = script(tmp_path / folder / "bin")
    with pytest.raises(NoCommand, match=advice):
        start(path, tmp_path / folder)


def test_what_is_registered_really_runs_the_hook(tmp_path):
    made = absolute_start("x", sys.prefix, sys.executable, "/nowhere")
    line = settings_of("claude").entries(made.line, 60)[0].command
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        input=b"{}",
        capture_output=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0
    assert b"no hook_event_name" in done.stderr


@pytest.mark.parametrize("python", ["/p y/python3.11", "/it's/pypy3", "/p/bin/python"])
def test_a_line_with_the_launcher_is_known_again(tmp_path, python):
    folder = str(tmp_path / "a 'b' \"c\"" / "notyet" / "0123456789ab")
    line = settings_of("codex").entries(launched(folder, python), 9)[0].command
    assert is_notyets_hook(line)
    found = notyet_line(line)
    assert (found.program, found.host, found.timeout) == (python, "codex", 9.0)
    assert found.launcher == f"{folder}/launch.py"


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "ksh", "fish", "csh", "tcsh"])
def test_the_line_runs_its_launcher_in_every_shell_and_says_if_that_is_gone(tmp_path, shell):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    folder = tmp_path / 'it\'s a "folder"' / "notyet"
    python = tmp_path / "python"

    def run():
        line = settings_of("codex").entries(launched(str(folder), str(python)), 9)[0].command
        done = subprocess.run([program, "-c", line], capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stderr) == (0, "")  # never 2: it would send an agent back
        return done.stdout

    folder.mkdir(parents=True)
    (folder / "launch.py").write_text("import sys; print(sys.argv[1:], sys.flags.isolated)")
    python.symlink_to(sys.executable)
    assert run() == "['hook', '--host', 'codex', '--timeout', '9'] 1\n"
    python.unlink()
    python.symlink_to("gone")
    gone = "NOT CHECKED: notyet was removed or moved; install it, then run: notyet install codex"
    assert json.loads(run()) == {"systemMessage": f"notyet: {gone}"}
    python.unlink()
    python.symlink_to(sys.executable)
    (folder / "launch.py").unlink()
    assert json.loads(run()) == {"systemMessage": f"notyet: {gone}"}


@pytest.mark.parametrize(
    ("folder", "python", "why"),
    [
        ("", "/p/python", "there is no home folder to keep the launcher in"),
        ("/data/notyet", "/p/pixie", "/p/pixie is not a usual name for a Python"),
        ("/data/notyet", "", "this Python is not a usual name for a Python"),
        ("/dev/null/notyet", "/p/python", "/dev/null is not a folder"),
        ("/da\udcffta/notyet", "/p/python", "is not UTF-8"),
    ],
)
def test_where_there_can_be_no_launcher_the_usual_start_is_kept_and_that_is_said(
    folder, python, why
):
    made = launched_start(USUAL, folder, python)
    assert (made.line, made.folder) == (USUAL.line, "")
    assert made.note.startswith("hooks start slower than they could: ")
    assert why in made.note


def test_every_event_has_its_command_and_the_hosts_timeout_is_ours():
    made = settings_of("codex").entries("/x/notyet", 600)
    assert [entry.event for entry in made] == list(settings_of("claude").events)
    assert made[0].handler(settings_of("codex").host) == {
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
    made = gemini.entries("/x/notyet", 600)
    assert [(entry.event, entry.timeout) for entry in made] == [
        ("AfterAgent", 600_000),
        ("BeforeTool", 600_000),
        ("SessionStart", 30_000),
    ]
    place = gemini.target("user", "/", {"HOME": str(tmp_path)})
    text = gemini.text_with("", place, made)
    (main, subagent, _) = gemini.registrations(place, read_settings(text, place))
    assert (main.timeout, main.is_hook, main.is_main) == (600.0, True, True)
    assert (subagent.matcher, subagent.is_restricted) == ("complete_task", False)
    assert gemini.text_without(text, place) == "{}\n"
