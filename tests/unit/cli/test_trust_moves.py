"""Codex's trust and its hooks change together, or not at all, or at the next try."""

import json
import os
import signal
import subprocess
import tomllib

import pytest

from notyet.cli.main import main
from notyet.hosts.codex.trust import hash_of, key
from notyet.install import change

COMMANDS = ["/x/notyet hook", "mine", "/y/notyet hook", "yours", "theirs"]


def handler(command):
    return {"type": "command", "command": command}


class Codex:
    def __init__(self, home):
        self.hooks = home / ".codex" / "hooks.json"
        self.config = home / ".codex" / "config.toml"

    def plant(self, commands):
        """Write hooks, all of them approved, and the last switched off."""
        self.hooks.parent.mkdir()
        groups = [{"hooks": [handler(command)]} for command in commands]
        self.hooks.write_text(json.dumps({"hooks": {"Stop": groups}}))
        text = "".join(
            f"[hooks.state.{json.dumps(key(str(self.hooks), 'Stop', at, 0))}]\n"
            f"trusted_hash = '{hash_of('Stop', handler(command))}'\n"
            for at, command in enumerate(commands)
        )
        self.config.write_text(f"{text}enabled = false\n")

    def state(self):
        return tomllib.loads(self.config.read_text())["hooks"]["state"]

    def expected(self, commands):
        found = {
            key(str(self.hooks), "Stop", at, 0): {"trusted_hash": hash_of("Stop", handler(command))}
            for at, command in enumerate(commands)
        }
        found[key(str(self.hooks), "Stop", len(commands) - 1, 0)]["enabled"] = False
        return found

    def both(self):
        return self.hooks.read_bytes(), self.config.read_bytes()


@pytest.fixture
def codex(place, home):
    codex = Codex(home)
    codex.plant(COMMANDS)
    return codex


def in_a_child(work):
    """Do it in a process of its own; return the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["config.toml", "hooks.json"])
def test_who_is_killed_at_a_write_can_do_it_again(codex, name, when):
    write = change.replace_file

    def fatal(path, content):
        if when == "after" or not path.endswith(name):
            write(path, content)
        if path.endswith(name):
            os.kill(os.getpid(), signal.SIGKILL)

    def work():
        change.replace_file = fatal
        main(["uninstall", "codex", "--yes"])

    assert in_a_child(work) == -signal.SIGKILL
    assert main(["uninstall", "codex", "--yes"]) == 0
    groups = json.loads(codex.hooks.read_text())["hooks"]["Stop"]
    assert [group["hooks"][0]["command"] for group in groups] == ["mine", "yours", "theirs"]
    assert codex.state() == codex.expected(["mine", "yours", "theirs"])


def test_what_a_linked_work_tree_says_is_not_trusted_but_told_of(
    place, home, tmp_path, capsys, monkeypatch
):
    def git(*words):
        names = ("-c", "user.name=n", "-c", "user.email=e")
        subprocess.run(["git", *names, *words], check=True, capture_output=True)

    (place / ".git").rmdir()
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    git("worktree", "add", "-q", str(tmp_path / "wt"))
    monkeypatch.chdir(tmp_path / "wt")
    read = place / ".codex" / "hooks.json"
    assert main(["install", "codex", "--project", "--yes"]) == 0
    assert f"codex reads the hooks of this work tree from {read}" in capsys.readouterr().out
    assert main(["install", "codex", "--project", "--yes", "--trust"]) == 1
    said = capsys.readouterr()
    assert "trusted by Codex" not in said.out
    assert f"from {read}, so trust in" in said.err
    assert not (home / ".codex" / "config.toml").exists()
    monkeypatch.chdir(place)
    assert main(["install", "codex", "--project", "--yes", "--trust"]) == 0
    assert "work tree" not in capsys.readouterr().out
