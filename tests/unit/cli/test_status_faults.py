"""Every fault that `notyet status` knows, planted into a machine where all is well."""

import os
from pathlib import Path

import pytest

from notyet.config.off import switch_off
from notyet.ledger.file import default_path
from notyet.status.fault import CODES, LEVELS
from status_world import GATES, World

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "status.md"
BOTH = ("claude", "codex")
# No faults, but agents are not certainly checked.
NOT_A_YES = ("not-probed", "no-gates", "workspace-not-asked")
PLANTED = []


def plants(code, *hosts, level=None):
    """Register a function that plants one fault into a host's world."""

    def register(plant):
        for host in hosts or BOTH:
            name = f"{host} {code} {plant.__name__}"
            PLANTED.append(pytest.param(host, plant, code, level or CODES[code], id=name))
        return plant

    return register


# The entry in the host's settings.


@plants("not-registered")
def nothing_of_ours(world):
    world.settings.write_text("{}")


@plants("partly-registered")
def no_stop_of_subagents(world):
    world.gates(f'{GATES}[gates.review]\nrun = "true"\nfor = "*"\n')
    world.change(lambda value: value["hooks"].pop("SubagentStop"))


@plants("partly-registered", level="warning")
def no_stop_of_subagents_that_no_gate_is_for(world):
    world.change(lambda value: value["hooks"].pop("SubagentStop"))


@plants("starts-not-registered")
def no_start(world):
    world.change(lambda value: value["hooks"].pop("SessionStart"))


@plants("registered-twice")
def in_one_file(world):
    world.change(lambda value: value["hooks"]["Stop"].append(value["hooks"]["Stop"][0]))


def changed_entry(host, name, fields):
    def plant(world):
        world.each_entry("SessionStart", **fields)

    plant.__name__ = name
    plants("entry-changed", host)(plant)


changed_entry("claude", "with_an_if", {"if": "Bash(rm *)"})
changed_entry("claude", "async", {"async": True})
changed_entry("codex", "async", {"async": True})
changed_entry("claude", "a_prompt", {"type": "prompt"})
changed_entry("claude", "without_a_type", {"type": None})
changed_entry("claude", "a_timeout_of_0", {"timeout": 0})
changed_entry("claude", "a_timeout_that_is_a_text", {"timeout": "1800"})


@plants("entry-changed")
def misspelt_event(world):
    world.change(lambda value: value["hooks"].update(stop=value["hooks"]["Stop"]))


@plants("entry-changed")
def of_another_host(world):
    world.each_entry("SessionStart", command=f"{world.notyet} hook --host notyet --timeout 1800")


@plants("matcher-restricts")
def only_some_agents(world):
    world.change(lambda value: value["hooks"]["SubagentStop"][0].update(matcher="reviewer"))


@plants("timeout-too-short")
def the_host_waits_less(world):
    world.each_entry("Stop", timeout=1799)


@plants("gates-too-slow")
def one_after_another(world):
    text = '[gates.g{n}]\nrun = "true"\ntimeout = "10m"\npriority = {n}\n'
    world.gates("".join(text.format(n=n) for n in range(4)))


# The settings around it.


@plants("file-invalid")
def half_a_file(world):
    world.settings.write_text(world.settings.read_text()[:-9])


@plants("file-invalid")
def a_folder(world):
    world.settings.unlink()
    world.settings.mkdir()


@plants("file-invalid", "claude", level="warning")
def half_a_file_of_the_project(world):
    (world.project / ".claude").mkdir()
    (world.project / ".claude" / "settings.json").write_text("{")


@plants("hooks-disabled", "claude")
def for_the_user(world):
    world.change(lambda value: value.update(disableAllHooks=True))


@plants("hooks-disabled", "claude")
def by_the_project(world):
    world.change(lambda v: v.update(disableAllHooks=True), world.project / ".claude/settings.json")


@plants("hooks-disabled", "claude")
def by_the_organisation(world):
    world.change(lambda v: v.update(disableAllHooks=True), world.managed / "managed-settings.json")


@plants("hooks-disabled", "claude")
def by_a_variable(world):
    world.monkeypatch.setenv("CLAUDE_CODE_SIMPLE", "1")


@plants("hooks-disabled", "codex")
def by_a_feature(world):
    path = world.home / ".codex/config.toml"
    path.write_text(f"{path.read_text()}\n[features]\nhooks = false\n")


@plants("managed-hooks-only", "claude")
def of_claude_code(world):
    path = world.managed / "managed-settings.json"
    world.change(lambda value: value.update(allowManagedHooksOnly=True), path)


@plants("managed-hooks-only", "claude")
def only_plugins(world):
    path = world.managed / "managed-settings.json"
    world.change(lambda value: value.update(strictPluginOnlyCustomization=["hooks"]), path)


@plants("managed-hooks-only", "codex")
def of_codex(world):
    world.managed.mkdir()
    (world.managed / "requirements.toml").write_text("allow_managed_hooks_only = true\n")


# The command.


@plants("program-missing")
def it_is_gone(world):
    world.notyet.unlink()


@plants("program-missing")
def it_is_not_on_the_path(world):
    world.settings.unlink()
    world.notyet.unlink()
    world.register(start="")


@plants("program-missing")
def its_launcher_is_gone(world):
    (world.launch() / "launch.py").unlink()


@plants("launcher-other")
def its_launcher_is_of_another_version(world):
    path = world.launch() / "launch.py"
    path.write_text(f"{path.read_text()}# of another version\n")


@plants("launcher-other", "claude")
def its_launcher_is_of_another_installation(world):
    folder = world.launch()
    other = folder.with_name("0123456789ab")
    folder.rename(other)
    world.settings.write_text(world.settings.read_text().replace(folder.name, other.name))


def answering(name, code, script):
    def plant(world):
        world.program("notyet", script)

    plant.__name__ = name
    plants(code)(plant)


answering("it_fails", "no-reply", "echo 'ModuleNotFoundError: notyet' >&2; exit 1")
answering("it_says_nothing", "no-reply", "exit 0")
answering("it_says_something_else", "no-reply", "echo hello")
answering("it_is_killed", "no-reply", "kill -9 $$")
answering("python_is_gone", "no-reply", "exec /no/such/python")
answering(
    "an_older_one", "other-version", 'echo \'{"systemMessage": "notyet 0.0.1: would run lint"}\''
)


@plants("no-reply")
def it_hangs(world):
    world.monkeypatch.setattr("notyet.status.probe.TIMEOUT", 0.5)
    world.program("notyet", "sleep 60")


@plants("no-reply")
def it_lost_its_mode(world):
    world.notyet.chmod(0o644)


@plants("no-reply")
def only_subagents_are_not_answered(world):
    (world.bin / "quiet").mkdir()
    quiet = world.program("quiet/notyet", "exit 0")
    command = f"{quiet} hook --host {world.host} --timeout 1800"
    world.each_entry("SubagentStop", command=command)


@plants("asks-otherwise")
def it_is_switched_off_in_its_line(world):
    world.each_stop(f"NOTYET_DISABLE=1 {world.notyet} hook --host {world.host} --timeout 1800")


@plants("asks-otherwise", "claude")
def settings_move_our_files(world):
    env = {"XDG_STATE_HOME": str(world.folder / "no")}
    world.change(lambda value: value.update(env=env))


@plants("not-probed")
def it_also_runs_others(world):
    world.each_stop(f"true && {world.notyet} hook --host {world.host} --timeout 1800")


@plants("not-probed", "claude")
def a_program_of_a_project_that_is_not_accepted(world):
    world.settings.unlink()
    world.notyet.rename(world.project / "notyet")
    world.register("project", start="./notyet")


# Trust of the host.


@plants("hook-untrusted", "codex")
def not_approved(world):
    world.config("")


@plants("hook-modified", "codex")
def approved_with_another_hash(world):
    path = world.home / ".codex/config.toml"
    path.write_text(path.read_text().replace("sha256:", "sha256:0"))


@plants("hook-disabled", "codex")
def switched_off_in_hooks(world):
    path = world.home / ".codex/config.toml"
    path.write_text(path.read_text().replace("trusted_hash", "enabled = false\ntrusted_hash"))


@plants("project-untrusted", "codex")
def only_in_a_strange_project(world):
    world.settings.unlink()
    world.register("project")


@plants("folder-not-accepted", "claude")
def another_folder_was_accepted(world):
    world.accept("/elsewhere")


# The host's program.


@plants("program-not-found")
def no_program(world):
    (world.bin / world.host).unlink()


def version(host, code, text):
    def plant(world):
        world.program(host, text)

    plant.__name__ = text
    plants(code, host)(plant)


version("claude", "version-too-old", "echo '2.0.41 (Claude Code)'")
version("claude", "version-old", "echo '2.1.162 (Claude Code)'")
version("codex", "version-too-old", "echo codex-cli 0.123.9")
version("codex", "version-old", "echo codex-cli 0.139.0")
version("claude", "version-unknown", "echo no >&2; exit 3")
version("claude", "version-unknown", "head -c 3000000 /dev/urandom | base64 | tr -d 0-9")


@plants("version-unknown", "claude")
def it_never_answers(world):
    world.monkeypatch.setattr("notyet.status.look.VERSION_TIMEOUT", 0.5)
    world.program("claude", "sleep 60")


# Our own side.


@plants("off-by-variable")
def switched_off_in_the_shell(world):
    world.monkeypatch.setenv("NOTYET_DISABLE", "1")


@plants("off-by-variable")
def inside_a_gate(world):
    world.monkeypatch.setenv("NOTYET_INSIDE", "1")


@plants("off-by-variable", "claude")
def switched_off_by_settings(world):
    path = world.project / ".claude/settings.local.json"
    world.change(lambda value: value.update(env={"NOTYET_DISABLE": True}), path)


@plants("switched-off")
def everywhere(world):
    switch_off("", 0, os.environ)


@plants("no-gates")
def no_file(world):
    (world.folder / "elsewhere").mkdir()
    world.monkeypatch.chdir(world.folder / "elsewhere")


@plants("config-invalid")
def a_mistake_after_it_was_trusted(world):
    (world.project / "notyet.toml").write_text("[gates.g]\nrunn = 1\n")


@plants("config-untrusted")
def not_trusted(world):
    other = world.folder / "other"
    other.mkdir()
    (other / "notyet.toml").write_text(GATES)
    world.monkeypatch.chdir(other)


@plants("config-changed")
def it_is_newer(world):
    (world.project / "notyet.toml").write_text(f"{GATES}# and more\n")


@plants("config-removed")
def it_was_removed(world):
    (world.project / "notyet.toml").unlink()


@plants("config-unreadable")
def it_is_a_folder_now(world):
    (world.project / "notyet.toml").unlink()
    (world.project / "notyet.toml").mkdir()


@plants("gate-may-not-start")
def its_program_is_missing(world):
    world.gates('[gates]\nlint = "no-such-tool --all"\n')


@plants("workspace-not-asked")
def files_are_elsewhere(world):
    world.gates(f'workspace = "ssh://nowhere.invalid/srv/app"\n{GATES}')


@plants("ledger-unusable")
def not_a_ledger(world):
    path = world.folder / "stops.db"
    path.write_text("this is a letter to my mother")
    world.monkeypatch.setenv("NOTYET_LEDGER", str(path))


@plants("ledger-at-risk")
def it_was_damaged(world):
    path = default_path(os.environ)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"x" * 4000)


@pytest.fixture
def world_of(tmp_path, monkeypatch, capsys):
    return lambda host: World(host, tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("host", BOTH)
def test_a_healthy_machine_has_no_fault(world_of, host):
    world = world_of(host)
    assert world.found() == (0, {})
    world.launch()
    code, said = world.status()
    assert (code, said["hosts"][0]["faults"]) == (0, [])
    assert "lint, tests" in said["hosts"][0]["probe"]["says"]
    assert "/launch.py hook" in said["hosts"][0]["probe"]["command"]


@pytest.mark.parametrize(("host", "plant", "code", "level"), PLANTED)
def test_a_planted_fault_is_found_and_nothing_else(world_of, host, plant, code, level):
    world = world_of(host)
    plant(world)
    exit_code, found = world.found()
    assert list(found) == [code]
    assert found[code]["level"] == level
    assert found[code]["what"].endswith(".")
    assert found[code]["fix"]
    assert exit_code == (1 if level == "fault" or code in NOT_A_YES else 0)


def test_every_code_is_planted_and_has_its_line_on_the_page():
    assert {param.values[2] for param in PLANTED} == set(CODES)
    rows = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert {row[0].strip("| `"): row[1] for row in rows} == CODES
    assert set(CODES.values()) <= set(LEVELS)
    assert all(len(row) == 4 and row[2].strip() and row[3].strip(" |") for row in rows)
