"""A machine with an agent's program and notyet registered with it, for the tests of `status`."""

import json
import os
import shlex
import sys
from pathlib import Path

from hook_runs import ENTRY, new_project, trust
from notyet.cli.main import main
from notyet.hosts.codex import trust as codex_trust
from notyet.install.launcher import launched, lay, own_folder, own_root
from notyet.install.settings import SettingsFile, read_settings, settings_of

GATES = "".join(f'[gates.{name}]\nrun = "true"\nwhen = "always"\n' for name in ("lint", "tests"))
FILES = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "copilot": ".copilot/hooks/notyet.json",
    "openhands": ".openhands/hooks.json",
    "qwen": ".qwen/settings.json",
}
VERSIONS = {
    "claude": "2.1.325 (Claude Code)",
    "codex": "codex-cli 0.166.0",
    "gemini": "0.61.0",
    "copilot": "GitHub Copilot CLI 1.0.102.",
    "openhands": "OpenHands CLI 1.16.0",
    "qwen": "0.24.4",
}


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
        monkeypatch.setattr("notyet.hosts.claude.settings.MANAGED", str(self.managed))
        monkeypatch.setattr("notyet.hosts.codex.settings.MANAGED", str(self.managed))
        self.project = new_project(folder / "project", GATES)
        (self.project / ".git").mkdir()
        monkeypatch.chdir(self.project)
        self.notyet = self.program("notyet", f'exec {sys.executable} -I -S {ENTRY} "$@"')
        self.program(host, f"echo '{VERSIONS[host]}'")
        self.register()

    def program(self, name, script, first="#!/bin/sh"):
        """Put a program on the PATH."""
        path = self.bin / name
        path.write_text(f"{first}\n{script}\n")
        path.chmod(0o755)
        return path

    def gates(self, text):
        """Write and trust the project's configuration."""
        (self.project / "notyet.toml").write_text(text)
        trust(self.project / "notyet.toml")

    def place(self, scope="user"):
        return settings_of(self.host).target(scope, str(self.project), os.environ)

    def register(self, scope="user", start=None, timeout=1800):
        """Write our entries into a file, as `notyet install` does; Codex's user approves them."""
        place = self.place(scope)
        os.makedirs(os.path.dirname(place.path), exist_ok=True)
        text = Path(place.path).read_text() if os.path.exists(place.path) else ""
        start = shlex.quote(str(self.notyet)) if start is None else start
        wanted = settings_of(self.host).entries(start, timeout)
        Path(place.path).write_text(settings_of(self.host).text_with(text, place, wanted))
        self.approve(scope)

    def approve(self, scope="user"):
        """Approve our entries in Codex."""
        if self.host == "codex":
            place = self.place(scope)
            document = read_settings(Path(place.path).read_text(), place)
            hashes = {
                codex_trust.key(place.path, one.event, *one.position): codex_trust.hash_of(
                    one.event, one.handler, one.matcher
                )
                for one in settings_of("codex").registrations(place, document)
            }
            self.config(codex_trust.trusted("", self._config(), hashes))

    def _config(self):
        path = str(self.home / ".codex" / "config.toml")
        return SettingsFile(scope="user", path=path, form="toml")

    def config(self, text):
        """Write Codex's config.toml."""
        (self.home / ".codex" / "config.toml").write_text(text)

    def launch(self):
        """Register the launcher, as `notyet install` does now; return its folder."""
        folder = own_folder(os.environ, own_root())
        lay(folder, own_root())
        self.settings.unlink()
        self.register(start=launched(folder, sys.executable))
        return Path(folder)

    def change(self, change, path=None):
        """Change a JSON file's value."""
        path = path or self.settings
        value = json.loads(path.read_text()) if path.exists() else {}
        change(value)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=2))
        if path == self.settings:
            self.approve()

    def each_entry(self, *events, **fields):
        """Change our entries themselves, of these events or of all."""

        def change(value):
            for event, groups in value["hooks"].items():
                if not events or event in events:
                    groups[0]["hooks"][0].update(fields)

        self.change(change)

    def each_stop(self, line):
        """Write another command for both stops."""
        self.each_entry("Stop", "SubagentStop", command=line)

    def accept(self, folder):
        """Accept a folder in Claude Code."""
        known = {"projects": {str(folder): {"hasTrustDialogAccepted": True}}}
        (self.home / ".claude.json").write_text(json.dumps(known))

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
