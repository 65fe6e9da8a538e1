"""`notyet install`: what it writes, what it says, and what it leaves alone."""

import json
import os
import stat
from pathlib import Path

import pytest

from hook_runs import ask as ask_hook
from hook_runs import new_project, payload, query, stops
from notyet.cli import person
from notyet.cli.main import main
from notyet.install.own_line import own_line
from notyet.install.settings import settings_of

EVENTS = settings_of("claude").events

FILES = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json"}


def commands(path):
    hooks = json.loads(path.read_text())["hooks"]
    return {
        event: [(one["command"], one["timeout"]) for group in groups for one in group["hooks"]]
        for event, groups in hooks.items()
    }


@pytest.mark.parametrize("host", FILES)
def test_a_host_gets_all_events_with_an_absolute_command_and_explicit_timeouts(
    host, place, home, capsys
):
    assert main(["install", host, "--yes"]) == 0
    found = commands(home / FILES[host])
    assert list(found) == list(EVENTS)
    for event, ((command, timeout),) in found.items():
        program, rest = command.split(" hook ")
        assert os.path.isfile(program.split()[-1])
        assert os.access(own_line(command).program, os.X_OK)
        assert timeout == (1800 if event.endswith("Stop") else 30)
        assert rest == f"--host {host} --timeout {timeout}"
    said = capsys.readouterr().out
    assert "installed for " in said
    assert str(home / FILES[host]) in said
    assert query("SELECT what, place, detail FROM acts") == [
        ("install", str(home / FILES[host]), host)
    ]


@pytest.mark.parametrize("host", FILES)
def test_a_second_installation_changes_nothing(host, place, home, capsys):
    main(["install", host, "--yes"])
    path = home / FILES[host]
    before = path.read_bytes(), path.stat().st_mtime_ns
    capsys.readouterr()
    assert main(["install", host, "--yes"]) == 0
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert "already installed" in capsys.readouterr().out
    assert query("SELECT count(*) FROM acts") == [(1,)]


@pytest.mark.parametrize(
    ("said", "seconds"), [("600", 600), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("5", 5)]
)
def test_the_timeout_is_the_hosts_and_ours(said, seconds, place, home):
    assert main(["install", "claude", "--yes", "--timeout", said]) == 0
    found = commands(home / FILES["claude"])
    assert found["Stop"][0][1] == seconds
    assert found["Stop"][0][0].endswith(f" --timeout {seconds}")
    assert found["SessionStart"][0][1] == min(30, seconds)


@pytest.mark.parametrize(
    "said",
    ["", "0", "soon", "1.5", "500ms", "90.5s", "-5", "2d", "²", "99999999", "9" * 5000, "٣", "٣s"],
)
def test_a_timeout_that_hosts_cannot_take_is_refused(said, place, home, capsys):
    assert main(["install", "codex", "--yes", f"--timeout={said}"]) == 1
    assert "write 600, 90s, 10m or 1h" in capsys.readouterr().err
    assert not (home / ".codex").exists()


def test_another_timeout_replaces_our_entry_where_it_stands(place, home):
    main(["install", "claude", "--yes"])
    path = home / FILES["claude"]
    value = json.loads(path.read_text())
    value["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "theirs"}]})
    path.write_text(json.dumps(value, indent=4))
    assert main(["install", "claude", "--yes", "--timeout", "60"]) == 0
    groups = json.loads(path.read_text())["hooks"]["Stop"]
    assert [group["hooks"][0].get("timeout") for group in groups] == [60, None]
    assert path.read_text().startswith('{\n    "hooks"')


def test_what_stands_beside_our_hooks_is_kept_and_a_copy_is_told_of(place, home, capsys):
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    before = '{\r\n\t"model" : "x",\r\n\t"hooks":{"Stop" : [ {"matcher":"*","hooks":[]} ]}\r\n}'
    path.write_bytes(before.encode())
    path.chmod(0o600)
    assert main(["install", "claude", "--yes"]) == 0
    after = path.read_bytes().decode()
    assert after.startswith(before[: before.index("{", 1)])
    assert after.endswith("\r\n}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    said = capsys.readouterr().out
    copy = next(line.split()[1] for line in said.splitlines() if line.startswith("  backup"))
    assert Path(copy).read_bytes() == before.encode()


def test_entries_of_other_checkouts_and_duplicates_become_one(place, home):
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    ours = [
        "'/old checkout/bin/notyet' hook",
        "python3 -m notyet hook",
        "echo 'notyet hook'",
        "notyet conclaude Hooks Stop",
    ]
    handlers = [{"type": "command", "command": command} for command in ours]
    group = [{"hooks": [handler]} for handler in handlers]
    hooks = {
        "Stop": group,
        "SubagentStop": [{"matcher": "Explore", "hooks": handlers[:1]}],
        "stop": group[:1],
    }
    path.write_text(json.dumps({"hooks": hooks}))
    assert main(["install", "claude", "--yes"]) == 0
    found = json.loads(path.read_text())["hooks"]
    assert [g["hooks"][0]["command"].split(" hook ")[0] for g in found["Stop"][1:]] == ours[2:]
    assert "--host claude" in found["Stop"][0]["hooks"][0]["command"]
    (group,) = found["SubagentStop"]
    assert "matcher" not in group
    assert "stop" not in found


def test_an_entry_of_ours_that_would_never_run_is_mended_and_keeps_what_is_harmless(place, home):
    main(["install", "claude", "--yes"])
    path = home / FILES["claude"]
    value = json.loads(path.read_text())
    good = dict(value["hooks"]["Stop"][0]["hooks"][0])
    value["hooks"]["Stop"][0]["hooks"][0] |= {"async": True, "if": "x", "statusMessage": "gates"}
    path.write_text(json.dumps(value))
    assert main(["install", "claude", "--yes"]) == 0
    (group,) = json.loads(path.read_text())["hooks"]["Stop"]
    assert group["hooks"] == [good | {"statusMessage": "gates"}]


@pytest.mark.parametrize("host", FILES)
def test_for_a_project_the_command_works_for_everybody(host, place, home, capsys):
    assert main(["install", host, "--project", "--yes"]) == 0
    found = commands(place / FILES[host])
    rest = f"hook --host {host} --timeout 1800"
    assert found["Stop"][0][0] == (
        f"sh -c 'command -v notyet >/dev/null 2>&1 || exit 0; exec notyet {rest}'"
    )
    assert not (home / FILES[host]).exists()


def test_local_settings_are_for_one_person(place, capsys):
    assert main(["install", "claude", "--local", "--yes"]) == 0
    found = commands(place / ".claude" / "settings.local.json")
    assert own_line(found["Stop"][0][0]).launcher.startswith("/")
    assert main(["install", "codex", "--local", "--yes"]) == 1
    assert "use --user or --project" in capsys.readouterr().err


def test_being_registered_elsewhere_too_is_said(place, home, capsys):
    main(["install", "claude", "--yes"])
    assert "also registered" not in capsys.readouterr().out
    assert main(["install", "claude", "--project", "--yes"]) == 0
    said = capsys.readouterr().out
    assert f"also registered in {home}/.claude/settings.json" in said
    assert "notyet uninstall claude --user" in said


def test_a_dry_run_shows_the_change_and_changes_nothing(place, home, capsys, monkeypatch):
    monkeypatch.setattr(person, "inside_agent", lambda _environ: "CLAUDECODE is set")
    assert main(["install", "claude", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert '  +    "Stop": [' in said
    assert "nothing was changed" in said
    assert not (home / ".claude").exists()
    assert query("SELECT count(*) FROM acts") == []


def test_an_agent_is_refused(place, home, capsys, monkeypatch):
    monkeypatch.setattr(person, "inside_agent", lambda _environ: "CLAUDECODE is set")
    for command in ("install", "uninstall"):
        assert main([command, "claude", "--yes"]) == 1
        assert "an agent may not do this" in capsys.readouterr().err
    assert not (home / ".claude").exists()


def test_without_a_terminal_nobody_is_asked(place, home, capsys, monkeypatch):
    with open(os.devnull) as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        assert main(["install", "claude"]) == 1
    said = capsys.readouterr()
    assert "add --yes" in said.err
    assert '+    "Stop": [' in said.out
    assert not (home / ".claude").exists()


@pytest.mark.parametrize("content", ["", " \n\t\n", "\ufeff", "{}", "\ufeff{ }\n"])
def test_an_empty_file_is_like_none(content, place, home):
    path = home / FILES["claude"]
    path.parent.mkdir()
    path.write_text(content)
    assert main(["install", "claude", "--yes"]) == 0
    text = path.read_text()
    assert text.startswith("\ufeff") == content.startswith("\ufeff")
    assert list(json.loads(text.removeprefix("\ufeff"))["hooks"]) == list(EVENTS)


def test_the_gates_in_force_here_are_shown_and_trusted(place, capsys):
    new_project(place, '[gates]\nlint = "exit 3"\n', trusted=False)
    assert main(["install", "claude", "--yes"]) == 0
    said = capsys.readouterr().out
    assert "lint  exit 3" in said
    assert "trusted: 1 gate of this file in force now" in said
    ask_hook(payload("claude", place))
    assert stops()[-1][0] == "blocked"


def test_gates_with_mistakes_are_not_trusted_and_that_is_no_success(place, capsys):
    new_project(place, "[gates]\na = 5\n", trusted=False)
    assert main(["install", "claude", "--yes"]) == 1
    said = capsys.readouterr()
    assert "installed for Claude Code" in said.out
    assert "notyet install: " in said.err
    assert "fix these mistakes, then trust it" in said.err


def test_without_gates_the_next_step_is_said(place, home, capsys):
    main(["install", "claude", "--yes"])
    assert "next: make gates of what your project checks itself with" in capsys.readouterr().out
    new_project(home / ".config" / "notyet")
    main(["install", "claude", "--yes"])
    assert "notyet.toml" not in capsys.readouterr().out


def test_a_file_that_the_host_cannot_read_is_told_of(place, capsys):
    (place / ".claude").mkdir()
    (place / ".claude" / "settings.json").write_text("{")
    assert main(["install", "claude", "--yes"]) == 0
    assert "settings.json:1:2: invalid JSON" in capsys.readouterr().out
