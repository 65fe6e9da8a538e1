"""`status`, `install`, `uninstall` and `hosts` know the plugin where its host keeps it."""

import json
import os
import shutil
from pathlib import Path

import pytest

from hook_runs import trust
from notyet.cli.main import main
from notyet.hosts.codex.trust import hash_of
from notyet.install.settings import settings_of
from status_world import GATES

PLUGINS = Path(__file__).parents[3] / "plugins"
ON = {"enabledPlugins": {"notyet@notyet": True, "other@notyet": False}}
# The folder of the plugin, and the files that say whether it is on.
PLACES = {
    "claude": (".claude/plugins/cache/notyet/notyet/0.1.0", {".claude/settings.json": ON}),
    "codex": (".codex/plugins/cache/notyet/notyet/0.1.0", {}),
    "copilot": (".copilot/installed-plugins/notyet/notyet", {".copilot/settings.json": ON}),
    "droid": (".factory/plugins/cache/notyet-1/notyet-1/a1", {".factory/settings.json": ON}),
    "gemini": (".gemini/extensions/notyet", {}),
    "goose": (".agents/plugins/notyet", {}),
    "qwen": (".qwen/extensions/notyet", {}),
}
OFF = {
    "claude": (".claude/settings.json", '{"enabledPlugins": {"notyet@notyet": false}}'),
    "codex": (".codex/config.toml", '[plugins."notyet@notyet"]\nenabled = false\n'),
    "copilot": (".copilot/settings.json", '{"enabledPlugins": {"other@notyet": true}}'),
    "droid": (".factory/settings.json", "{"),
    "gemini": (
        ".gemini/extensions/extension-enablement.json",
        '{"notyet": {"overrides": ["/elsewhere/*", "!/*"]}}',
    ),
    "qwen": (
        ".qwen/extensions/extension-enablement.json",
        '{"notyet": {"overrides": ["!%s/*", "/elsewhere/*"]}}',
    ),
}


def lay(host, home):
    """Install the plugin as its host does, approved by its user; return its hooks."""
    folder, files = PLACES[host]
    shutil.copytree(PLUGINS / ("gemini" if host == "gemini" else "notyet"), home / folder)
    for name, value in files.items():
        (home / name).write_text(json.dumps(value))
    if host == "codex":
        approve(home, json.loads((home / folder / "hooks" / "hooks.json").read_text())["hooks"])
    return home / folder / "hooks" / "hooks.json"


def approve(home, hooks):
    """Let Codex's user have the plugin, and approve its hooks."""
    lines = ['[plugins."notyet@notyet"]', "enabled = true"]
    for event, (group,) in hooks.items():
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in event).lstrip("_")
        lines.append(f'[hooks.state."notyet@notyet:hooks/hooks.json:{snake}:0:0"]')
        lines.append(f'trusted_hash = "{hash_of(event, group["hooks"][0])}"')
        lines.append('trusted_content_hash = "sha256:of-the-rest"')
    (home / ".codex" / "config.toml").write_text("\n".join(lines) + "\n")


@pytest.fixture
def world(place, home, monkeypatch):
    """A project with trusted gates, and notyet on the PATH."""
    (place / "notyet.toml").write_text(GATES)
    trust(place / "notyet.toml")
    monkeypatch.setenv("PATH", f"{home / 'bin'}:/usr/bin:/bin")
    program = Path(shutil.which("notyet", path=str(Path(os.sys.executable).parent)))
    (home / "bin").mkdir()
    (home / "bin" / "notyet").symlink_to(program)
    return place


def status(host, capsys):
    """Return the exit code of `status HOST`, the host's part, and the codes of its faults."""
    capsys.readouterr()
    code = main(["status", host, "--json"])
    (found,) = json.loads(capsys.readouterr().out)["hosts"]
    return code, found, [one["code"] for one in found["faults"] if one["level"] != "note"]


@pytest.mark.parametrize("host", PLACES)
def test_a_host_with_the_plugin_is_gated(host, world, home, capsys):
    hooks = lay(host, home)
    code, found, faults = status(host, capsys)
    assert (code, faults) == (0, [])
    assert {one["file"] for one in found["registrations"]} == {str(hooks)}
    assert {one["event"] for one in found["registrations"]} == {*settings_of(host).events}
    assert {one["timeout"] for one in found["registrations"]} == {900, 30}
    assert found["probe"]["says"].endswith("would run lint, tests")
    assert main(["status", host]) == 0
    assert "registered by its plugin (" in capsys.readouterr().out
    assert main(["hosts", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (row,) = [one for one in rows if one["name"] == host]
    assert row["installed"] == {"plugin": str(hooks)}


@pytest.mark.parametrize("host", OFF)
def test_a_plugin_that_is_off_gates_nothing(host, world, home, capsys):
    lay(host, home)
    name, text = OFF[host]
    (home / name).write_text(text.replace("%s", str(world)))
    _, found, _ = status(host, capsys)
    assert found["registrations"] == []


@pytest.mark.parametrize("host", PLACES)
def test_install_leaves_it_to_the_plugin_unless_asked(host, world, home, capsys):
    hooks = lay(host, home)
    before = hooks.read_text()
    assert main(["install", host, "--yes"]) == 0
    said = capsys.readouterr().out
    assert f"has the plugin notyet already: {hooks}" in said
    assert "add --user" in said
    assert hooks.read_text() == before
    assert main(["install", host, "--user", "--yes", "--timeout", "9m"]) == 0
    said = capsys.readouterr().out
    assert "it stands aside for these settings" in said
    assert "checked twice" not in said
    _, found, faults = status(host, capsys)
    assert "registered-twice" not in faults
    assert {540, 900} <= {one["timeout"] for one in found["registrations"]}


@pytest.mark.parametrize("host", PLACES)
def test_uninstall_says_how_the_plugin_is_removed(host, world, home, capsys):
    hooks = lay(host, home)
    before = hooks.read_text()
    remove = settings_of(host).host.plugin.remove
    assert main(["uninstall", host, "--yes"]) == 1
    assert f"has the plugin notyet; to remove it, {remove}" in capsys.readouterr().out
    assert main(["install", host, "--user", "--yes"]) == 0
    assert main(["uninstall", host, "--user", "--yes"]) == 0
    assert hooks.read_text() == before
    assert main(["uninstall", "--all", "--purge", "--yes"]) == 1
    assert "notyet is still registered" in capsys.readouterr().err


def test_a_plugin_is_used_where_its_marketplace_is_on_this_machine(world, home, capsys):
    market = PLUGINS.parent
    known = {"notyet": {"source": {"source": "directory", "path": str(market)}}}
    (home / ".copilot").mkdir()
    (home / ".copilot" / "settings.json").write_text(
        json.dumps(ON | {"extraKnownMarketplaces": known})
    )
    code, found, _ = status("copilot", capsys)
    assert code == 0
    assert found["registrations"][0]["file"] == str(market / "plugins/notyet/hooks/hooks.json")


def test_a_plugin_without_the_program_is_a_fault(world, home, capsys):
    lay("claude", home)
    (home / "bin" / "notyet").unlink()
    code, found, faults = status("claude", capsys)
    assert (code, faults) == (1, ["program-missing"])
    assert "on the PATH of Claude Code" in found["faults"][0]["fix"]


def test_codex_s_user_has_to_approve_the_plugin(world, home, capsys):
    lay("codex", home)
    config = home / ".codex" / "config.toml"
    approved = config.read_text()
    config.write_text(approved.replace("sha256:", "sha256:0"))
    assert set(status("codex", capsys)[2]) == {"hook-modified"}
    config.write_text(approved.replace("trusted_content_hash", "other"))
    assert set(status("codex", capsys)[2]) == {"hook-untrusted"}
    config.write_text('[plugins."notyet@notyet"]\nenabled = true\n')
    code, found, faults = status("codex", capsys)
    assert (code, set(faults)) == (1, {"hook-untrusted"})
    assert "approve the hooks of the plugin notyet" in found["faults"][0]["fix"]


def test_a_longer_wait_than_the_plugin_s_is_registered(world, home, capsys):
    lay("claude", home)
    (world / "notyet.toml").write_text('[gates.slow]\nrun = "true"\ntimeout = "20m"\n')
    trust(world / "notyet.toml")
    _, found, faults = status("claude", capsys)
    assert faults == ["gates-too-slow"]
    assert "notyet install claude --user --timeout 21m" in found["faults"][0]["fix"]
