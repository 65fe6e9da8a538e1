"""The commands that are registered, and how they are read again."""

import shutil
import subprocess
import sys

import pytest

from notyet.install.entry import EVENTS, NoCommand, Ours, absolute_start, entries, parsed, portable


def script(folder, name="notyet"):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text('#!/bin/sh\necho "$@"\n')
    path.chmod(0o755)
    return path


def start(argv0, prefix="/nowhere", python="/py/python3", main="/pkg/notyet/__main__.py"):
    return absolute_start(str(argv0), str(prefix), python, main)


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
    assert parsed(f"{line} hook --host claude") == Ours(program=str(path), host="claude")


def test_started_as_a_module_the_script_of_that_python_is_used(tmp_path):
    path = script(tmp_path / "bin")
    assert start("/lib/notyet/__main__.py", tmp_path).line == str(path)


def test_a_python_that_does_not_know_where_it_is_cannot_be_registered(tmp_path):
    with pytest.raises(NoCommand, match="this Python does not know where it is"):
        start("/lib/notyet/__main__.py", tmp_path, python="")


def test_without_a_script_the_module_is_run_and_that_is_said(tmp_path):
    made = start("/lib/notyet/__main__.py", tmp_path)
    assert made.line == "/py/python3 -I -S /pkg/notyet/__main__.py"
    assert made.note.startswith(f"there is no {tmp_path}/bin/notyet")
    assert parsed(f"{made.line} hook --timeout 5") == Ours(program="/py/python3", timeout=5.0)


def test_a_script_that_cannot_be_run_is_not_used(tmp_path):
    script(tmp_path / "bin").chmod(0o644)
    assert "__main__" in start(tmp_path / "bin" / "notyet", tmp_path).line


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


def test_a_folder_that_is_only_named_alike_is_no_throw_away_copy(tmp_path):
    path = script(tmp_path / "archive-vault" / "pipx" / "bin")
    assert start(path, tmp_path / "archive-vault").line == str(path)


@pytest.mark.parametrize("name", ["builds-v2", "archive-v0", "environments-v1"])
def test_a_folder_with_a_name_of_uv_is_no_throw_away_copy_outside_its_cache(tmp_path, name):
    path = script(tmp_path / name / "p" / "bin")
    assert start(path, tmp_path / name / "p").line == str(path)
    (tmp_path / "CACHEDIR.TAG").touch()
    with pytest.raises(NoCommand, match="uv tool install notyet"):
        start(path, tmp_path / name / "p")


def test_a_path_that_is_no_text_is_refused(tmp_path):
    with pytest.raises(NoCommand, match="not UTF-8"):
        start(script(tmp_path / "\udcff"))


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
        ("echo notyet hook", None),
    ],
)
def test_a_command_of_ours_is_read_again(command, ours):
    assert parsed(command) == ours


def test_what_is_registered_really_runs_the_hook(tmp_path):
    made = absolute_start("x", sys.prefix, sys.executable, "/nowhere")
    line = entries("claude", made.line, 60)[0].command
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        input=b"{}",
        capture_output=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0
    assert b"no hook_event_name" in done.stderr
