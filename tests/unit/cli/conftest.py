"""Running `notyet with` in the process of the tests."""

import pytest

from notyet.cli.main import main


class Done:
    def __init__(self, code, said):
        self.returncode, self.stdout, self.stderr = code, said.out, said.err


@pytest.fixture
def run_here(monkeypatch, capsys):
    """Run `notyet with` in this process, whose other children are not swept."""
    monkeypatch.setattr("notyet.checks.orphans.adopt_orphans", lambda: False)
    monkeypatch.setattr("notyet.checks.orphans.sweep", lambda *_: 0)

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
