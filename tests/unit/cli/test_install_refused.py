"""`notyet install` where something is in its way: one sentence, and nothing was changed."""

import os

import pytest

from notyet.cli.main import main

FILES = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json"}


pytestmark = pytest.mark.usefixtures("place")


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b'{\n  "a": 1,\n}', ":2:9: invalid JSON: trailing comma"),
        (b'{"a": 1} // mine', ":1:10: invalid JSON: JSON has no comments"),
        (b"[]", ":1:1: "),
        (b'{\n "hooks": []\n}', ":2:2: "),
        (b'{"hooks": {"Stop": {}}}', ":1:12: "),
        (b'{"hooks": null}', ":1:2: "),
        (b'{"a": "\xff"}', ":1:8: is not UTF-8"),
        (b"\xff\xfe{\0}\0", ": is UTF-16"),
    ],
)
@pytest.mark.parametrize("host", FILES)
def test_a_file_that_cannot_be_changed_safely_is_left_alone(host, content, where, home, capsys):
    path = home / FILES[host]
    path.parent.mkdir()
    path.write_bytes(content)
    assert main(["install", host, "--yes"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"notyet install: {path}{where}")
    assert said.count("\n") == 1
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("make", ["mkdir", "mkfifo"])
def test_something_else_than_a_file_is_refused(make, place, home, capsys):
    (home / ".claude").mkdir()
    getattr(os, make)(home / ".claude" / "settings.json")
    assert main(["install", "claude", "--yes"]) == 1
    assert "settings.json: " in capsys.readouterr().err


def test_what_cannot_be_written_is_said_in_one_sentence(place, home, capsys):
    (home / ".claude").write_text("a file where a folder should be")
    assert main(["install", "claude", "--yes"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"notyet install: {home}/.claude")
    assert said.count("\n") == 1


def test_a_throw_away_copy_is_refused_but_may_serve_a_project(place, monkeypatch, capsys):
    monkeypatch.setattr("sys.prefix", "/c/uv/archive-v0/x")
    assert main(["install", "claude", "--yes"]) == 1
    assert "uv tool install notyet" in capsys.readouterr().err
    assert main(["install", "claude", "--project", "--yes"]) == 0
