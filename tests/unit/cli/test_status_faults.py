"""Every fault that `notyet status` knows, planted into a machine where all is well."""

import os
from pathlib import Path

import pytest

from notyet import Ledger, StopEvent
from notyet.cli.main import main
from notyet.config.load import Setup
from notyet.config.off import switch_off
from notyet.ledger.connection import default_path
from notyet.status.fault import CODES, LEVELS
from notyet.status.notyet_faults import notyet_faults
from status_world import GATES, World

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "status.md"
BOTH = ("claude", "codex")
CLAUDE, CODEX = BOTH[:1], BOTH[1:]
GEMINI, QWEN, OPENHANDS = ("gemini",), ("qwen",), ("openhands",)
# No faults, but agents are not certainly checked.
NOT_A_YES = ("not-probed", "no-gates", "folder-not-accepted")
REVIEW = f'{GATES}[gates.review]\nrun = "true"\nfor = "*"\n'
SLOW = "".join(f'[gates.g{n}]\nrun = "true"\ntimeout = "10m"\npriority = {n}\n' for n in range(4))


def without(event):
    return lambda world: world.change(lambda value: value["hooks"].pop(event))


def changed(*events, **fields):
    return lambda world: world.each_entry(*events, **fields)


def setting(name="", **fields):
    """Change the user's settings, the project's or those of the organisation."""

    def plant(world):
        folder = f".{world.host}"
        places = {"": None, "project": world.project / folder / "settings.json"}
        places["local"] = world.project / ".claude/settings.local.json"
        places["managed"] = world.managed / "managed-settings.json"
        world.change(lambda value: value.update(fields), places[name])

    return plant


def project_has_hooks(world):
    (world.project / ".openhands").mkdir()
    (world.project / ".openhands/hooks.json").write_text('{"hooks": {}}')


def also_in_the_project(world):
    world.register("project", start="")


def distrusted(world):
    only_in_the_project(world)
    world.settings.write_text('{"security": {"folderTrust": {"enabled": true}}}')


def answering(script, name="notyet"):
    return lambda world: world.program(name, script)


def config(old, new):
    """Change Codex's config.toml."""

    def plant(world):
        path = world.home / ".codex/config.toml"
        world.config(path.read_text().replace(old, new) if old else path.read_text() + new)

    return plant


def timed_out(name, script, variable):
    def plant(world):
        world.monkeypatch.setattr(variable, 0.5)
        world.program(name, script)

    return plant


def with_variable(name):
    return lambda world: world.monkeypatch.setenv(name, "1")


def no_subagents_although_a_gate_is_for_them(world):
    world.gates(REVIEW)
    without("SubagentStop")(world)


def twice(world):
    world.change(lambda value: value["hooks"]["Stop"].extend(value["hooks"]["Stop"]))


def matcher(pattern):
    def plant(world):
        world.change(lambda value: value["hooks"]["SubagentStop"][0].update(matcher=pattern))

    return plant


def half_a_file(world):
    world.settings.write_text(world.settings.read_text()[:-9])


def misspelt(world):
    world.change(lambda value: value["hooks"].update(stop=value["hooks"]["Stop"]))


def of_another_host(world):
    world.each_entry("SessionStart", command=f"{world.notyet} hook --host notyet --timeout 1800")


def a_folder(world):
    world.settings.unlink()
    world.settings.mkdir()


def unknown_key(world):
    world.change(lambda value: value.update(version=1))


def another_hook(**fields):
    """Add a hook of another program, for which Codex ignores the whole file."""
    hook = {"type": "command", "command": "true"} | fields

    def plant(world):
        world.change(lambda value: value["hooks"].update(PreToolUse=[{"hooks": [hook]}]))

    return plant


def half_a_file_of_the_project(world):
    (world.project / ".claude").mkdir()
    (world.project / ".claude" / "settings.json").write_text("{")


def requirements(world):
    world.managed.mkdir()
    (world.managed / "requirements.toml").write_text("allow_managed_hooks_only = true\n")


def not_on_the_path(world):
    world.settings.unlink()
    world.notyet.unlink()
    world.register(start="")


def only_in_the_project(world):
    world.settings.unlink()
    world.register("project")


def launcher_of_another_version(world):
    path = world.launch() / "launch.py"
    path.write_text(f"{path.read_text()}# of another version\n")


def only_subagents_are_not_answered(world):
    (world.bin / "quiet").mkdir()
    quiet = world.program("quiet/notyet", "exit 0")
    command = f"{quiet} hook --host {world.host} --timeout 1800"
    world.each_entry("SubagentStop", command=command)


def stop_line(before):
    return lambda w: w.each_stop(f"{before} {w.notyet} hook --host {w.host} --timeout 1800")


def moved_files(world):
    env = {"XDG_STATE_HOME": str(world.folder / "no")}
    world.change(lambda value: value.update(env=env))


def program_of_a_project_that_is_not_accepted(world):
    world.settings.unlink()
    world.notyet.rename(world.project / "notyet")
    world.register("project", start="./notyet")


def only_in_a_strange_project(world):
    world.settings.unlink()
    world.register("project")


def elsewhere(text):
    def plant(world):
        other = world.folder / "other"
        other.mkdir()
        if text:
            (other / "notyet.toml").write_text(text)
        world.monkeypatch.chdir(other)

    return plant


def untrusted(text):
    return lambda world: (world.project / "notyet.toml").write_text(text)


def a_folder_instead_of_the_file(world):
    (world.project / "notyet.toml").unlink()
    (world.project / "notyet.toml").mkdir()


def not_a_ledger(world):
    path = world.folder / "stops.db"
    path.write_text("this is a letter to my mother")
    world.monkeypatch.setenv("NOTYET_LEDGER", str(path))


def damaged_ledger(world):
    path = default_path(os.environ)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(path).write_bytes(b"x" * 4000)


OTHER_VERSION = 'echo \'{"systemMessage": "notyet 0.0.1: would run lint"}\''
ZSH = {"shell": "zsh"}


def users_gate_of_the_same_name(_world):
    folder = Path(os.environ["XDG_CONFIG_HOME"], "notyet")
    folder.mkdir(parents=True)
    (folder / "notyet.toml").write_text('[gates]\nlint = "true"\n')


def a_share_that_fails(_world):
    folder = Path(os.environ["XDG_CONFIG_HOME"], "notyet")
    folder.mkdir(parents=True)
    (folder / "notyet.toml").write_text('[share]\nto = "postgresql://me@127.0.0.1:1/x"\n')
    ledger = Ledger()
    ledger.give_up(ledger.begin(StopEvent(session_id="s")))
    ledger.close()
    assert main(["ship"]) == 1


PLANTED = [
    ("not-registered", BOTH, lambda world: world.settings.write_text("{}")),
    ("partly-registered", BOTH, no_subagents_although_a_gate_is_for_them),
    ("partly-registered warning", BOTH, without("SubagentStop")),
    ("partly-registered warning", BOTH, without("SessionStart")),
    ("registered-twice", BOTH, twice),
    ("entry-changed", CLAUDE, changed("SessionStart", **{"if": "Bash(rm *)"})),
    ("entry-changed", BOTH, changed("SessionStart", **{"async": True})),
    ("entry-changed", CLAUDE, changed("SessionStart", type="prompt")),
    ("entry-changed", CLAUDE, changed("SessionStart", timeout=0)),
    ("entry-changed", CLAUDE, changed("SessionStart", timeout="1800")),
    ("entry-changed", CLAUDE, changed("SessionStart", **ZSH)),
    ("entry-changed", BOTH, misspelt),
    ("entry-changed", BOTH, of_another_host),
    ("entry-changed warning", BOTH, matcher("reviewer")),
    ("timeout-too-short", BOTH, changed("Stop", timeout=1799)),
    ("gates-too-slow", CLAUDE, lambda world: world.gates(SLOW)),
    ("file-invalid", BOTH, half_a_file),
    ("file-invalid", BOTH, a_folder),
    ("file-invalid", CODEX, unknown_key),
    ("file-invalid", CODEX, another_hook(type="http")),
    ("file-invalid", CODEX, another_hook(timeout=1.5)),
    ("file-invalid", OPENHANDS, setting(stop=[])),
    ("file-invalid", OPENHANDS, misspelt),
    ("file-invalid warning", CLAUDE, half_a_file_of_the_project),
    ("hooks-disabled", CLAUDE, setting(disableAllHooks=True)),
    ("hooks-disabled", CLAUDE, setting("project", disableAllHooks=True)),
    ("hooks-disabled", CLAUDE, setting("managed", disableAllHooks=True)),
    ("hooks-disabled", CLAUDE, with_variable("CLAUDE_CODE_SIMPLE")),
    ("hooks-disabled", CODEX, config("", "\n[features]\nhooks = false\n")),
    ("hooks-disabled", GEMINI, setting(hooksConfig={"enabled": False})),
    ("hooks-disabled", GEMINI, setting("project", hooksConfig={"enabled": False})),
    ("hooks-disabled", GEMINI, setting(hooksConfig={"disabled": ["other", "notyet"]})),
    ("hooks-disabled", QWEN, setting(disableAllHooks=True)),
    ("hooks-disabled", QWEN, setting("project", disableAllHooks=True)),
    ("file-hidden", OPENHANDS, project_has_hooks),
    ("file-hidden warning", OPENHANDS, also_in_the_project),
    ("managed-hooks-only", CLAUDE, setting("managed", allowManagedHooksOnly=True)),
    ("managed-hooks-only", CLAUDE, setting("managed", strictPluginOnlyCustomization=["hooks"])),
    ("managed-hooks-only", CODEX, requirements),
    ("program-missing", BOTH, lambda world: world.notyet.unlink()),
    ("program-missing", BOTH, not_on_the_path),
    ("program-missing", BOTH, lambda world: (world.launch() / "launch.py").unlink()),
    ("other-version", BOTH, launcher_of_another_version),
    ("no-reply", BOTH, answering("echo 'ModuleNotFoundError: notyet' >&2; exit 1")),
    ("no-reply", CLAUDE, lambda world: world.notyet.chmod(0o644)),
    ("no-reply", CLAUDE, only_subagents_are_not_answered),
    ("no-reply", CLAUDE, timed_out("notyet", "sleep 60", "notyet.status.probe.TIMEOUT")),
    ("other-version", BOTH, answering(OTHER_VERSION)),
    ("asks-otherwise", BOTH, stop_line("NOTYET_DISABLE=1")),
    ("asks-otherwise", CLAUDE, moved_files),
    ("not-probed", BOTH, stop_line("true &&")),
    ("not-probed", CLAUDE, program_of_a_project_that_is_not_accepted),
    ("hook-untrusted", CODEX, lambda world: world.config("")),
    ("hook-modified", CODEX, config("sha256:", "sha256:0")),
    ("hook-disabled", CODEX, config("trusted_hash", "enabled = false\ntrusted_hash")),
    ("project-untrusted", CODEX, only_in_a_strange_project),
    ("folder-not-trusted", GEMINI, only_in_the_project),
    ("folder-not-trusted", QWEN, distrusted),
    ("folder-not-accepted", CLAUDE, lambda world: world.accept("/elsewhere")),
    ("version-too-old", CLAUDE, answering("echo '2.0.41 (Claude Code)'", "claude")),
    ("version-old", CLAUDE, answering("echo '2.1.162 (Claude Code)'", "claude")),
    ("version-too-old", CODEX, answering("echo codex-cli 0.123.9", "codex")),
    ("version-old", CODEX, answering("echo codex-cli 0.139.0", "codex")),
    ("off-by-variable", CLAUDE, with_variable("NOTYET_DISABLE")),
    ("off-by-variable", CLAUDE, with_variable("NOTYET_INSIDE")),
    ("off-by-variable", CLAUDE, setting("local", env={"NOTYET_DISABLE": True})),
    ("switched-off", CLAUDE, lambda _world: switch_off("", 0, os.environ)),
    ("no-gates", CLAUDE, elsewhere("")),
    ("config-invalid", CLAUDE, untrusted("[gates.g]\nrunn = 1\n")),
    ("config-untrusted", CLAUDE, elsewhere(GATES)),
    ("gate-replaced", CLAUDE, users_gate_of_the_same_name),
    ("config-changed", CLAUDE, untrusted(f"{GATES}# and more\n")),
    ("config-changed warning", CLAUDE, lambda world: (world.project / "notyet.toml").unlink()),
    ("config-invalid", CLAUDE, a_folder_instead_of_the_file),
    ("ledger-unusable", CLAUDE, not_a_ledger),
    ("ledger-unusable warning", CLAUDE, damaged_ledger),
    ("share-failing", CLAUDE, a_share_that_fails),
]  # fmt: skip


@pytest.fixture
def world_of(tmp_path, monkeypatch, capsys):
    return lambda host: World(host, tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("host", [*BOTH, "gemini", "copilot", "qwen", "openhands"])
def test_a_healthy_machine_has_no_fault(world_of, host):
    world = world_of(host)
    assert world.found() == (0, {})
    world.launch()
    code, said = world.status()
    assert (code, said["hosts"][0]["faults"]) == (0, [])
    assert "lint, tests" in said["hosts"][0]["probe"]["says"]
    assert "/launch.py hook" in said["hosts"][0]["probe"]["command"]


@pytest.mark.parametrize(
    ("host", "name", "plant"),
    [
        pytest.param(host, name, plant, id=f"{host} {name} {number}")
        for number, (name, hosts, plant) in enumerate(PLANTED)
        for host in hosts
    ],
)
def test_a_planted_fault_is_found_and_nothing_else(world_of, host, name, plant):
    code, _, level = name.partition(" ")
    level = level or CODES[code]
    world = world_of(host)
    plant(world)
    exit_code, found = world.found()
    assert list(found) == [code]
    assert found[code]["level"] == level
    assert found[code]["what"].endswith(".")
    assert found[code]["fix"]
    assert exit_code == (1 if level == "fault" or code in NOT_A_YES else 0)


def test_every_code_is_planted_and_has_its_line_on_the_page():
    elsewhere_planted = {"folder-not-trusted"}  # tests/unit/install/test_folder_trust.py
    assert {name.split()[0] for name, _, _ in PLANTED} | elsewhere_planted == set(CODES)
    rows = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert {row[0].strip("| `"): row[1] for row in rows} == CODES
    assert set(CODES.values()) <= set(LEVELS)
    assert all(len(row) == 4 and row[2].strip() and row[3].strip(" |") for row in rows)


def test_a_switch_for_everything_is_not_taken_for_the_variable(tmp_path):
    switch_off("", 0, os.environ, by="ann")
    found = notyet_faults(str(tmp_path), os.environ, Setup())
    assert "off-by-variable" not in {one.code for one in found}
    (off,) = [one for one in found if one.code == "switched-off"]
    assert off.what.endswith("ann switched it off.")
    assert off.fix == "run: notyet on --global"
