"""`notyet status claude`: which settings Claude Code takes, and what follows from that."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from hook_runs import ENTRY, clean_environ, trust
from status_world import World

OLDER = "2.1.197 (Claude Code)"


@pytest.fixture
def world(tmp_path, monkeypatch, capsys):
    return World("claude", tmp_path, monkeypatch, capsys)


def project_settings(world, **settings):
    world.change(lambda value: value.update(settings), world.project / ".claude/settings.json")


def dropped(world):
    """Let Claude Code refuse the project's settings."""
    path = world.project / ".claude/settings.json"
    world.claude(world.complaint("model", "Expected string, but received number", path))


# What stands in a file that Claude Code drops.


def test_a_switch_in_a_dropped_file_switches_nothing_off(world):
    project_settings(world, disableAllHooks=True)
    dropped(world)
    code, found = world.found()
    assert (code, list(found)) == (0, ["file-dropped"])


def test_a_switch_in_a_dropped_file_switches_nothing_on_again(world):
    world.change(lambda value: value.update(disableAllHooks=True))
    project_settings(world, disableAllHooks=False)
    dropped(world)
    code, found = world.found()
    assert (code, list(found)) == (1, ["file-dropped", "hooks-disabled"])
    assert found["file-dropped"]["level"] == "warning"


def test_variables_of_a_dropped_file_are_not_set(world):
    project_settings(world, env={"NOTYET_DISABLE": "1"})
    dropped(world)
    code, found = world.found()
    assert (code, list(found)) == (0, ["file-dropped"])


# What the doctor says.


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("permissions.allow", 'Invalid permission rule "Bash((((" was skipped: Malformed rule.'),
        ("permissions.allow", "Non-string value in allow array was removed"),
        ("hooks.Foo", 'Unknown hook event "Foo" was ignored. Valid events: Stop'),
        ("hooks.PostToolUse.0", "Hook matcher must be an object; matcher ignored."),
        ("allowedMcpServers", "must be an array; received string. This field was ignored."),
    ],
)
def test_what_costs_only_a_part_of_a_file_is_not_our_concern(world, key, why):
    world.claude(world.complaint(key, why))
    assert world.found() == (0, {})


def test_complaints_are_found_whatever_the_folder_is_called(world, monkeypatch):
    home = world.folder / "ho \u203a me: x"
    world.home.rename(home)
    monkeypatch.setenv("HOME", str(home))
    path = home / ".claude" / "settings.json"
    world.claude(world.complaint("model", "Expected string, but received number", path))
    code, found = world.found()
    assert (code, list(found)) == (1, ["file-dropped"])
    assert found["file-dropped"]["what"].endswith("model: Expected string, but received number.")


def test_complaints_of_a_file_by_its_real_name_are_found(world):
    real = world.folder / "real.json"
    world.settings.rename(real)
    world.settings.symlink_to(real)
    world.claude(world.complaint("model", "Expected string, but received number", real))
    assert list(world.found()[1]) == ["file-dropped"]


def test_without_any_settings_the_doctor_is_not_asked(world):
    world.settings.unlink()
    world.claude(doctor=f"touch {world.folder}/asked")
    assert list(world.found()[1]) == ["not-registered"]
    assert not (world.folder / "asked").exists()


def test_an_event_that_nobody_knows_costs_nothing(world):
    world.change(lambda value: value["hooks"].update(Foo=3))
    assert world.found() == (0, {})


def test_an_older_one_leaves_broken_managed_settings_aside(world):
    world.claude(version=OLDER)
    world.managed.mkdir()
    (world.managed / "managed-settings.json").write_text("{")
    code, found = world.found()
    assert (code, list(found)) == (0, ["file-invalid", "settings-not-asked"])


# What settings change for our own side.


def test_a_file_of_its_own_is_what_is_in_force(world):
    path = world.folder / "other.toml"
    path.write_text('[gates.other]\nrun = "true"\nwhen = "always"\n')
    trust(path)
    line = f"{world.notyet} hook --host claude --timeout 1800 --config={path}"
    world.each_entry(command=line, timeout=1800)
    code, said = world.status()
    assert (code, said["hosts"][0]["gates"]) == (0, ["other"])


def test_a_file_of_its_own_that_is_not_there_is_the_reason_for_a_no(world):
    path = world.folder / "none.toml"
    line = f"{world.notyet} hook --host claude --timeout 1800 --config {path}"
    world.each_entry(command=line, timeout=1800)
    code, said = world.status()
    assert code == 1
    assert said["answer"]["says"].startswith(f"no: {path}: It cannot be read: No such file")
    assert said["answer"]["fix"] == "write it, or name another file"


def test_a_file_that_only_a_shell_can_name_is_not_judged(world):
    line = f'{world.notyet} hook --host claude --timeout 1800 --config "$HOME/no.toml"'
    world.each_entry(command=line, timeout=1800)
    assert world.found() == (0, {})


# Our entries.


@pytest.mark.parametrize("fields", [{"if": ""}, {"asyncRewake": True}, {"once": True}])
def test_what_does_not_keep_an_entry_from_gating_is_no_fault(world, fields):
    world.each_entry(**fields)
    assert world.found() == (0, {})


def test_an_entry_for_bash_is_run_by_bash(world):
    bash = shutil.which("bash")
    world.program("bash", f'touch by-bash; exec {bash} "$@"')
    fields = {"shell": "bash"}
    world.each_entry(**fields)
    assert world.found() == (0, {})
    assert (world.project / "by-bash").exists()


def test_an_entry_for_powershell_is_run_by_it(world):
    world.program("pwsh", 'touch by-pwsh; shift 2; exec /bin/sh -c "$1"')
    fields = {"shell": "powershell"}
    world.each_entry(**fields)
    assert world.found() == (0, {})
    assert (world.project / "by-pwsh").exists()


def test_a_time_that_an_older_one_cannot_count_is_told(world):
    line = f"{world.notyet} hook --host claude --timeout 1800"
    world.each_entry(command=line, timeout=10**12)
    assert world.found() == (0, {})
    world.claude(version=OLDER)
    assert list(world.found()[1]) == ["entry-refused"]


def test_a_refused_entry_beside_a_good_one_is_a_warning(world):
    world.register("local")
    world.each_entry(type="prompt")
    code, found = world.found()
    assert (code, list(found)) == (0, ["entry-refused"])


def test_what_a_user_switches_off_is_not_what_their_organisation_registered(world):
    world.managed.mkdir()
    shutil.move(world.settings, world.managed / "managed-settings.json")
    world.settings.write_text('{"disableAllHooks": true}')
    assert world.found() == (0, {})


def test_a_portable_line_without_notyet_beside_one_that_works_is_fine(world):
    elsewhere = world.folder / "notyet"
    world.notyet.rename(elsewhere)
    world.settings.unlink()
    world.register(start=str(elsewhere))
    world.register("project", start="")
    code, found = world.found()
    assert (code, list(found)) == (0, ["registered-twice"])


def test_a_path_that_settings_set_counts(world):
    world.settings.unlink()
    world.register(start="")
    path = f"{world.folder / 'tools'}:/usr/bin:/bin"
    (world.folder / "tools").mkdir()
    world.notyet.rename(world.folder / "tools" / "notyet")
    assert list(world.found()[1]) == ["program-missing"]
    world.change(lambda value: value.update(env={"PATH": path}))
    assert world.found() == (0, {})


def test_what_is_called_as_conclaude_is_understood(world):
    world.change(lambda value: value.update(hooks={}))
    for event in ("Stop", "SubagentStop"):
        line = f"{world.notyet} conclaude Hooks {event}"
        entry = {"type": "command", "command": line, "timeout": 600}
        world.change(lambda v, e=event, h=entry: v["hooks"].update({e: [{"hooks": [h]}]}))
    code, found = world.found()
    assert (code, list(found)) == (0, ["starts-not-registered", "gates-too-slow"])
    (world.project / "notyet.toml").unlink()
    assert world.found()[0] == 0
    world.program("notyet", "exit 0")
    assert "no-reply" in world.found()[1]


# Work trees.


@pytest.fixture
def worktree(world):
    return world.worktree()


def test_local_settings_of_the_main_work_tree_are_read_in_others(world, worktree):
    world.settings.unlink()
    world.register("local")
    code, found = world.found()
    assert (code, list(found)) == (0, ["other-folder"])


def test_an_older_one_does_not_read_them(world, worktree):
    world.claude(version=OLDER)
    world.settings.unlink()
    world.register("local")
    code, found = world.found()
    assert (code, list(found)) == (1, ["other-folder"])
    assert found["other-folder"]["what"].startswith("Claude Code reads this file only if")


# What is shown, and what is left behind.


def test_values_of_variables_in_a_line_are_not_shown(world):
    line = f"TOKEN=secret1 OTHER='secret 2' {world.notyet} hook --host claude --timeout=1800"
    world.each_entry(command=line)
    code, said = world.status()
    assert code == 0
    assert "secret" not in json.dumps(said)
    shown = said["hosts"][0]["registrations"][0]["command"]
    assert shown == f"TOKEN=*** OTHER=*** {world.notyet} hook --host claude --timeout=1800"
    world.program("notyet", "exit 1")
    assert "secret" not in world.shown("claude")[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_with_ask_nothing_is_left_when_it_is_ended(world, number):
    (world.project / "notyet.toml").write_text('[gates.g]\nrun = "touch begun; sleep 60"\n')
    trust(world.project / "notyet.toml")
    temporary = world.folder / "tmp"
    temporary.mkdir()
    environ = clean_environ(HOME=str(world.home), PATH=os.environ["PATH"], TMPDIR=str(temporary))
    running = subprocess.Popen(
        [sys.executable, "-I", str(ENTRY), "status", "claude", "--ask"],
        cwd=world.project,
        env=environ,
        stdout=subprocess.DEVNULL,
    )
    ends = time.monotonic() + 20
    while not (world.project / "begun").exists() and time.monotonic() < ends:
        time.sleep(0.05)
    assert list(temporary.iterdir())
    running.send_signal(number)
    assert running.wait(20) == 128 + number
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("why", ["This value is ignored and others are used", "It was skipped"])
def test_a_value_that_is_left_out_by_itself_costs_no_file(world, why):
    world.claude(world.complaint("model", why))
    assert world.found() == (0, {})


def test_a_file_that_is_ignored_is_dropped(world):
    world.claude(world.complaint("model", "Expected text; the file is ignored"))
    assert list(world.found()[1]) == ["file-dropped"]
