"""Completion, tried in the shells themselves: words are typed, the tab key is pressed."""

import fcntl
import os
import select
import shlex
import shutil
import subprocess
import sys
import termios
import time

import pytest

from hook_runs import ENTRY, new_project
from notyet.cli.completion import SHELLS
from notyet.cli.main import COMMANDS, main, parsers

GATES = '[gates]\nlint = "true"\n"long name" = "true"\n"$(touch x)" = "true"\n'
SETUP = {
    "bash": "source ./script; PS1='RE''ADY% '; notyet() { printf 'GOT<%s>\\n' \"$*\"; }",
    "zsh": (
        "autoload -Uz compinit; compinit -u -D; eval \"$(<./script)\"; PROMPT='RE''ADY%% '; "
        "notyet() { printf 'GOT<%s>\\n' \"$*\" }"
    ),
}
ARGV = {"bash": ["bash", "--noprofile", "--norc", "-i"], "zsh": ["zsh", "-f", "-i"]}
TYPED = [
    ("stat\t", "status"),
    ("status --why --as cod\t", "status --why --as codex"),
    ("status --payload da\t", "status --payload data.json"),
    ("tasks sh\t", "tasks show"),
    ("with cop\t", "with copilot"),
    ("with claude hello --cwd fol\t", "with claude hello --cwd folder/"),
]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with gates, and notyet on the PATH."""
    project = new_project(tmp_path / "project", GATES)
    (project / "data.json").write_text("{}")
    (project / "folder").mkdir()
    program = tmp_path / "bin" / "notyet"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {ENTRY} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.chdir(project)
    return project


def script(shell, capsys):
    capsys.readouterr()
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def need(shell):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} (Debian: apt-get install {shell})")


class Terminal:
    """A shell in a terminal, and somebody who types."""

    def __init__(self, shell, folder, setup=""):
        self._keys, other = os.openpty()
        self._shell = subprocess.Popen(
            ARGV[shell],
            cwd=folder,
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # no threads
        )
        os.close(other)
        self._read = ""
        self.type(f"{setup or SETUP[shell]}\r")

    def type(self, keys):
        os.write(self._keys, keys.encode())

    def until(self, words, seconds=40.0):
        """Read until these words are there; return what came before them."""
        ends = time.monotonic() + seconds
        while words not in self._read:
            left = max(0, ends - time.monotonic())
            assert select.select([self._keys], [], [], left)[0], self._read
            self._read += os.read(self._keys, 65_536).decode(errors="replace")
        before, _, self._read = self._read.partition(words)
        return before

    def completed(self, keys):
        """Type words after `notyet`, and Enter; return what the command was given."""
        self.until("READY% ")  # before that a key would be no key but a letter
        self.type(f"notyet {keys}\r")
        self.until("GOT<")
        return self.until(">\r\n").strip()

    def close(self):
        self._shell.kill()
        self._shell.wait()
        os.close(self._keys)


@pytest.fixture
def terminal(project, capsys):
    opened = []

    def terminal(shell, setup="", name="script"):
        need(shell)
        (project / name).write_text(script(shell, capsys))
        opened.append(Terminal(shell, project, setup))
        return opened[-1]

    yield terminal
    for one in opened:
        one.close()


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_words_are_completed_where_they_are_typed(terminal, project, shell):
    shown = terminal(shell)
    # zsh takes a slash at the end away again when the line ends there.
    found = {keys: shown.completed(keys).rstrip("/") for keys, _ in TYPED}
    assert found == {keys: whole.rstrip("/") for keys, whole in TYPED}


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_names_of_gates_are_completed_as_they_are_now_and_never_run(terminal, project, shell):
    shown = terminal(shell)
    assert shown.completed("check li\t") == "check lint"
    assert shown.completed("check lo\t") == "check long name"
    assert shown.completed("check \\$\t") == "check $(touch x)"
    assert not (project / "x").exists()


def in_fish(project, capsys, line):
    need("fish")
    (project / "script").write_text(script("fish", capsys))
    code = f"source script; complete -C {shlex.quote(line)}"
    done = subprocess.run(
        ["fish", "--no-config", "-c", code], cwd=project, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    return [line.partition("\t")[0] for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("keys", "whole"), [(k, w) for k, w in TYPED if "fol" not in k])
def test_fish_completes_the_same_words(project, capsys, keys, whole):
    assert in_fish(project, capsys, f"notyet {keys.strip()}") == [whole.split()[-1]]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_every_option_is_in_every_script(shell, capsys):
    said = script(shell, capsys)
    for name, parser in parsers(COMMANDS)[1].items():
        assert name in said
        for action in parser._actions:
            for flag in action.option_strings:
                assert (flag if shell != "fish" else flag.lstrip("-")) in said


def test_values_are_what_there_is_now(project, capsys):
    assert main(["completion", "--values", "gates"]) == 0
    assert capsys.readouterr().out.splitlines() == ["lint", "long name", "$(touch x)"]


@pytest.mark.parametrize("kind", ["tasks", "sessions", "stops"])
def test_without_a_ledger_there_is_nothing_and_none_is_made(project, capsys, kind):
    assert main(["completion", "--values", kind]) == 0
    assert capsys.readouterr().out == ""
    assert not os.path.exists(os.path.join(os.environ["XDG_STATE_HOME"], "notyet", "ledger.db"))


def test_a_ledger_tells_of_tasks_sessions_and_stops(project, capsys):
    from hook_runs import ask, payload

    ask(payload("claude", project, session_id="s-one"), "--host", "claude")
    for kind, expected in (("sessions", "s-one\n"), ("stops", "1\n"), ("tasks", "")):
        assert main(["completion", "--values", kind]) == 0
        assert capsys.readouterr().out == expected


def test_names_that_a_shell_would_take_for_several_are_left_out(project, capsys):
    from hook_runs import trust

    names = '[gates]\nlint = "true"\n"two\\nlines" = "true"\n-rf = "true"\n'  # or for an option
    (project / "notyet.toml").write_text(names)
    trust(project / "notyet.toml")
    main(["completion", "--values", "gates"])
    assert capsys.readouterr().out == "lint\n"
