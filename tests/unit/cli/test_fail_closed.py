"""A gate that cannot run, or does not finish, blocks; faults of ours never do (A6)."""

import json

import pytest

from conftest import git
from hook_runs import FAILING, PASSING, ask, gate, new_project, payload, stops, trust
from notyet.cli.main import main

PYTHON = '[gates.g]\npython = "checks:missing"\n'
BROKEN = [
    (gate("./missing.sh"), "It cannot start: ./missing.sh: "),
    (gate(["./missing.sh"]), "It cannot start: the program './missing.sh' does not exist."),
    (gate("npm-of-nobody run lint"), "It cannot start: npm-of-nobody: "),
    (gate("kill -9 $$"), "It was ended by signal 9."),
    (
        gate("echo begun; sleep 60", timeout="1s"),
        "  begun\n  It did not finish within 1 s: it hangs or is too slow.",
    ),
    (PYTHON, "It crashed: ModuleNotFoundError: No module named 'checks'"),
]


@pytest.mark.rule("A6", "E10")
@pytest.mark.parametrize(("text", "words"), BROKEN)
def test_a_gate_of_a_file_that_cannot_run_blocks_in_words_of_its_own(tmp_path, text, words):
    project = new_project(tmp_path / "p", text)
    reply = json.loads(ask(payload("claude", project)).stdout)
    assert reply["decision"] == "block"
    assert words in reply["reason"]
    assert "sent back 1/3: g (" in reply["systemMessage"]
    assert stops() == [("blocked", "g")]


@pytest.mark.rule("A6", "N3")
@pytest.mark.parametrize(("text", "words"), BROKEN)
def test_one_that_need_not_run_is_told_as_not_checked(tmp_path, text, words):
    project = new_project(tmp_path / "p", text.rstrip() + '\nif_broken = "allow"\n')
    reply = json.loads(ask(payload("claude", project)).stdout)
    assert reply["systemMessage"].startswith("notyet: NOT CHECKED: g: ")
    assert stops() == [("failed_open", "g gave no answer")]
    assert words  # which the agent does not read


@pytest.mark.rule("A6", "B1")
def test_broken_gates_are_counted_and_end_at_the_limit(tmp_path):
    project = new_project(tmp_path / "p", gate("./missing.sh"))  # no git: never stuck
    for _ in range(4):
        reply = ask(payload("claude", project, stop_hook_active=True))
    assert [outcome for outcome, _ in stops()] == ["blocked"] * 3 + ["capped"]
    assert "NOT PASSED" in reply.stdout


@pytest.mark.rule("A6", "B6")
def test_broken_gates_end_as_stuck_if_no_file_changes(tmp_path):
    project = new_project(tmp_path / "p", gate("sleep 60; ./missing.sh", timeout="100ms"))
    git(project, "init", "--quiet")
    for _ in range(3):
        reply = ask(payload("claude", project, stop_hook_active=True))
    assert [outcome for outcome, _ in stops()] == ["blocked", "blocked", "stuck"]
    assert "NOT PASSED" in reply.stdout


@pytest.mark.rule("E9", "A6")
def test_a_gate_that_uses_up_the_hosts_time_has_timed_out(tmp_path):
    project = new_project(tmp_path / "p", gate("sleep 60"))
    reply = ask(payload("claude", project), "--timeout", "4")
    assert "all that its host allows: it hangs or is too slow" in json.loads(reply.stdout)["reason"]
    assert stops() == [("blocked", "g")]


@pytest.mark.rule("A6")
def test_hooks_of_other_hosts_allow_as_they_do_there(tmp_path):
    project = new_project(tmp_path / "p", '[read]\nhosts = ["claude"]\n')
    settings = project / ".claude" / "settings.json"
    settings.parent.mkdir()
    hook = {"type": "command", "command": "./missing.sh"}
    settings.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))
    trust(settings, "claude")
    ask(payload("codex", project))
    assert [outcome for outcome, _ in stops()] == ["failed_open"]


# Truth about what ran.


@pytest.mark.rule("F9-conclaude-subagent", "A7", "A8")
def test_a_subagents_command_that_fails_and_does_not_block_is_observed(tmp_path, capsys):
    project = tmp_path / "p"
    project.mkdir()
    file = project / ".conclaude.yaml"
    file.write_text("subagentStop: {commands: {coder: [{run: exit 7}]}}\n")
    trust(file, "conclaude")
    sent = payload("conclaude", project, hook_event_name="SubagentStop", agent_id="coder")
    reply = ask(sent, "--host", "conclaude")
    assert (reply.code, "exit code 7" in reply.stderr) == (0, True)
    ((outcome, why),) = stops()
    assert (outcome, why.endswith(" would have blocked")) == ("observed", True)
    main(["log", "--all"])
    assert "observed" in capsys.readouterr().out
    main(["log", "--stats", "--json", "--all"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["watches"], one["blocked"]) for one in lines if "watches" in one] == [(True, 1)]


@pytest.mark.rule("N2", "E4")
@pytest.mark.parametrize(
    ("command", "lines"),
    [("seq 100002; exit 1", 100_002), ("head -c 10000000 /dev/zero | tr '\\0' x; exit 1", 0)],
)
def test_the_lines_that_the_agent_does_not_read_are_counted(tmp_path, command, lines):
    project = new_project(tmp_path / "p", gate(command))
    reason = json.loads(ask(payload("claude", project)).stdout)["reason"]
    shown = sum(line.strip().isdecimal() for line in reason.splitlines())
    if lines:
        assert f"... {lines - shown} lines left out ..." in reason
    else:
        assert "... the beginning of this line left out ..." in reason


@pytest.mark.rule("B6", "N2")
def test_the_agent_reads_which_limit_ends_it_before_it_does(tmp_path):
    project = new_project(tmp_path / "p", FAILING)
    git(project, "init", "--quiet")
    first, second = (
        json.loads(ask(payload("claude", project, stop_hook_active=True)).stdout)["reason"]
        for _ in range(2)
    )
    words = "If it fails in the same way once more, with no file changed, you are not sent back"
    assert (words in first, words in second) == (False, True)


# `[limits] jobs`.

COUNTS = "touch here-$$; ls | grep -c here- >> most; sleep 0.2; rm here-$$"


def most_at_once(project):
    assert stops()[-1] == ("passed", "")
    return max(map(int, (project / "most").read_text().split()))


def test_so_many_commands_run_at_a_time(tmp_path):
    gates = "".join(f'[gates.g{n}]\nrun = "{COUNTS}"\ntimeout = "30s"\n' for n in range(5))
    project = new_project(tmp_path / "p", f"[limits]\njobs = 1\n{gates}")
    ask(payload("claude", project))
    assert most_at_once(project) == 1


@pytest.mark.rule("J6")
def test_an_inner_file_does_not_change_how_many_run_at_a_time(tmp_path):
    gates = "".join(f'[gates.g{n}]\nrun = "{COUNTS}"\n' for n in range(3))
    outer = new_project(tmp_path / "p", f"[limits]\njobs = 1\n{gates}")
    git(outer, "init", "--quiet")
    inner = new_project(outer / "inner", "[limits]\njobs = 9\n")
    ask(payload("claude", inner))
    assert most_at_once(outer) == 1


# `notyet check`: a build is green only if every gate passed.


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (PASSING, 0),
        (PASSING + "observe = true\n", 0),
        (PASSING + '[gates.o]\nrun = "false"\nobserve = true\n', 0),
        (PASSING + '[gates.o]\nrun = "./missing"\nobserve = true\n', 0),
        (FAILING, 1),
        (FAILING + '[gates.later]\nrun = "true"\nslow = true\n', 1),
        (gate("""echo '{"continue": false}'"""), 1),
        (gate("./missing.sh"), 2),
        (gate("./missing.sh", if_broken="allow"), 2),
        (gate("sleep 60", timeout="1s"), 2),
        (gate("kill -9 $$", if_broken="allow"), 2),
        (gate("./missing.sh") + "\n" + FAILING, 2),
        ("", 2),
    ],
)
def test_check_exits_with_0_only_if_every_gate_passed(check, tmp_path, text, code):
    assert check(new_project(tmp_path / "p", text)).code == code


def test_check_exits_with_2_if_nothing_is_trusted_or_in_force(check, tmp_path, monkeypatch):
    assert check(new_project(tmp_path / "untrusted", PASSING, trusted=False)).code == 2
    inner = new_project(new_project(tmp_path / "p") / "inner", "", trusted=False)
    assert check(inner).code == 2
    assert check(tmp_path).code == 2
    monkeypatch.setenv("NOTYET_DISABLE", "1")
    assert check(tmp_path / "p").code == 2


def test_check_exits_with_1_where_a_limit_would_allow_the_stop(check, tmp_path):
    project = new_project(tmp_path / "p", "[limits]\nmax_blocks = 0\n" + FAILING)
    done = check(project)
    assert done.code == 1
    assert "NOT PASSED" in done.out


def test_check_exits_with_0_where_no_file_changed_since_it_passed(check, tmp_path):
    project = new_project(tmp_path / "p", '[gates]\nok = "true"\n')
    git(project, "init", "--quiet")
    assert [check(project).code for _ in range(2)] == [0, 0]


@pytest.mark.rule("A6", "E7")
def test_a_gate_whose_folder_became_a_link_out_of_its_project_cannot_start(tmp_path):
    project = tmp_path / "p"
    for folder in (project / "sub", tmp_path / "good"):
        folder.mkdir(parents=True)
        (folder / "ok").touch()
    new_project(project, '[gates.g]\nrun = "test -e ok"\ndir = "sub"\nwhen = "always"\n')
    ask(payload("claude", project))
    assert stops()[-1][0] == "passed"
    (project / "sub").rename(project / "moved")
    (project / "sub").symlink_to(tmp_path / "good")
    reason = json.loads(ask(payload("claude", project, session_id="s2")).stdout)["reason"]
    assert f"{project}/sub is a link that leaves {project}" in reason
