"""`notyet status`: what a person and a program read, and that nothing makes it hang or crash."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hook_runs import ENTRY, FAILING, clean_environ, stops, trust
from notyet.cli.main import main
from notyet.status.faults.fault import CODES, LEVELS
from status_world import GATES, World

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "status.md"


@pytest.fixture
def world_of(tmp_path, monkeypatch, capsys):
    return lambda host: World(host, tmp_path, monkeypatch, capsys)


@pytest.fixture
def world(world_of):
    return world_of("claude")


def test_a_healthy_machine_is_told_plainly(world):
    code, said = world.shown()
    assert code == 0
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert f"Claude Code 2.1.325 {world.bin}/claude" in lines
    every = "Stop, SubagentStop, SessionStart, SubagentStart"
    assert f"registered {every} in ~/.claude/settings.json (user)" in lines
    assert "gates lint, tests" in lines
    assert any(line.startswith("reply notyet 0.1.0: would ask lint, tests (") for line in lines)
    assert "ok Claude Code calls notyet at every stop" in lines
    assert "Codex: not found, neither its program nor its settings" in lines
    assert lines[-1] == "nothing keeps gates from gating here"
    assert "\x1b" not in said


def test_a_fault_is_one_sentence_with_its_place_and_the_fix(world):
    world.change(lambda value: value.update(disableAllHooks=True))
    code, said = world.shown("claude")
    assert code == 1
    lines = [" ".join(line.split()) for line in said.splitlines()]
    at = next(n for n, line in enumerate(lines) if "[hooks-disabled]" in line)
    assert lines[at].startswith("fault disableAllHooks is true, so Claude Code runs no hook")
    line = world.settings.read_text().splitlines().index('  "disableAllHooks": true') + 1
    assert lines[at + 1] == f"at: {world.settings}:{line}:3"
    assert lines[at + 2] == "fix: remove it"
    assert lines[-1] == "1 fault: this keeps gates from gating"


def test_a_program_reads_the_same_as_one_object(world):
    code, said = world.status()
    assert code == 0
    assert said["ok"] is True
    assert said["folder"] == str(world.project)
    (host,) = said["hosts"]
    assert (host["host"], host["version"], host["is_here"]) == ("claude", "2.1.325", True)
    assert [entry["event"] for entry in host["registrations"]] == [
        "Stop",
        "SubagentStop",
        "SessionStart",
        "SubagentStart",
    ]
    assert host["registrations"][0]["file"] == str(world.settings)
    assert host["gates"] == ["lint", "tests"]
    assert host["probe"]["says"] == "notyet 0.1.0: would ask lint, tests"
    assert json.loads(host["probe"]["stdout"]) == {"systemMessage": host["probe"]["says"]}


def test_a_look_records_nothing(world):
    world.status()
    assert stops() == []
    assert not os.path.exists(os.path.join(os.environ["XDG_STATE_HOME"], "notyet", "ledger.db"))


def test_with_ask_the_gates_themselves_answer(world):
    (world.project / "notyet.toml").write_text(FAILING)
    trust(world.project / "notyet.toml")
    code, said = world.status("--ask")
    assert code == 0
    probe = said["hosts"][0]["probe"]
    assert probe["asked"] is True
    assert probe["says"].startswith("notyet: sent back 1/3: bad (exit 1)")
    assert "it is broken" in probe["stdout"]
    assert stops() == []


@pytest.mark.parametrize("host", ["claude", "codex"])
def test_with_ask_a_gate_that_cannot_start_is_heard_and_gates_nobody(world_of, host):
    world = world_of(host)
    (world.project / "notyet.toml").write_text('[gates]\nbad = "./no-such-program --x"\n')
    trust(world.project / "notyet.toml")
    code, said = world.status("--ask")
    assert (code, said["ok"], said["gated"]) == (1, False, False)
    assert "; asked just now, let go unchecked: bad: " in said["answer"]["says"]
    assert "nothing keeps gates" not in world.shown("--ask")[1]


@pytest.mark.parametrize("host", ["claude", "codex"])
def test_with_ask_gates_that_pass_are_shown_as_that(world_of, host):
    code, said = world_of(host).status("--ask")
    assert code == 0
    assert said["hosts"][0]["probe"]["says"] == "the agent may stop"


def test_with_ask_a_command_that_does_not_answer_is_not_asked(world):
    world.program("notyet", 'test "$NOTYET_PROBE" || touch asked; exit 1')
    assert list(world.found("--ask")[1]) == ["no-reply"]
    assert not (world.project / "asked").exists()


def test_a_host_that_is_not_used_beside_another_is_only_a_warning(world):
    world.program("codex", "echo codex-cli 0.166.0")
    code, said = world.shown()
    assert code == 0
    assert "warning     notyet is not registered with Codex." in said
    code, said = world.shown("codex")
    assert code == 1
    assert "fault       notyet is not registered with Codex." in said


def test_a_host_that_is_named_and_not_there_is_a_fault(world):
    code, said = world.shown("codex")
    assert code == 1
    assert "Codex: not found" in said
    assert "1 fault" in said


def test_nothing_at_all_is_no_fault_and_a_no(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("notyet.install.claude.MANAGED", str(tmp_path / "no"))
    monkeypatch.setattr("notyet.install.codex.MANAGED", str(tmp_path / "no"))
    assert main(["status"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("no: No gate is in force here")
    assert "Claude Code: not found" in said
    assert "nothing calls notyet here" in said


def test_without_a_home_it_says_so(world):
    environ = {name: os.environ[name] for name in ("PATH",)}
    environ["HOME"] = ""
    done = run_status(environ, cwd=world.project)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "[ledger-unusable]" in done.stdout


def test_in_a_folder_that_is_gone_it_says_so(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"rmdir {gone}; exec {sys.executable} -I {ENTRY} status"
    done = subprocess.run(
        ["/bin/sh", "-c", script], cwd=gone, env=clean_environ(), capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (
        2,
        "notyet status: this folder is gone; go to another one\n",
    )


def test_programs_that_hang_or_flood_do_not_hold_it_up(world_of, monkeypatch):
    world = world_of("codex")
    monkeypatch.setattr("notyet.status.faults.codex_server.PATIENCE", 0.1)
    monkeypatch.setattr("notyet.status.faults.programs.PATIENCE", 0.1)
    for script in ("sleep 60", "yes", "sleep 60 & sleep 60", "trap '' TERM; while :; do :; done"):
        world.program("codex", script)
        started = time.monotonic()
        _, found = world.found()
        assert time.monotonic() - started < 15
        assert {"version-unknown", "trust-not-asked"} <= set(found)


def test_a_program_that_may_not_be_run_is_not_there(world):
    (world.bin / "claude").chmod(0o644)
    assert list(world.found()[1]) == ["program-not-found"]


@pytest.mark.parametrize("text", ["[]", "5", '"hooks"', '{"hooks": {"Stop": [5, {"hooks": 5}]}}'])
def test_settings_of_any_shape_are_judged(world_of, text):
    for host in ("claude", "codex"):
        world = world_of(host)
        world.settings.write_text(text)
        code, found = world.found()
        assert code == 1
        assert set(found) <= {"file-invalid", "file-dropped", "not-registered"}
        shutil.rmtree(world.folder / "home")
        for name in ("bin", "project"):
            shutil.rmtree(world.folder / name)


def test_what_could_hide_on_a_terminal_is_escaped(world):
    def change(value):
        value["hooks"]["St\x1b[2Kop"] = value["hooks"].pop("Stop")

    world.change(change)
    code, said = world.shown("claude")
    assert code == 1
    assert "St\\x1b[2Kop" in said
    assert "\x1b" not in said


def test_a_portable_line_is_answered_like_any_other(world):
    world.settings.unlink()
    world.register(start="")
    assert world.found() == (0, {})


def test_a_line_with_arguments_is_run_without_a_shell(world):
    args = ["hook", "--host", "claude", "--timeout", "700"]
    world.each_entry(command=str(world.notyet), args=args, timeout=700)
    assert world.found() == (0, {})


def test_a_project_that_is_accepted_needs_no_word(world):
    known = {"projects": {str(world.folder): {"hasTrustDialogAccepted": True}}}
    (world.home / ".claude.json").write_text(json.dumps(known))
    assert world.found() == (0, {})


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"projects": 5}', ""])
def test_who_never_started_claude_code_in_a_terminal_was_never_asked(world, text):
    (world.home / ".claude.json").write_text(text)
    assert world.found() == (0, {})


def test_the_nearest_switch_counts(world):
    world.change(lambda value: value.update(disableAllHooks=True))
    local = world.project / ".claude" / "settings.local.json"
    world.change(lambda value: value.update(disableAllHooks=False), local)
    assert world.found() == (0, {})


def test_an_organisation_s_own_entry_is_run_whatever_it_forbids(world):
    managed = world.managed / "managed-settings.json"
    managed.parent.mkdir()
    shutil.move(world.settings, managed)
    world.change(lambda value: value.update(allowManagedHooksOnly=True), managed)
    assert world.found() == (0, {})


@pytest.mark.parametrize("program", ['"$HOME/../bin/notyet"', "./notyet", "notyet"])
def test_a_program_may_be_named_in_any_way_that_a_shell_takes(world, program):
    shutil.copy(world.notyet, world.project / "notyet")
    world.settings.unlink()
    world.register(start=program)
    assert world.found() == (0, {})


def test_a_program_may_be_a_script_without_a_first_line(world):
    world.program("notyet", f'exec {sys.executable} -I {ENTRY} "$@"', "")
    assert world.found() == (0, {})


@pytest.mark.parametrize("is_own", [True, False])
def test_a_mistake_names_its_place(world, is_own):
    path = world.project / "notyet.toml"
    if is_own:
        path = Path(os.environ["XDG_CONFIG_HOME"]) / "notyet" / "notyet.toml"
        path.parent.mkdir(parents=True)
    path.write_text(f"{GATES}[gates.g]\nrunn = 1\n")
    code, found = world.found()
    assert code == 1
    assert found["config-invalid"]["where"].startswith(f"{path}:")
    assert ("stays in force" in found["config-invalid"]["what"]) is not is_own


def test_files_of_other_hosts_that_are_read_count_too(world):
    (world.project / "notyet.toml").write_text(f'{GATES}[read]\nhosts = ["mux"]\n')
    trust(world.project / "notyet.toml")
    mux = world.project / ".mux"
    mux.mkdir()
    hook = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    (mux / "settings.json").write_text(json.dumps(hook))
    code, found = world.found()
    assert code == 1
    assert found["config-untrusted"]["where"] == f"{mux}/settings.json"
    assert found["config-untrusted"]["fix"] == "run: notyet trust --read mux"


def test_every_code_has_its_line_on_the_page():
    rows = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    told = {row[0].strip("| `"): row[1] for row in rows}
    assert told == dict(CODES)
    assert set(told.values()) <= set(LEVELS)
    assert all(len(row) == 4 and row[2].strip() and row[3].strip(" |") for row in rows)


def run_status(environ, **options):
    return subprocess.run(
        [sys.executable, "-I", str(ENTRY), "status"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )
