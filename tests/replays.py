"""Stops that are recorded and then replayed, for the tests of `notyet replay`."""

import json
from pathlib import Path

from hook_runs import ask, payload, trust
from notyet.cli.main import main

GATES = """\
[limits]
max_blocks = 2
stuck_after = 0

[gates.lint]
run = "test ! -e lint-fails || { echo lint; exit 1; }"
when = "always"

[gates.tests]
run = "test ! -e tests-fail || { echo tests; exit 1; }"
when = "always"
slow = true
"""
EVIL = "\x1b[31mred\x1b[0m\u202e"


def replayable(git_project, monkeypatch):
    """Make a project with two gates, each of which fails when a file is there."""
    monkeypatch.setattr("notyet.run.groups.adopt_orphans", lambda: False)
    monkeypatch.setattr("notyet.run.groups.sweep", lambda *_: 0)
    monkeypatch.chdir(git_project)
    folder = Path(git_project)
    (folder / "notyet.toml").write_text(GATES)
    trust(folder / "notyet.toml")
    return folder


def stop(project, session, *failing, active=False, **fields):
    """Let an agent stop, while these gates fail."""
    for name in ("lint-fails", "tests-fail"):
        if name in failing:
            (project / name).touch()
        else:
            (project / name).unlink(missing_ok=True)
    host = fields.pop("host", "claude")
    more = {"stop_hook_active": active} | fields
    return ask(payload(host, project, session_id=session, **more), "--host", host)


def capped(project, session="s1"):
    """Let an agent stop until it is let go: blocked, blocked, capped."""
    stop(project, session, "lint-fails")
    stop(project, session, "lint-fails", active=True)
    stop(project, session, "lint-fails", active=True)


def changed(project, *changes, name="new.toml"):
    """Write the configuration with changes to a file beside the one that is in force."""
    text = (project / "notyet.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (project / name).write_text(text)
    return str(project / name)


def replayed(capsys, *words):
    """Replay, and return what was found of each stop, and of all."""
    capsys.readouterr()
    code = main(["replay", "--json", *words])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    summary = lines.pop()
    assert summary["kind"] == "summary"
    assert code == (1 if summary["differs"] else 0)
    return lines, summary


def results(lines):
    return [(line["was"], line["result"], "/".join(line["could_be"])) for line in lines]
