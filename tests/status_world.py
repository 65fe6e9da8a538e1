"""A machine with an agent's program and notyet registered with it, for the tests of `status`."""

import json
import os
import shlex
import sys
from pathlib import Path

from hook_runs import ENTRY, new_project
from notyet.cli.main import main
from notyet.install import claude, codex, codex_trust, host_named
from notyet.install.entry import entries
from notyet.install.hooks_file import document_of
from notyet.install.launcher import lay, own_folder, own_root
from notyet.install.registered import registrations
from notyet.install.start import launched

GATES = "".join(f'[gates.{name}]\nrun = "true"\nwhen = "always"\n' for name in ("lint", "tests"))
FILES = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json"}
VERSIONS = {"claude": "2.1.325 (Claude Code)", "codex": "codex-cli 0.166.0"}
# Answers as the real `codex app-server` does, with the answer in the file beside it.
SERVER = """
import json, os, sys
if sys.argv[1:] == ["--version"]:
    print("codex-cli 0.166.0")
    sys.exit()
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        print(json.dumps({"method": "configWarning", "params": {}}))
        print("a line that went astray")
        print(json.dumps({"id": message["id"], "result": {"userAgent": "x"}}), flush=True)
    if message["method"] == "hooks/list":
        with open(os.path.join(os.path.dirname(sys.argv[0]), "listing.json")) as file:
            result = json.load(file)
        print(json.dumps({"id": message["id"], "result": result}), flush=True)
"""


class World:
    """One host with notyet registered for the user, in a project with two trusted gates."""

    def __init__(self, host, folder, monkeypatch, capsys):
        self.host, self.folder, self._capsys = host, folder, capsys
        self.monkeypatch = monkeypatch
        self.home = folder / "home"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.settings = self.home / FILES[host]
        self.settings.parent.mkdir(parents=True)
        self.managed = folder / "managed"
        monkeypatch.setenv("HOME", str(self.home))
        monkeypatch.setenv("PATH", f"{self.bin}:/usr/bin:/bin")
        monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
        monkeypatch.setattr(claude, "MANAGED", str(self.managed))
        monkeypatch.setattr(codex, "MANAGED", str(self.managed))
        self.project = new_project(folder / "project", GATES)
        (self.project / ".git").mkdir()
        monkeypatch.chdir(self.project)
        self.notyet = self.program("notyet", f'exec {sys.executable} -I {ENTRY} "$@"')
        self.register()
        if host == "codex":
            self.serve()
        else:
            self.claude()

    def program(self, name, script, first="#!/bin/sh"):
        """Put a program on the PATH."""
        path = self.bin / name
        path.write_text(f"{first}\n{script}\n")
        path.chmod(0o755)
        return path

    def worktree(self):
        """Make another work tree of the project's repository, and go there."""
        folder = self.project / ".git" / "worktrees" / "wt"
        folder.mkdir(parents=True)
        (folder / "commondir").write_text("../..\n")
        tree = new_project(self.folder / "wt", GATES)
        (tree / ".git").write_text(f"gitdir: {folder}\n")
        self.monkeypatch.chdir(tree)
        return tree

    def claude(self, *complaints, version=VERSIONS["claude"], doctor=""):
        """Put a Claude Code on the PATH whose doctor has these complaints about the settings."""
        said = ["Claude Code doctor", "", "Running: native", ""]
        if complaints:
            said += ["Invalid settings", *complaints, ""]
        (self.bin / "doctor.txt").write_text("\n".join([*said, "No installation issues found."]))
        doctor = doctor or f"cat {shlex.quote(str(self.bin / 'doctor.txt'))}"
        self.program("claude", f'[ "$1" = doctor ] || {{ echo "{version}"; exit; }}\n{doctor}')

    def complaint(self, key, why, path=None):
        """Return how Claude Code's doctor complains of a key."""
        return f"- {path or self.settings} \u203a {key}: {why}"

    def serve(self, **changes):
        """Put a Codex on the PATH that lists our hooks, trusted or as the changes say."""
        self.program("codex", SERVER, f"#!{sys.executable} -IS")
        hooks = [self.listed(entry) | changes for entry in self.entries()]
        self.answer(hooks)

    def listed(self, entry):
        """Return an entry as Codex lists it."""
        return {
            "key": codex_trust.key(entry.place.path, entry.event, entry.group, entry.index),
            "enabled": True,
            "trustStatus": "trusted",
            "currentHash": codex_trust.hash_of(entry.event, entry.handler, entry.matcher),
        }

    def answer(self, hooks, *warnings):
        """Say what Codex answers."""
        folder = {"cwd": str(self.project), "hooks": hooks, "warnings": warnings, "errors": []}
        (self.bin / "listing.json").write_text(json.dumps({"data": [folder]}))

    def place(self, scope="user"):
        return host_named(self.host).target(scope, str(self.project), os.environ)

    def entries(self, scope="user"):
        """Return our entries in a file."""
        place = self.place(scope)
        return registrations(self.host, place, document_of(Path(place.path).read_text(), place))

    def register(self, scope="user", start=None, timeout=1800):
        """Write our entries into a file, as `notyet install` does."""
        place = self.place(scope)
        os.makedirs(os.path.dirname(place.path), exist_ok=True)
        text = Path(place.path).read_text() if os.path.exists(place.path) else ""
        start = shlex.quote(str(self.notyet)) if start is None else start
        wanted = entries(self.host, start, timeout)
        text = host_named(self.host).added(text, place, wanted)
        Path(place.path).write_text(text)

    def launch(self):
        """Register the launcher, as `notyet install` does now; return its folder."""
        folder = own_folder(os.environ, own_root())
        lay(folder, own_root())
        self.settings.unlink()
        self.register(start=launched(folder, sys.executable))
        if self.host == "codex":
            self.serve()
        return Path(folder)

    def change(self, change, path=None):
        """Change a JSON file's value."""
        path = path or self.settings
        value = json.loads(path.read_text()) if path.exists() else {}
        change(value)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=2))

    def each_entry(self, **fields):
        """Change our entries themselves."""

        def change(value):
            for groups in value["hooks"].values():
                groups[0]["hooks"][0].update(fields)

        self.change(change)

    def status(self, *argv):
        """Run `notyet status`; return its exit code, and what it prints for programs."""
        self._capsys.readouterr()
        code = main(["status", self.host, "--json", *argv])
        return code, json.loads(self._capsys.readouterr().out)

    def found(self, *argv):
        """Return the exit code, and all that was found by code."""
        code, said = self.status(*argv)
        faults = [*said["faults"], *said["hosts"][0]["faults"]]
        return code, {fault["code"]: fault for fault in faults}

    def shown(self, *argv):
        """Return the exit code, and what a person reads."""
        self._capsys.readouterr()
        code = main(["status", *argv])
        return code, self._capsys.readouterr().out
