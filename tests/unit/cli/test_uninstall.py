"""`notyet uninstall`: what was there before comes back."""

import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hook_runs import ask, begin, new_project, payload, query
from notyet.cli import uninstall
from notyet.cli.main import main

FILES = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json"}
THEIRS = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "lint"}]}]}}
ODD = [
    b"",
    b" \n",
    b"{}",
    b"{ }\r\n",
    b"{\n}",
    b'\xef\xbb\xbf{"hooks":{}}',
    b'{"hooks": {"Stop": []}, "a": [1 ,2]}',
    b'{\n\t"a": "\\u00e9\xc3\xa9",\n\t"a": 2\n}',
    b'{"hooks": {"Stop": [ ]}, "x": []}\n\n',
]


@pytest.mark.parametrize(
    ("host", "content"),
    [*(("claude", content) for content in ODD), *(("codex", content) for content in ODD[:2])],
)
def test_every_byte_comes_back(host, content, place, home):
    path = home / FILES[host]
    path.parent.mkdir()
    path.write_bytes(content)
    assert main(["install", host, "--yes", "--timeout", "99"]) == 0
    assert main(["install", host, "--yes"]) == 0
    assert path.read_bytes() != content
    assert main(["uninstall", host, "--yes"]) == 0
    assert path.read_bytes() == content


@pytest.mark.parametrize("host", FILES)
def test_where_there_was_no_file_there_is_none_again(host, place, home, capsys):
    main(["install", host, "--yes"])
    main(["install", host, "--yes", "--timeout", "99"])
    assert main(["uninstall", host, "--yes"]) == 0
    assert not (home / FILES[host]).parent.exists()
    assert "uninstalled from" in capsys.readouterr().out
    acts = [what for (what,) in query("SELECT what FROM acts")]
    assert acts == ["install", "install", "uninstall"]


def test_what_others_changed_since_stays(place, home):
    path = home / FILES["claude"]
    path.parent.mkdir()
    path.write_text(json.dumps(THEIRS, indent=2))
    main(["install", "claude", "--yes"])
    value = json.loads(path.read_text())
    value["model"] = "x"
    value["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "later"}]})
    value["hooks"]["SessionStart"][0]["hooks"].insert(0, {"type": "command", "command": "begin"})
    path.write_text(json.dumps(value, indent=2))
    assert main(["uninstall", "claude", "--yes"]) == 0
    left = json.loads(path.read_text())
    assert left == {
        "hooks": {
            "Stop": [
                *THEIRS["hooks"]["Stop"],
                {"hooks": [{"type": "command", "command": "later"}]},
            ],
            "SessionStart": [{"hooks": [{"type": "command", "command": "begin"}]}],
        },
        "model": "x",
    }


def test_our_entries_are_found_however_they_were_written(place, home):
    path = home / FILES["claude"]
    path.parent.mkdir()
    commands = ["'/a b/notyet' hook", "uvx notyet hook --host claude", "lint # notyet"]
    groups = [{"hooks": [{"type": "command", "command": command}]} for command in commands]
    groups.append({"hooks": [{"type": "command", "command": "/x/notyet", "args": ["hook"]}]})
    path.write_text(json.dumps({"hooks": {"Stop": groups, "stop": groups[:1]}}))
    assert main(["uninstall", "claude", "--yes"]) == 0
    assert json.loads(path.read_text()) == {"hooks": {"Stop": groups[2:3]}}


def test_all_scopes_are_cleared_unless_one_is_named(place, home, capsys):
    for scope in ("--user", "--project", "--local"):
        main(["install", "claude", "--yes", scope])
    assert main(["uninstall", "claude", "--yes", "--local"]) == 0
    assert sorted(os.listdir(place / ".claude")) == ["settings.json"]
    assert (home / FILES["claude"]).exists()
    assert main(["uninstall", "claude", "--yes"]) == 0
    assert not (place / ".claude").exists()
    assert not (home / ".claude").exists()


def test_conclaudes_command_line_and_managed_settings_are_left_alone(
    place, home, capsys, monkeypatch, tmp_path
):
    monkeypatch.setattr("notyet.hosts.claude.settings.MANAGED", str(tmp_path))
    for path, command in (
        (home / FILES["claude"], "notyet conclaude Hooks Stop"),
        (tmp_path / "managed-settings.json", "notyet hook"),
    ):
        path.parent.mkdir(exist_ok=True)
        hooks = {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}
        path.write_text(json.dumps({"hooks": hooks}))
    assert main(["uninstall", "claude", "--yes"]) == 0
    said = capsys.readouterr().out
    assert "because it is conclaude's command line" in said
    assert "belongs to your administrator" in said
    assert "conclaude" in (home / FILES["claude"]).read_text()


def test_trust_of_codex_goes_with_the_hooks(place, home, capsys):
    config = home / ".codex" / "config.toml"
    config.parent.mkdir()
    before = "model = 'x' # mine\n\n[hooks.state.'/other:stop:0:0']\ntrusted_hash = 'y'\n"
    config.write_text(before)
    main(["install", "codex", "--yes", "--trust"])
    assert 'trusted_hash = "sha256:' in config.read_text()
    assert main(["uninstall", "codex", "--yes"]) == 0
    assert config.read_text() == before
    assert "no longer trusted by Codex" in capsys.readouterr().out


def everything(*folders):
    return sorted(str(path) for folder in folders for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def used(place, home, capsys):
    """A notyet that stored something of every kind; return the folders of its state and data."""
    assert main(["install", "claude", "--yes"]) == 0
    new_project(place, '[gates.bad]\nrun = "seq 9999; exit 1"\nwhen = "always"\n')
    ask(payload("claude", place))
    assert main(["off"]) == 0
    state = Path(os.environ["XDG_STATE_HOME"]) / "notyet"
    data = home / ".local" / "share" / "notyet"
    for folder in ("0123456789ab", "ba9876543210"):
        (data / folder).mkdir(parents=True)
        (data / folder / "launch.py").touch()
        (data / folder / "hook.cpython-311.pack").touch()
    (state / "sessions").mkdir(exist_ok=True)
    (state / "ledger.db.corrupt-20260101-000000").touch()
    capsys.readouterr()
    return state, data


def test_purge_removes_all_that_is_stored_and_nothing_else(used, place, home, capsys):
    state, data = used
    (state / "mine.txt").touch()
    (state / "logs").mkdir(exist_ok=True)
    (state / "logs" / "mine.log").touch()
    (data / "0123456789ab" / "mine.py").touch()
    users = Path(os.environ["XDG_CONFIG_HOME"]) / "notyet" / "notyet.toml"
    users.parent.mkdir(parents=True, exist_ok=True)
    users.touch()
    names = (
        "trust",
        "off",
        "sessions",
        "backups",
        "ledger.db",
        "ledger.db.corrupt-20260101-000000",
    )
    before = everything(state, data, home)
    assert main(["uninstall", "--purge", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert all(f"  {state / name}\n" in said for name in names)
    assert everything(state, data, home) == before
    assert main(["uninstall", "--purge", "--yes"]) == 0
    assert not (home / FILES["claude"]).exists()
    kept = ["0123456789ab/mine.py", "logs/mine.log", "mine.txt"]
    assert everything(state, data) == sorted(
        str((data if "/mine.py" in name else state) / name) for name in kept
    )
    assert users.exists()
    assert (place / "notyet.toml").exists()
    capsys.readouterr()
    assert main(["uninstall", "--purge", "--yes"]) == 0
    assert "nothing is stored" in capsys.readouterr().out


def test_purge_leaves_no_empty_folders(used, capsys):
    assert main(["uninstall", "--purge", "--yes"]) == 0
    assert not any(folder.exists() for folder in used)


def test_purge_removes_what_new_kinds_of_gates_stored(git_project, home, capsys):
    project = Path(git_project)
    made = 'run = "echo 1 failed in 0.1s; exit 1"\nnew_failures_only = true\n'
    new_project(project, f'[gates.tests]\n{made}[gates.guard]\nguard = "tests"\n')
    begin("claude", project)
    (project / "file.txt").write_text("two\n")
    ask(payload("claude", project))
    state = Path(os.environ["XDG_STATE_HOME"]) / "notyet"
    assert [*(state / "snapshots").iterdir()]
    assert main(["uninstall", "--all", "--purge", "--yes"]) == 0
    assert not state.exists()
    assert everything(home) == []


def test_purge_knows_every_name_in_the_state_folder():
    pattern = re.compile(r'join\([\w.]*state[\w.()]*, "([\w.-]+)"|\{state\}/([a-z-]+)')
    sources = Path(uninstall.__file__).parent.parent.rglob("*.py")
    found = [names for path in sources for names in pattern.findall(path.read_text())]
    used = {name for names in found for name in names if name}
    assert {"trust", "snapshots", "judge", "acp"} <= used
    assert used - {*uninstall._OURS, "logs", "notyet"} == set()


def test_all_hosts_are_cleared_at_once(place, home, capsys):
    for host in FILES:
        assert main(["install", host, "--yes"]) == 0
    assert main(["uninstall", "--all", "--yes"]) == 0
    assert everything(home / ".claude", home / ".codex") == []
    capsys.readouterr()
    assert main(["uninstall", "--all", "--yes"]) == 0
    assert "notyet is not registered with any host here" in capsys.readouterr().out


def test_purge_without_a_yes_removes_nothing_that_is_stored(used, capsys):
    before = everything(*used)
    assert main(["uninstall", "--purge"]) == 1
    assert "add --yes" in capsys.readouterr().err
    assert everything(*used) == before


def test_purge_leaves_another_programs_database_alone(used, tmp_path, monkeypatch, capsys):
    theirs = tmp_path / "app.db"
    with closing(sqlite3.connect(theirs)) as db, db:
        db.execute("CREATE TABLE theirs (x)")
    monkeypatch.setenv("NOTYET_LEDGER", str(theirs))
    main(["uninstall", "--purge", "--yes"])
    assert f"{theirs} is not a ledger, and is kept" in capsys.readouterr().out
    assert theirs.exists()


@pytest.mark.parametrize(
    "argv", [["claude", "--purge"], ["--purge", "--user"], [], ["claude", "--all"]]
)
def test_purge_stands_alone_and_else_a_host_is_named(argv, place, capsys):
    assert main(["uninstall", *argv]) == 2
    assert re.search("--purge|--all", capsys.readouterr().err)
