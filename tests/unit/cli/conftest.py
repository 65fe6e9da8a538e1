"""Running `notyet with` in the process of the tests, and a person before `notyet install`."""

import json
import os
from pathlib import Path

import pytest

from notyet.cli import install, person
from notyet.cli.main import main


@pytest.fixture(autouse=True)
def _no_launcher(request, monkeypatch):
    """Lay no launcher: that takes a second, and only its own tests look at it."""
    if request.path.stem != "test_install_launcher":
        monkeypatch.setattr(install, "lay", lambda *_: None)
        monkeypatch.setattr(install, "is_laid", lambda *_: True)


@pytest.fixture
def home():
    """The home of a user, which no other test shares."""
    return Path(os.environ["HOME"])


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty project, with a person before it."""
    monkeypatch.setattr(person, "inside_agent", lambda _environ: "")
    folder = tmp_path / "p"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


class Asked:
    """What `notyet check` said."""

    def __init__(self, code, said):
        self.code, self.out, self.err = code, said.out, said.err

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def check(monkeypatch, capsys):
    """Run `notyet check` in a folder, in this process, whose other children are not swept."""
    monkeypatch.setattr("notyet.run.groups.adopt_orphans", lambda: False)
    monkeypatch.setattr("notyet.run.groups.sweep", lambda *_: 0)

    def check(folder, *argv):
        monkeypatch.chdir(folder)
        capsys.readouterr()
        try:
            code = main(["check", *map(str, argv)])
        except SystemExit as leaving:
            code = leaving.code
        return Asked(code, capsys.readouterr())

    return check


class Done:
    def __init__(self, code, said):
        self.returncode, self.stdout, self.stderr = code, said.out, said.err


@pytest.fixture
def run_here(monkeypatch, capsys):
    """Run `notyet with` in this process, whose other children are not swept."""
    monkeypatch.setattr("notyet.run.groups.adopt_orphans", lambda: False)
    monkeypatch.setattr("notyet.run.groups.sweep", lambda *_: 0)

    def run_here(folder, *argv, agent="scripted:agent.toml", prompt="Make it ready.", **environ):
        monkeypatch.chdir(folder)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        try:
            code = main(["with", agent, prompt, *argv])
        except SystemExit as leaving:
            code = leaving.code
        return Done(code, capsys.readouterr())

    return run_here
