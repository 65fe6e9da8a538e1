"""What `install` and `uninstall` do with entries that are not simply ours."""

import json
import tomllib

import pytest

from notyet.cli.main import main
from notyet.hosts.codex.trust import hash_of, key
from notyet.install.settings import settings_of

EVENTS = settings_of("claude").events

MIXED = [
    "./lint.sh && notyet hook --host claude",
    "pytest -q; notyet hook",
    "notyet hook || ./notify.sh",
    "if command -v notyet >/dev/null; then notyet hook; else ./mine.sh; fi",
]


@pytest.fixture
def settings(place, home):
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    return path


def write(path, *commands, **more):
    groups = [more | {"hooks": [{"type": "command", "command": one}]} for one in commands]
    path.write_text(json.dumps({"hooks": {"Stop": groups, "SubagentStop": groups}}))
    return groups


@pytest.mark.parametrize("command", MIXED)
def test_a_hook_that_also_runs_other_commands_is_left_alone_and_told_of(command, settings, capsys):
    (group,) = write(settings, command)
    before = settings.read_text()
    assert main(["install", "claude", "--yes"]) == 0
    told = f"{settings}:1:32: this hook also runs other commands; edit it yourself"
    assert told in capsys.readouterr().out
    after = json.loads(settings.read_text())["hooks"]
    assert [len(after[event]) for event in EVENTS] == [2, 2, 1, 1]
    assert after["Stop"][0] == group
    assert main(["uninstall", "claude", "--yes"]) == 1
    assert told in capsys.readouterr().out
    assert settings.read_text() == before
    assert main(["uninstall", "claude", "--yes"]) == 1
    assert "not installed for Claude Code" in capsys.readouterr().out
    assert main(["uninstall", "claude", "--yes", "--local"]) == 0


def test_a_matcher_that_is_dropped_is_told_of_and_the_file_stays_on_one_line(settings, capsys):
    write(settings, "/x/notyet hook", matcher="reviewer")
    assert main(["install", "claude", "--yes"]) == 0
    said = capsys.readouterr().out
    assert "the matcher 'reviewer' is removed; notyet.toml says which agents are gated" in said
    assert said.count("is removed") == 1  # that of a Stop means nothing
    assert "\n" not in settings.read_text()
    assert "matcher" not in json.loads(settings.read_text())["hooks"]["SubagentStop"][0]
    assert main(["install", "claude", "--yes"]) == 0
    assert "is removed" not in capsys.readouterr().out


def planted(home, groups):
    """Write hooks of Codex, all of them approved."""
    path = home / ".codex" / "hooks.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"hooks": {"Stop": groups}}))
    lines = []
    for at, group in enumerate(groups):
        name = json.dumps(key(str(path), "Stop", at, 0))
        lines.append(
            f"[hooks.state.{name}]\ntrusted_hash = '{hash_of('Stop', group['hooks'][0])}'\n"
        )
    (path.parent / "config.toml").write_text("".join(lines))
    return path


def trust_in(home):
    value = tomllib.loads((home / ".codex" / "config.toml").read_text())
    return {name.partition("hooks.json:")[2] for name in value["hooks"]["state"]}


def group_of(command):
    return {"hooks": [{"type": "command", "command": command}]}


def test_other_hooks_of_codex_stay_trusted_when_ours_before_them_go(place, home, capsys):
    path = planted(home, [group_of("/x/notyet hook"), group_of("/y/notyet hook"), group_of("lint")])
    assert main(["install", "codex", "--yes"]) == 0
    said = capsys.readouterr().out
    assert f"hooks after ours move up in {path}, and Codex's trust in them moves along" in said
    assert "Codex's trust follows its hooks" in said
    assert trust_in(home) == {"stop:0:0", "stop:1:0"}
    assert main(["uninstall", "codex", "--yes"]) == 0
    said = capsys.readouterr().out
    assert "moves along" in said
    assert "no longer trusted by Codex" in said
    left = tomllib.loads((home / ".codex" / "config.toml").read_text())["hooks"]["state"]
    handler = group_of("lint")["hooks"][0]
    assert left == {f"{path}:stop:0:0": {"trusted_hash": hash_of("Stop", handler)}}


@pytest.mark.parametrize(
    ("host", "is_twice"), [("claude", True), ("openhands", False), ("vibe", False)]
)
def test_of_two_files_it_is_told_whether_both_count(host, is_twice, place, capsys):
    main(["install", host, "--yes"])
    assert "also registered" not in capsys.readouterr().out
    main(["install", host, "--project", "--yes"])
    said = capsys.readouterr().out
    assert "also registered in" in said
    assert ("so every stop is checked twice" in said) is is_twice
    assert ("runs only the project's here" in said) is not is_twice
    main(["status", host, "--json"])
    codes = [fault["code"] for fault in json.loads(capsys.readouterr().out)["hosts"][0]["faults"]]
    assert ("registered-twice" in codes) is is_twice
    assert ("file-hidden" in codes) is (host == "openhands")


@pytest.mark.parametrize(("given", "is_told"), [("1h", True), ("10m", False), (None, False)])
def test_a_timeout_that_the_host_does_not_grant_is_told_of(given, is_told, place, capsys):
    option = ["--timeout", given] if given else []
    main(["install", "kimi", "--yes", *option])
    assert ("Kimi Code waits at most 10 min for a hook" in capsys.readouterr().out) is is_told
