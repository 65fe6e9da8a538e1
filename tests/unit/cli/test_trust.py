"""`notyet trust`: a person looks, and says yes (N5)."""

import errno
import json
import os
import pty
import re
import select
import subprocess
import sys

import pytest

from hook_runs import ENTRY, clean_environ, new_project, payload, query, stops
from hook_runs import ask as ask_hook
from notyet.cli import person, trust
from notyet.cli.main import main

pytestmark = pytest.mark.rule("N5")
TEXT = '[gates]\nmypy = "mypy src"\n[gates.tests]\nrun = "line one\\nline two"\n'


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project that nobody trusted, with a person before it."""
    monkeypatch.setattr(person, "inside_agent", lambda _environ: "")
    folder = new_project(tmp_path / "p", TEXT, trusted=False)
    monkeypatch.chdir(folder)
    return folder


def test_every_line_of_every_command_is_shown(project, capsys):
    main(["trust", "--show"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["mypy", "mypy", "src"] in lines
    assert ["tests", "line", "one"] in lines
    assert ["line", "two"] in lines


def test_trust_that_cannot_be_removed_stays_and_the_reason_is_said(project, capsys, monkeypatch):
    def remove(_state, _path):
        raise OSError(errno.EROFS, "Read-only file system")

    main(["trust", "--yes"])
    monkeypatch.setattr(trust, "remove_record", remove)
    assert main(["trust", "--revoke"]) == 1
    said = capsys.readouterr()
    assert "no longer trusted" not in said.out
    assert said.err.endswith("notyet.toml: cannot remove the trust: Read-only file system\n")


def test_what_a_gate_adds_to_its_environment_is_shown_too(project, capsys):
    text = '[gates.g]\npython = "m:f"\ninterpreter = "/evil/python"\nenv = { PATH = "/evil" }\n'
    (project / "notyet.toml").write_text(text + '[observers.o]\nrun = "tell"\n')
    main(["trust", "--show"])
    said = capsys.readouterr().out
    assert "PATH=/evil" in said
    assert "interpreter: /evil/python" in said
    assert "m:f" in said
    assert "observer o  tell" in said


def test_nothing_can_hide_from_the_eye(project, capsys):
    text = '[gates]\ng = "evil \\u001b[2K\\u202e\\rgood"\n'
    (project / "notyet.toml").write_text(text)
    main(["trust", "--show"])
    said = capsys.readouterr().out
    assert "evil \\x1b[2K\\u202e" in said
    assert not {"\x1b", "\u202e", "\r"} & set(said)


def test_a_file_with_mistakes_is_refused_and_all_of_them_are_shown(project, capsys):
    (project / "notyet.toml").write_text('[gates]\na = 5\n[gates.b]\nrun = "x"\ntimeuot = 3\n')
    assert main(["trust", "--yes"]) == 1
    said = capsys.readouterr().out
    assert "notyet.toml:2:1: " in said
    assert "notyet.toml:5:1: " in said
    assert "did you mean `timeout`?" in said
    assert main(["trust", "--show"]) == 1


def test_trust_in_a_file_that_is_gone_can_be_taken_back(project, capsys):
    main(["trust", "--yes"])
    (project / "notyet.toml").unlink()
    assert main(["trust"]) == 1
    assert "No such file" in capsys.readouterr().err
    assert main(["trust", "--revoke"]) == 0
    assert main(["trust"]) == 1
    assert "no notyet.toml in " in capsys.readouterr().err


def test_taking_trust_back_leaves_the_file_further_up_trusted(project):
    main(["trust", "--yes"])
    inner = new_project(project / "inner", TEXT, trusted=False)
    assert main(["trust", "--revoke", str(inner)]) == 1
    assert main(["trust", "--show", str(project)]) == 0


def test_a_file_or_a_folder_can_be_named(project, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(project)
    other = tmp_path / "other.toml"
    other.write_text(TEXT)
    assert main(["trust", "--yes", "link/notyet.toml"]) == 0
    assert main(["trust", "--show", "p"]) == 0
    assert main(["trust", "--yes", "other.toml"]) == 0
    ask_hook(payload("claude", tmp_path), "--config", str(other))
    assert [why for _, why in stops()] != ["untrusted"]
    assert main(["trust", "missing.toml"]) == 1


def test_files_of_other_hosts_are_trusted_where_they_are_read(project, capsys):
    hooks = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]}}
    (project / ".claude").mkdir()
    settings = project / ".claude" / "settings.json"
    settings.write_text(json.dumps(hooks))
    main(["trust", "--show"])
    assert "theirs" not in capsys.readouterr().out
    main(["trust", "--show", "--read", "claude"])
    assert "theirs" in capsys.readouterr().out
    (project / "notyet.toml").write_text('[read]\nhosts = ["claude"]\n')
    main(["trust", "--show"])
    assert "theirs" in capsys.readouterr().out
    assert main(["trust", "--yes", str(settings)]) == 0
    assert main(["trust", "--show", str(settings)]) == 0


def test_an_executable_of_mux_is_shown_as_what_it_is(project, capsys):
    (project / ".mux").mkdir()
    stop = project / ".mux" / "stop"
    stop.write_text("#!/bin/sh\nrm -rf /tmp/x\n")
    stop.chmod(0o755)
    main(["trust", "--show", str(stop)])
    assert "rm -rf /tmp/x" in capsys.readouterr().out


@pytest.mark.parametrize("bad", ["mkdir", "mkfifo"])
def test_a_file_that_is_none_is_refused(project, capsys, bad):
    (project / "notyet.toml").unlink()
    getattr(os, bad)(project / "notyet.toml")
    assert main(["trust", "--yes"]) == 1
    assert "notyet trust: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["trust", "--yes"], ["trust", "--revoke"], ["off"], ["off", "1h"]]
)
def test_an_agent_is_refused_by_its_variables(tmp_path, command):
    project = new_project(tmp_path / "p", TEXT)
    for variable in ("CLAUDECODE", "CODEX_THREAD_ID", "GEMINI_CLI", "NOTYET_INSIDE"):
        done = subprocess.run(
            [sys.executable, ENTRY, *command],
            cwd=project,
            env=clean_environ(**{variable: "1"}),
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == 1
        assert f"an agent may not do this ({variable} is set)".encode() in done.stderr
    assert query("SELECT count(*) FROM acts") in ([], [(0,)])


@pytest.mark.parametrize("name", ["claude", "codex"])
@pytest.mark.parametrize("command", [["trust", "--yes"], ["off"]])
def test_an_agent_is_refused_by_its_ancestors(tmp_path, name, command):
    project = new_project(tmp_path / "p", TEXT, trusted=False)
    agent = tmp_path / name
    agent.symlink_to("/bin/sh")
    deep = f"sh -c '{sys.executable} {ENTRY} {' '.join(command)}; exit $?'; exit $?"
    done = subprocess.run(
        [agent, "-c", deep], cwd=project, env=clean_environ(), capture_output=True, timeout=60
    )
    assert done.returncode == 1
    assert b"an agent may not do this" in done.stderr
    assert b"is among the programs that started this one" in done.stderr


def converse(project, answer, before=lambda: None):
    """Run `notyet trust` on a terminal; return its exit code and all that stood there."""
    code = "from notyet.cli import person; person.inside_agent = lambda _: ''\n"
    code += "import sys; from notyet.cli.main import main; sys.exit(main(['trust']))"
    master, slave = pty.openpty()
    started = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=project,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=clean_environ(PYTHONPATH=str(ENTRY.parent.parent), TERM="xterm"),
    )
    os.close(slave)
    seen = b""
    while b"[y/N]" not in seen and select.select([master], [], [], 30)[0]:
        seen += os.read(master, 65_536)
    before()
    os.write(master, answer)
    while True:
        try:
            part = os.read(master, 65_536)
        except OSError:  # the terminal's other end is closed
            break
        if not part:
            break
        seen += part
    os.close(master)
    return started.wait(30), re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode())


@pytest.mark.parametrize(
    ("answer", "code"), [(b"y\n", 0), (b"YES\n", 0), (b"n\n", 1), (b"\n", 1), (b"\x04", 1)]
)
def test_on_a_terminal_the_person_is_asked(tmp_path, answer, code):
    project = new_project(tmp_path / "p", TEXT, trusted=False)
    exited, seen = converse(project, answer)
    assert exited == code
    assert "mypy src" in seen
    assert ("nothing was changed" in seen) == bool(code)
    ask_hook(payload("claude", project))
    assert (stops()[-1] == ("skipped", "untrusted")) == bool(code)


def test_what_was_shown_is_what_is_trusted(tmp_path):
    project = new_project(tmp_path / "p", '[gates]\na = "touch shown"\n', trusted=False)
    evil = '[gates]\na = "touch evil"\n'
    exited, _ = converse(project, b"y\n", lambda: (project / "notyet.toml").write_text(evil))
    assert exited == 0
    reply = ask_hook(payload("claude", project))
    assert "changed since it was trusted" in reply.stdout
    assert (project / "shown").exists()
    assert not (project / "evil").exists()


def test_hooks_for_starts_are_shown_too(project, capsys):
    hooks = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "begin"}]}]}}
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_text(json.dumps(hooks))
    main(["trust", "--show", "--read", "claude"])
    said = capsys.readouterr().out
    assert "claude SessionStart[0] begin" in said.partition("would run:")[2]


@pytest.mark.rule("J6")
def test_the_files_of_members_are_shown_and_trusted_with_the_root(project, capsys):
    (project / "notyet.toml").write_text('members = ["packages/*"]\n' + TEXT)
    for name in ("a", "b"):
        new_project(project / "packages" / name, TEXT, trusted=False)
    (project / "packages/empty").mkdir()
    assert main(["trust", "--show"]) == 1
    said = capsys.readouterr().out
    for name in ("", "packages/a/", "packages/b/"):
        assert f"{project}/{name}notyet.toml  (not trusted)" in said
    assert main(["trust", "--yes"]) == 0
    assert main(["trust", "--show"]) == 0


@pytest.mark.rule("J6")
def test_in_a_folder_all_files_from_the_top_are_trusted_but_a_named_one_alone(project, monkeypatch):
    (project / ".git").mkdir()
    inner = new_project(project / "inner", TEXT, trusted=False)
    assert main(["trust", "--yes", str(inner / "notyet.toml")]) == 0
    assert main(["trust", "--show"]) == 1
    monkeypatch.chdir(inner)
    assert main(["trust", "--yes"]) == 0
    assert main(["trust", "--show"]) == 0
