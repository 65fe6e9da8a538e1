"""`notyet check`: the gates are run now, as a stop would ask them."""

import json
import re
from pathlib import Path

import pytest

from config_places import hooks, write
from hook_runs import (
    FAILING,
    PASSING,
    gate,
    new_project,
    payload,
    run_hook,
)
from notyet.cli.gate_words import summed_up

PAYLOADS = Path(__file__).parents[2] / "vectors" / "payloads"
CHANGED = '[gates]\ntests = "echo ran >> {ran}"\n'


def rows(out):
    """Return what is said of each gate."""
    lines = out.partition("\n\n")[0].splitlines()
    return {line.split()[1]: line for line in lines}


def test_a_gate_that_ends_the_turn_exits_with_1(check, tmp_path):
    text = gate("""echo '{"decision": "halt", "reason": "no more"}'""")
    done = check(new_project(tmp_path / "p", text))
    assert done.code == 1
    halted = "halted: the agent's turn would be ended by g"
    assert done.out.endswith(f"{halted} (what its user would read: notyet check --as claude)\n")
    done = check(tmp_path / "p", "--as", "claude")
    assert f"{halted}\nIts user would read:\n\n  no more\n" in done.out


def test_a_broken_gate_exits_with_2_and_says_that_nothing_was_checked(check, tmp_path):
    text = gate("no-such-program-at-all", if_broken="allow")
    done = check(new_project(tmp_path / "p", text))
    assert done.code == 2
    assert rows(done.out)["g"].startswith("  ! g ")
    assert "cannot start" in rows(done.out)["g"]
    assert "! gate g cannot start: " in done.out
    assert done.out.endswith("NOT CHECKED: g gave no answer\n")


def test_a_person_may_check_more_often_than_a_judge_is_asked_in_one_session(check, tmp_path):
    text = '[gates.review]\njudge = "It works."\nwith = "cat >/dev/null; echo no"\ncalls = 1\n'
    folder = new_project(tmp_path / "p", text)
    for _ in range(2):
        assert "it printed no answer with the id of this call" in check(folder).out


def test_a_stage_that_is_not_reached_is_shown(check, tmp_path):
    text = FAILING + '[gates.later]\nrun = "true"\nslow = true\n'
    done = check(new_project(tmp_path / "p", text))
    assert "not run" in rows(done.out)["later"]
    assert "a gate before it blocks" in rows(done.out)["later"]


def test_gates_for_others_are_named_with_the_reason(check, tmp_path):
    text = PASSING + '[gates.sub]\nrun = "true"\nfor = ["coder"]\n'
    folder = new_project(tmp_path / "p", text)
    done = check(folder)
    assert "not for this stop:\n  sub (notyet.toml:4)  it is not for the main agent\n" in done.out
    done = check(folder, "--event", "subagent_stop", "--agent-type", "coder")
    assert list(rows(done.out)) == ["sub"]
    assert "ok (notyet.toml:1)  it is not for subagents\n" in done.out
    done = check(folder, "--agent-type", "reviewer")
    assert done.code == 2
    assert "no pattern fits (coder)" in done.out
    assert done.out.endswith("nothing was run: no gate is for this stop\n")


def test_a_gate_that_was_written_after_the_file_was_trusted_is_refused_with_that(check, tmp_path):
    folder = new_project(tmp_path / "p", PASSING)
    (folder / "notyet.toml").write_text(PASSING + FAILING)
    done = check(folder, "bad")
    assert done.code == 2
    assert "changed since it was trusted" in done.err


def test_work_in_the_background_is_said(check, tmp_path):
    folder = new_project(tmp_path / "p", FAILING)
    sent = payload("claude", folder) | {
        "background_tasks": [{"id": "a", "type": "subagent", "status": "running"}]
    }
    (tmp_path / "sent.json").write_text(json.dumps(sent))
    done = check(folder, "--payload", tmp_path / "sent.json")
    assert done.code == 2
    assert "other work of this session still runs" in done.out


@pytest.mark.parametrize("file", ["claude/Stop.json", "codex/Stop.00-basic.0.json"])
def test_a_real_payload_is_asked_about(check, tmp_path, file):
    folder = new_project(tmp_path / "p", gate('cat > seen; echo "$NOTYET_HOST" > host'))
    sent = json.loads((PAYLOADS / file).read_bytes()) | {"cwd": str(folder)}
    (tmp_path / "sent.json").write_text(json.dumps(sent))
    assert check(folder, "--payload", tmp_path / "sent.json").code == 0
    seen = json.loads((folder / "seen").read_bytes())
    assert seen["session_id"] == sent["session_id"]
    assert (folder / "host").read_text().strip() == file.partition("/")[0]


def test_a_fault_of_ours_is_not_hidden(check, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("ours")

    folder = new_project(tmp_path / "p", FAILING)
    monkeypatch.setattr("notyet.engine.stop.plan", broken)
    with pytest.raises(RuntimeError, match="ours"):
        check(folder)


def test_the_hosts_deadline_ends_the_gates(check, tmp_path):
    folder = new_project(tmp_path / "p", gate("sleep 60", if_broken="block"))
    done = check(folder, "--timeout", "1")
    assert done.code == 2
    assert "deadline" in rows(done.out)["g"]
    assert check(folder, "--timeout", "soon").code == 2
    assert check(folder, "--timeout", "-1").code == 2


RUNNER = """\
seq 99
echo 'FAILED test_pay.py::test_refund'
printf '\\033[1m==== 2 failed, 118 passed in 0.1s ====\\033[0m\\n\\n'
exit 1
"""


def test_the_last_line_of_an_output_sums_it_up_and_its_end_follows(check, tmp_path):
    text = "".join(
        f"[gates.{name}]\nrun = 'sh runner'\n{more}\n"
        for name, more in {"tests": 'hint = "Fix the cause."', "seen": "observe = true"}.items()
    )
    folder = new_project(tmp_path / "p", f'{text}[gates.lint]\nrun = "echo All checks passed!"\n')
    (folder / "runner").write_text(RUNNER)
    lines = check(folder).out.splitlines()
    took = re.compile(r" +\d\.\d s +")
    assert [took.sub("|", line) for line in lines[:3]] == [
        "  ✗ tests|2 failed, 118 passed in 0.1s",
        "  ✗ seen|2 failed, 118 passed in 0.1s · would fail, but only observes",
        "  ✓ lint|All checks passed!",
    ]
    assert lines[3:6] == [
        "",
        "FAILED tests (exit 1, notyet.toml:1): sh runner",
        "  ... 61 lines left out (all: notyet check --json)",
    ]
    assert lines[6] == "  62"
    assert lines[44:49] == [
        "  FAILED test_pay.py::test_refund",
        "  ==== 2 failed, 118 passed in 0.1s ====",
        "Hint: Fix the cause.",
        "",
        "WOULD FAIL seen (exit 1, notyet.toml:4): sh runner",
    ]
    assert lines[-1].endswith("sent back by tests (what it would read: notyet check --as claude)")


@pytest.mark.parametrize(
    ("output", "summary"),
    [
        ("Found 3 errors.\n", "Found 3 errors."),
        ("OK\n", "OK"),
        ("test result: ok. 5 passed; 0 failed", "test result: ok. 5 passed; 0 failed"),
        ("  12 problems (3 errors,\t9 warnings)\n\n", "12 problems (3 errors, 9 warnings)"),
        ("\x1b[32m1 passed\x1b[0m\x1b]0;x\x07", "1 passed"),
        ("", ""),
        ("done in 3 s", ""),
        ("failed " * 30, ""),
    ],
)
def test_only_a_line_that_sums_up_is_a_summary(output, summary):
    assert summed_up(output) == summary


# What is remembered.


@pytest.mark.rule("N1")
def test_a_pass_spares_the_next_stop_the_question(check, git_project, tmp_path):
    ran = tmp_path / "ran"
    folder = new_project(Path(git_project), CHANGED.format(ran=ran))
    assert check(folder).code == 0
    run_hook(payload("claude", folder), "--host", "claude")
    assert ran.read_text() == "ran\n"


@pytest.mark.rule("N1")
def test_a_pass_that_an_agent_arranged_for_is_not_remembered(
    check, git_project, tmp_path, monkeypatch
):
    ran = tmp_path / "ran"
    folder = new_project(Path(git_project), CHANGED.format(ran=ran))
    monkeypatch.setenv("CLAUDECODE", "1")
    done = check(folder, "--as", "claude")
    assert done.code == 0
    said = "passes are not remembered, because an agent runs this check"
    assert f"! {said}\n" in done.out
    assert said not in done.out.partition("claude would get")[2]
    monkeypatch.delenv("CLAUDECODE")
    run_hook(payload("claude", folder), "--host", "claude")
    assert ran.read_text() == "ran\nran\n"


@pytest.mark.rule("N1")
@pytest.mark.parametrize("whose", ["a user's", "an agent's"])
def test_a_check_that_fails_takes_back_the_pass_that_spared_the_gate(
    check, git_project, tmp_path, monkeypatch, whose
):
    broken = tmp_path / "broken"  # nothing that git sees
    folder = new_project(Path(git_project), f'[gates]\ntests = "test ! -e {broken}"\n')
    assert check(folder).code == 0
    broken.write_text("x")
    assert run_hook(payload("claude", folder)).stdout.strip() in {b"", b"{}"}
    if whose == "an agent's":
        monkeypatch.setenv("CLAUDECODE", "1")
    done = check(folder)
    assert (done.code, "a stop would not ask" in done.out) == (1, False)
    said = run_hook(payload("claude", folder, last_assistant_message="again")).stdout
    assert json.loads(said)["decision"] == "block"


@pytest.mark.rule("N1")
@pytest.mark.parametrize("answer", ["tests=allow", "tests=exit:0"])
def test_an_answer_is_never_remembered(check, git_project, tmp_path, answer):
    ran = tmp_path / "ran"
    folder = new_project(Path(git_project), CHANGED.format(ran=ran))
    assert check(folder, "--answer", answer).code == 0
    assert not ran.exists()
    run_hook(payload("claude", folder), "--host", "claude")
    assert ran.read_text() == "ran\n"


def test_no_observer_is_notified(check, tmp_path):
    text = FAILING + f'[observers.o]\nrun = "touch {tmp_path}/told"\n'
    folder = new_project(tmp_path / "p", text)
    check(folder)
    check(folder, "--as", "claude")
    assert not (tmp_path / "told").exists()
    run_hook(payload("claude", folder), "--host", "claude")
    assert (tmp_path / "told").exists()


# Answers.


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        ("ok=allow", 0, "passed: the agent may stop"),
        ("ok=block", 1, "(answered by --answer)"),
        ("ok=block: ", 1, "(answered by --answer)"),
        ("ok=halt:enough", 1, "enough"),
        ("ok=halt", 1, "ended by ok"),
        ("ok=broken:no disk", 2, "gate ok crashed: no disk (if_broken = block)"),
        ("ok=broken", 2, "crashed: (answered by --answer)"),
        ("ok=exit:0", 0, "passed: the agent may stop"),
        ("ok=exit:3", 1, "It exited with code 3 and said nothing."),
        ("ok=exit:127", 2, "cannot start"),
    ],
)
def test_every_verdict_can_be_answered(check, tmp_path, answer, code, said):
    done = check(new_project(tmp_path / "p", PASSING), "--answer", answer)
    assert done.code == code
    assert said in done.out


# For programs.


def test_json_says_all_there_is(check, tmp_path):
    text = FAILING + '[gates.sub]\nrun = "true"\nfor = ["coder"]\n'
    folder = new_project(tmp_path / "p", text)
    said = check(folder, "--json").json
    assert (said["verdict"], said["outcome"], said["held"]) == ("block", "blocked", True)
    assert said["prompt"].startswith("notyet: a check failed")
    assert said["reason"] == "it is broken"
    (report,) = said["reports"]
    assert report["seconds"] >= 0
    assert len(report["definition"]) == 32
    del report["seconds"], report["definition"]
    file = f"{folder}/notyet.toml"
    assert report == {
        "gate": "bad",
        "file": file,
        "line": 1,
        "status": "blocked",
        "words": "it is broken",
        "exit": "exit 1",
        "output": "it is broken",
        "observed": False,
        "warning": "",
        "workspace": "",
        "answered": False,
        "spared": "",
    }
    (unasked,) = said["unasked"]
    assert unasked == {
        "gate": "sub",
        "file": file,
        "line": 4,
        "why": "it is not for the main agent",
    }
    assert "reply" not in said


@pytest.mark.rule("J8")
def test_gates_that_only_other_hosts_run_are_named_with_those_hosts(check, tmp_path):
    write(tmp_path / "p", ".mux/settings.json", hooks("exit 1"))
    done = check(tmp_path / "p")
    assert done.code == 2
    assert "only under mux, notyet with" in done.out
    assert "there are no gates here" not in done.out
    known = check(tmp_path / "p", "--json").json["unasked"]
    assert [one["why"] for one in known] == ["only under mux, notyet with"]
