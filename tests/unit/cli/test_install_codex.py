"""`notyet install codex`: hooks in TOML, and trust."""

import tomllib

import pytest

from notyet.cli.main import main
from notyet.install.settings import settings_of

EVENTS = settings_of("claude").events


def test_hooks_of_codex_in_toml_stay_in_toml(place, home):
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    before = (
        '# mine\n[[hooks.Stop]] # first\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "x"\n'
    )
    path.write_text(before)
    assert main(["install", "codex", "--yes", "--trust"]) == 0
    assert path.read_text().startswith(before)
    value = tomllib.loads(path.read_text())
    assert [len(value["hooks"][event]) for event in EVENTS] == [2, 1, 1, 1]
    assert f"{path}:stop:1:0" in value["hooks"]["state"]
    assert not (home / ".codex" / "hooks.json").exists()
    assert main(["install", "codex", "--yes", "--trust", "--timeout", "60"]) == 0
    value = tomllib.loads(path.read_text())
    assert [group["hooks"][0].get("timeout") for group in value["hooks"]["Stop"]] == [None, 60]
    assert main(["uninstall", "codex", "--yes"]) == 0
    assert path.read_text() == before


def test_codex_users_learn_how_to_approve_or_let_us_write_it(place, home, capsys):
    assert main(["install", "codex", "--yes"]) == 0
    assert "next: start codex, type /hooks" in capsys.readouterr().out
    assert not (home / ".codex" / "config.toml").exists()
    assert main(["install", "codex", "--yes", "--trust"]) == 0
    said = capsys.readouterr().out
    assert "without asking" in said
    assert "/hooks" not in said.replace(f"{home}/.codex/hooks.json", "")
    state = tomllib.loads((home / ".codex" / "config.toml").read_text())["hooks"]["state"]
    assert len(state) == 4
    assert main(["install", "codex", "--yes"]) == 0
    assert "next: start codex" not in capsys.readouterr().out
    assert main(["install", "codex", "--yes", "--timeout", "9"]) == 0
    assert "next: start codex" in capsys.readouterr().out
    assert main(["install", "codex", "--project", "--yes"]) == 0
    assert "only in a project that you trust" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ('\ufeff{"hooks": {}}', ":1:1: Codex reads no file that begins with a byte order mark"),
        ('{"hooks": {},\n "hooks": {}}', ":2:2: `hooks` is written twice, so Codex reads nothing"),
        ('{"hooks": {}, "model": 1}', ":1:15: Codex does not know `model`, so it reads nothing"),
    ],
)
def test_a_file_that_codex_would_drop_as_a_whole_is_refused(content, where, place, home, capsys):
    path = home / ".codex" / "hooks.json"
    path.parent.mkdir()
    path.write_text(content)
    assert main(["install", "codex", "--yes"]) == 1
    assert capsys.readouterr().err.startswith(f"notyet install: {path}{where}")
    assert path.read_text() == content
