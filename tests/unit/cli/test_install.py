"""`notyet install`: what it writes, what it says, and what it leaves alone."""

import json
import os
import stat
from pathlib import Path

import pytest

from hook_runs import query
from notyet.cli.main import main
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
        assert os.path.isabs(program.split()[-1])
        assert timeout == (1800 if event.endswith("Stop") else 30)
        assert rest.partition(" || ")[0] == f"--host {host} --timeout {timeout}"
    said = capsys.readouterr().out
    assert "installed for " in said
    assert str(home / FILES[host]) in said
    assert query("SELECT what, place, detail FROM acts") == [
        ("install", str(home / FILES[host]), host)
    ]


@pytest.mark.parametrize(
    ("said", "seconds"), [("600", 600), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("5", 5)]
)
def test_the_timeout_is_the_hosts_and_ours(said, seconds, place, home):
    assert main(["install", "claude", "--yes", "--timeout", said]) == 0
    found = commands(home / FILES["claude"])
    assert found["Stop"][0][1] == seconds
    assert f" --timeout {seconds} || " in found["Stop"][0][0]
    assert found["SessionStart"][0][1] == min(30, seconds)


def test_a_host_that_waits_only_so_long_is_not_told_to_wait_longer(place, home, capsys):
    (place / "notyet.toml").write_text('[gates.slow]\nrun = "true"\ntimeout = "20m"\n')
    assert main(["install", "kimi", "--yes"]) == 0
    assert "600 s at a stop, 30 s at a start" in capsys.readouterr().out
    assert "\ntimeout = 600\n" in (home / ".kimi-code" / "config.toml").read_text()
    main(["status", "kimi"])
    shown = capsys.readouterr().out
    assert "but Kimi Code waits 597 s" in shown
    assert "fix: lower their `timeout`\n" in shown
    main(["install", "kimi", "--yes", "--timeout", "5m"])
    main(["status", "kimi"])
    assert "lower their `timeout`, or run: notyet install kimi" in capsys.readouterr().out


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


def test_being_registered_elsewhere_too_is_said(place, home, capsys):
    main(["install", "claude", "--yes"])
    assert "also registered" not in capsys.readouterr().out
    assert main(["install", "claude", "--project", "--yes"]) == 0
    said = capsys.readouterr().out
    assert f"also registered in {home}/.claude/settings.json" in said
    assert "notyet uninstall claude --user" in said


def test_a_file_that_the_host_cannot_read_is_told_of(place, capsys):
    (place / ".claude").mkdir()
    (place / ".claude" / "settings.json").write_text("{")
    assert main(["install", "claude", "--yes"]) == 0
    assert "settings.json:1:2: invalid JSON" in capsys.readouterr().out


@pytest.mark.parametrize("scope", ["--user", "--project"])
def test_copilot_gets_a_file_of_ours_which_is_gone_after_uninstalling(scope, place, home, capsys):
    (place / ".git").mkdir(exist_ok=True)
    folder = place / ".github" if scope == "--project" else home / ".copilot"
    assert main(["install", "copilot", "--yes", scope]) == 0
    written = json.loads((folder / "hooks" / "notyet.json").read_text())
    assert written["version"] == 1
    assert list(written["hooks"]) == ["agentStop", "subagentStop", "sessionStart", "subagentStart"]
    for event, (entry,) in written["hooks"].items():
        assert entry.keys() == {"type", "bash", "timeoutSec"}
        assert entry["timeoutSec"] == (1800 if event.endswith("Stop") else 30)
        assert f"hook --host copilot --timeout {entry['timeoutSec']}" in entry["bash"]
    assert main(["install", "copilot", "--yes", scope]) == 0
    assert main(["uninstall", "copilot", "--yes"]) == 0
    assert not (folder / "hooks").exists()
