"""`notyet status`: what a person and a program read, and that nothing makes it hang or crash."""

import json
import os
import shutil
from pathlib import Path

import pytest
from rich.cells import cell_len

from config_places import hooks, write
from conftest import git
from hook_runs import FAILING, ask, payload, stops, trust
from status_world import GATES, World

STAGED = """\
[limits]
max_blocks = 4
[gates.lint]
run = "test -e ready"
[gates.tests]
run = "true"
slow = true
paths = ["src/**"]
timeout = "90s"
[gates.review]
run = "true"
for = ["cod*"]
when = "always"
observe = true
"""


@pytest.fixture
def world(tmp_path, monkeypatch, capsys):
    return World("claude", tmp_path, monkeypatch, capsys)


def stop(world, **fields):
    ask(payload("claude", world.project, **fields), "--host", "claude")


def lines_of(said):
    return [" ".join(line.split()) for line in said.splitlines()]


# What a person reads


def test_gates_limits_sessions_and_decisions(world):
    (world.project / ".git").rmdir()
    git(world.project, "init", "--quiet")
    world.gates(STAGED)
    stop(world)
    stop(world, stop_hook_active=True)
    stop(world, session_id="s2", agent_id="a7", hook_event_name="SubagentStop", agent_type="coder")
    lines = lines_of(world.shown()[1])
    for line in (
        "but not subagents of Claude Code: they only observe",
        "gate runs for when stage timeout from",
        "lint test -e ready main agent files changed 1 10m notyet.toml:3",
        "tests true main agent src/** changed 2 90s notyet.toml:5",
        "review true cod* always 1, observes 10m notyet.toml:10",
        "limits 4 send-backs a turn (notyet.toml:2) · 50 a session · give up after 3 equal failures"
        " · wait for background agents · as many commands at once as cores · claude cap 7"
        " (Claude Code may override block 8 in a row)",
    ):
        assert line in lines
    at = lines.index("session agent host turn sent back last seen")
    assert lines[at + 1].startswith("s2 a7 claude 1 0 of 4 passed ")
    assert lines[at + 2].startswith("s1 main claude 1 2 of 4 sent back ")
    at = lines.index("stop when outcome host why")
    assert [line.split()[0] for line in lines[at + 1 : at + 4]] == ["3", "2", "1"]
    assert lines[at + 2].split()[2:] == ["sent", "back", "claude", "lint", "blocked"]


def test_limits_that_are_off_are_said_in_words(world):
    limits = "stuck_after = 0\nsession_ceiling = 0\nwait_for_background = false\njobs = 2\n"
    world.gates(f"[limits]\n{limits}{GATES}")
    said = world.shown()[1]
    for words in (
        "no limit for a session (notyet.toml:3)",
        "never give up on equal failures (notyet.toml:2)",
        "do not wait for background agents (notyet.toml:4)",
        "2 commands at once (notyet.toml:5)",
    ):
        assert words in said


def test_hosts_are_a_table_with_what_is_wrong_below_and_the_fix_in_the_last_line(world):
    world.register("project")
    world.program("gemini", "echo 0.61.0")
    world.program("codex", "echo codex-cli 0.166.0")
    folder = world.home / ".codex"
    folder.mkdir()
    (folder / "hooks.json").write_text("{")
    said = world.shown()[1]
    lines = said.splitlines()
    at = lines.index("host         state")
    assert lines[at + 1 : at + 7] == [
        "Claude Code  registered for you (~/.claude/settings.json) and for this project "
        "(.claude/settings.json), 2.1.325: registered-twice",
        lines[at + 2],
        "Codex        not registered, 0.166.0: file-invalid",
        f"             {world.bin}/codex",
        "Gemini CLI   not registered, 0.61.0: notyet install gemini",
        f"             {world.bin}/gemini",
    ]
    assert "Stop, SubagentStop" in lines[at + 2]
    assert "would run lint, tests" in lines[at + 2]
    assert said.index("[file-invalid]") < said.index("[registered-twice]")
    assert lines[-2:] == ["", "fix: " + lines[-1].removeprefix("fix: ")]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_line_is_longer_than_the_terminal(world, monkeypatch, columns):
    world.gates(f'{STAGED}[gates."{"long" * 10}"]\nrun = "echo {"words " * 30}"\n')
    world.program("gemini", "echo 0.61.0")
    stop(world, session_id="測試" * 40)
    monkeypatch.setattr("notyet.cli.terminal.is_terminal", lambda _: True)
    monkeypatch.setattr("notyet.cli.terminal.terminal_size", lambda _: (columns, 24))
    monkeypatch.setenv("NO_COLOR", "1")
    said = world.shown()[1]
    assert max(map(cell_len, said.splitlines())) <= columns
    assert "gate" in said.split()


@pytest.mark.rule("B11")
def test_decisions_that_the_host_overrode_or_that_only_observed(world):
    world.gates(STAGED)
    stop(world)
    stop(world, stop_hook_active=False, last_assistant_message="another turn")
    assert [one["outcome"] for one in world.status()[1]["decisions"]] == ["blocked", "overridden"]
    world.gates('[gates.bad]\nrun = "exit 1"\nobserve = true\nwhen = "always"\n')
    stop(world, session_id="s9")
    decision = world.status()[1]["decisions"][0]
    assert (decision["outcome"], decision["why"]) == ("observed", "bad would have blocked")


def test_a_fault_is_one_sentence_with_its_place_and_the_fix(world):
    world.change(lambda value: value.update(disableAllHooks=True))
    code, said = world.shown("claude")
    lines = lines_of(said)
    assert code == 1
    assert lines[0] == "NO disableAllHooks is true, so Claude Code runs no hook at all."
    assert lines[-1] == "fix: remove it"
    at = next(n for n, line in enumerate(lines) if "[hooks-disabled]" in line)
    number = world.settings.read_text().splitlines().index('  "disableAllHooks": true') + 1
    assert lines[at + 1 :][:2] == [f"at: {world.settings}:{number}:3", "fix: remove it"]


def test_a_changed_file_that_stays_in_force_is_a_but(world):
    (world.project / "notyet.toml").write_text(GATES + '[gates.more]\nrun = "true"\n')
    code, said = world.shown()
    assert code == 1
    assert lines_of(said)[0].startswith("PARTLY ")
    assert lines_of(said)[1].startswith(
        f"but {world.project}/notyet.toml: It changed since you trusted"
    )


def test_control_characters_are_escaped(world):
    world.change(lambda v: v["hooks"].update({"St\x1b[2Kop": v["hooks"].pop("Stop")}))
    world.gates('[gates."a\\u001b[31mb"]\nrun = "true"\n')
    stop(world, session_id="s\x1b[2J\nx")
    _, said = world.shown("claude")
    assert "St\\x1b[2Kop" in said
    assert "\x1b" not in said


# What a program reads


def test_a_host_whose_version_is_unknown_is_no_fault(world, monkeypatch):
    monkeypatch.setattr("notyet.status.facts.VERSION_TIMEOUT", 0.1)
    world.program("claude", "sleep 60 & sleep 60")
    assert world.found() == (0, {})
    (world.bin / "claude").unlink()
    assert world.found() == (0, {})


def test_the_version_may_have_a_v_and_a_date_after_it(world):
    world.program("claude", "echo 'Claude Agent v2.1.325 (2026.7.20)'")
    assert "(~/.claude/settings.json), 2.1.325\n" in world.shown()[1]


def test_a_look_records_nothing(world):
    world.status()
    assert stops() == []
    assert not os.path.exists(os.path.join(os.environ["XDG_STATE_HOME"], "notyet", "ledger.db"))


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (FAILING, 0, "notyet: sent back 1"),
        (GATES, 0, "the agent may stop"),
        ('[gates.bad]\nrun = "./no-such-program --x"\nif_broken = "allow"\n', 1, "notyet: "),
    ],
)
def test_with_ask_the_gates_run(world, text, code, says):
    world.gates(text)
    done, said = world.status("--ask")
    probe = said["hosts"][0]["probe"]
    assert (done, said["gated"], probe["asked"]) == (code, code == 0, True)
    assert probe["says"].startswith(says)
    assert stops() == []


# Hosts, files and fixes


def test_a_host_that_is_not_used_beside_another_is_only_a_warning(world):
    world.program("codex", "echo codex-cli 0.166.0")
    code, said = world.shown()
    assert code == 0
    assert "Codex        not registered, 0.166.0: notyet install codex\n" in said
    code, said = world.shown("codex")
    assert code == 1
    assert "fault      notyet is not registered with Codex." in said
    assert said.endswith("\nfix: notyet install codex\n")


@pytest.mark.parametrize("text", ["[]", "5", '"hooks"', '{"hooks": {"Stop": [5, {"hooks": 5}]}}'])
def test_settings_of_any_shape_are_read(world, text):
    world.settings.write_text(text)
    code, found = world.found()
    assert code == 1
    assert set(found) <= {"file-invalid", "not-registered"}


def test_settings_that_need_no_word(world):
    def one(change, path=None):
        text = world.settings.read_text()
        world.change(change, path)
        assert world.found() == (0, {})
        world.settings.write_text(text)

    world.accept(world.folder)
    assert world.found() == (0, {})
    (world.home / ".claude.json").write_text('{"projects": 5}')
    one(lambda value: value["hooks"]["Stop"][0]["hooks"][0].update(statusMessage="checking"))
    local = world.project / ".claude" / "settings.local.json"
    world.change(lambda value: value.update(disableAllHooks=True))
    one(lambda value: value.update(disableAllHooks=False), local)  # the nearest switch counts


def test_an_organisation_s_own_entry_runs_whatever_it_forbids(world):
    managed = world.managed / "managed-settings.json"
    managed.parent.mkdir()
    shutil.move(world.settings, managed)
    world.change(lambda value: value.update(allowManagedHooksOnly=True), managed)
    assert world.found() == (0, {})
    world.change(lambda v: v["hooks"]["Stop"][0]["hooks"][0].update(type="prompt"), managed)
    fix = world.found()[1]["entry-changed"]["fix"]
    assert fix == f"ask the administrator of this machine to correct {managed}"


@pytest.mark.parametrize("program", ['"$HOME/../bin/notyet"', "./notyet", "notyet", ""])
def test_a_program_may_be_named_in_any_way_that_a_shell_takes(world, program):
    shutil.copy(world.notyet, world.project / "notyet")
    world.settings.unlink()
    world.register(start=program)
    assert world.found() == (0, {})


def test_the_fix_keeps_an_entry_s_place_and_time(world):
    world.settings.unlink()
    world.register("local", timeout=700)
    path = world.project / ".claude" / "settings.local.json"
    world.change(lambda v: v["hooks"]["Stop"][0]["hooks"][0].update(timeout=60), path)
    fix = world.found()[1]["timeout-too-short"]["fix"]
    assert fix == "run: notyet install claude --local --timeout 700"


def test_fixes_of_entries_that_are_twice_or_written_by_hand(world):
    world.register("local")
    fix = world.found()[1]["registered-twice"]["fix"]
    assert fix == "run: notyet uninstall claude --local"
    (world.project / ".claude" / "settings.local.json").unlink()
    line = f"make lint && {world.notyet} hook --host claude --timeout 1800"
    world.each_entry("Stop", command=line, timeout=60)
    found = world.found()[1]["timeout-too-short"]
    by_hand = f"take `notyet hook ...` out of {found['where']} yourself"
    assert found["fix"] == f"{by_hand}, and run: notyet install claude"


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
    world.gates(f'{GATES}[read]\nhosts = ["mux"]\n')
    mux = world.project / ".mux"
    mux.mkdir()
    hook = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    (mux / "settings.json").write_text(json.dumps(hook))
    code, found = world.found()
    assert code == 1
    assert found["config-untrusted"]["where"] == f"{mux}/settings.json"
    assert found["config-untrusted"]["fix"] == "run: notyet trust --read mux"


def test_a_file_that_only_the_command_names_counts(world):
    other = world.folder / "other.toml"
    other.write_text('[gates]\nother = "true"\n')
    trust(other)
    world.each_entry(
        "Stop",
        "SubagentStop",
        command=f"{world.notyet} hook --host claude --timeout 1800 --config {other}",
    )
    code, said = world.status()
    assert (code, said["hosts"][0]["gates"]) == (0, ["other"])


@pytest.mark.rule("J8")
@pytest.mark.parametrize("has_own", [True, False])
def test_gates_that_only_other_hosts_run_are_shown_with_those_hosts(world, has_own):
    write(world.project, ".mux/settings.json", hooks("exit 1"))
    if not has_own:
        world.gates("[limits]\nmax_blocks = 2\n")
    code, out = world.shown()
    assert "No gate is in force here" not in out
    assert "mux, notyet with" in out
    assert ("The gates here are for other hosts" in out) is not has_own
    assert (code == 0) is has_own
