"""The plugin's hook stands aside where the host's settings register notyet (B12)."""

import json
import os
import sys
from pathlib import Path

import pytest

from hook_runs import FAILING, ask, begin, new_project, payload, stops
from notyet.cli.main import main
from notyet.install.launcher import launcher_path, own_folder, own_root
from wire import VECTORS

EVERY = FAILING + 'for = "all"\n'
HOOK = {"type": "command", "command": "notyet hook --host claude"}


def register(path, *events, **fields):
    """Write settings of Claude Code's kind that call notyet at these events."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hooks = {event: [{"hooks": [HOOK | fields]}] for event in events}
    path.write_text(json.dumps({"hooks": hooks}))


def blocks(content):
    """Return whether the plugin's hook sends an agent back."""
    return "it is broken" in ask(content, "--via", "plugin").stdout


@pytest.mark.rule("B12")
def test_the_plugin_alone_gates_and_beside_settings_the_stop_counts_once(place, home):
    new_project(place, FAILING)
    assert blocks(payload("claude", place))
    register(home / ".claude" / "settings.json", "Stop")
    second = payload("claude", place, session_id="s2")
    both = [ask(second, *line) for line in (("--via", "plugin"), ())]
    assert [bool(reply.stdout) for reply in both] == [False, True]
    assert len(stops()) == 2


@pytest.mark.rule("B12")
def test_an_event_that_is_not_in_the_settings_is_the_plugin_s(place, home):
    new_project(place, EVERY)
    register(home / ".claude" / "settings.json", "Stop")
    agent = {"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_type": "coder"}
    assert blocks(payload("claude", place, **agent))
    assert not blocks(payload("claude", place))
    assert len(stops()) == 1


@pytest.mark.rule("B12")
@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("home/.claude/settings.json", {"async": True}),
        ("home/.claude/settings.json", {"if": "Bash(ls)"}),
        ("home/.claude/settings.json", {"command": HOOK["command"] + " --via plugin"}),
        (
            "home/.claude/settings.json",
            {"command": "/x/python3 -I -S /gone/notyet/0123456789ab/launch.py hook"},
        ),
        ("p/.claude/settings.json", {}),  # Claude Code is started in a folder below
    ],
)
def test_an_entry_that_is_not_run_leaves_the_stop_to_the_plugin(name, fields, place, home):
    new_project(place, FAILING)
    below = place / "below"
    below.mkdir()
    root, _, path = name.partition("/")
    register({"home": home, "p": place}[root] / path, "Stop", **fields)
    assert blocks(payload("claude", below))


@pytest.mark.rule("B12")
def test_an_organisation_that_allows_plugins_only_has_the_plugin_s_hook_run(
    place, home, tmp_path, monkeypatch
):
    new_project(place, FAILING)
    register(home / ".claude" / "settings.json", "Stop")
    monkeypatch.setattr("notyet.hosts.claude.settings.MANAGED", str(tmp_path))
    (tmp_path / "managed-settings.json").write_text('{"strictPluginOnlyCustomization": true}')
    assert blocks(payload("claude", place))


@pytest.mark.rule("B12")
def test_settings_that_cannot_be_judged_leave_the_stop_to_both(place, home, monkeypatch):
    new_project(place, FAILING)
    register(home / ".claude" / "settings.json", "Stop")
    monkeypatch.setitem(sys.modules, "notyet.install.settings", None)
    assert blocks(payload("claude", place))


@pytest.mark.rule("N5")
@pytest.mark.parametrize("is_on", [True, False])
def test_a_stop_that_only_the_plugin_is_registered_for_is_not_missed(is_on, place, home):
    new_project(place, FAILING)
    register(home / ".claude" / "settings.json", "SessionStart")
    settings = json.loads((home / ".claude" / "settings.json").read_text())
    settings["enabledPlugins"] = {"notyet@notyet": is_on}
    (home / ".claude" / "settings.json").write_text(json.dumps(settings))
    folder = home / ".claude" / "plugins" / "cache" / "notyet" / "notyet" / "0.1.0" / "hooks"
    folder.mkdir(parents=True)
    (folder / "hooks.json").write_text("{}")
    said, _ = begin("claude", place)
    assert ("Stop is not registered" in said) != is_on


@pytest.mark.rule("B12")
def test_codex_runs_the_plugin_s_hook_until_the_other_is_approved(place, home):
    new_project(place, FAILING)
    assert main(["install", "codex", "--yes"]) == 0
    launcher = Path(launcher_path(own_folder(os.environ, own_root())))
    launcher.parent.mkdir(parents=True)
    launcher.touch()
    assert blocks(payload("codex", place))
    assert main(["install", "codex", "--yes", "--trust"]) == 0
    assert not blocks(payload("codex", place))


@pytest.mark.rule("B12", "G6")
@pytest.mark.parametrize("name", [".github/hooks/notyet.json", ".claude/settings.json"])
def test_copilot_s_plugin_stands_aside_for_files_of_a_project_it_trusts(
    name, place, home, monkeypatch
):
    new_project(place, FAILING)
    register(place / ".claude" / "settings.json", "Stop")
    if name.startswith(".github"):
        (place / ".claude" / "settings.json").unlink()
        (place / name).parent.mkdir(parents=True)
        entry = {"type": "command", "bash": "notyet hook --host copilot"}
        (place / name).write_text(json.dumps({"hooks": {"agentStop": [entry]}}))
    sent = json.loads((VECTORS / "payloads" / "copilot" / "Stop.first.json").read_text())
    sent["cwd"] = str(place)
    monkeypatch.setenv("COPILOT_PROJECT_DIR", str(place))
    monkeypatch.chdir(home)  # the folder of the plugin
    assert blocks(sent)
    monkeypatch.setenv("COPILOT_ALLOW_ALL", "true")
    assert not blocks(sent)


def test_what_is_no_way_to_be_called_is_ignored_and_the_stop_is_gated(place):
    new_project(place, FAILING)
    reply = ask(payload("claude", place), "--via", "elsewhere")
    assert "it is broken" in reply.stdout
    assert os.getcwd() == str(place)
