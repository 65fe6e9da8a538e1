"""The process of a hook: its time, its signals, what it leaves behind and what it loads."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from commands import pids_in, running, until
from hook_runs import (
    ENTRY,
    assert_allows,
    clean_environ,
    command_line,
    gate,
    in_bytes,
    loaded,
    new_project,
    payload,
    query,
    run_changed_hook,
    run_hook,
    run_late_hook,
    start_hook,
    stops,
)

HEAVY = {
    *("json", "re", "subprocess", "asyncio", "typing", "dataclasses", "enum", "pathlib"),
    *("logging", "tomllib", "yaml", "sqlite3", "hashlib", "random", "collections", "functools"),
    *("contextlib", "signal", "threading", "inspect", "argparse", "tempfile", "shutil"),
}


WAIT = "until [ -s a.pid ]; do sleep 0.01; done"


@pytest.mark.rule("E9")
def test_an_answer_comes_before_the_host_stops_waiting(tmp_path):
    project = new_project(tmp_path / "p", gate("sleep 60", if_broken="block"))
    done = run_hook(payload("claude", project), "--timeout", "3")  # which would wait for a minute
    assert done.returncode == 0
    # The others where the machine is so busy that the gate had no time, or we had none.
    said = (b"all that its host allows", b"deadline", b"no answer within the 3 s")
    assert any(words in done.stderr for words in said)


@pytest.mark.rule("E9")
@pytest.mark.parametrize(
    "command", ["touch there; sleep 60", "trap '' TERM; touch there; sleep 60 & wait; sleep 60"]
)
def test_a_gate_is_ended_when_the_host_does_not_wait_any_longer(tmp_path, command):
    project = new_project(tmp_path / "p", gate(f"echo $$ > a.pid; {command}", if_broken="block"))
    done = run_late_hook(payload("claude", project), project / "there")
    assert b"did not finish within" in done.stderr
    assert stops() == [("blocked", "g")]
    assert not any(running(pid) for pid in pids_in(project))


@pytest.mark.rule("E2")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_gates_is_recorded_and_then_ends_the_hook(tmp_path, number):
    project = new_project(tmp_path / "p", gate("echo $$ > a.pid; sleep 60 & sleep 60"))
    started = start_hook(payload("claude", project))
    assert until(lambda: pids_in(project))
    started.send_signal(number)
    stdout, stderr = started.communicate(timeout=30)
    assert (started.returncode, stdout) == (-number, b"")
    assert stderr == b"notyet: ended by signal %d; NOT CHECKED\n" % number
    assert stops() == [("skipped", "cancelled")]
    assert not any(running(pid) for pid in pids_in(project))


def events():
    """Return the event and the cause of every recorded stop."""
    return query("SELECT event, why FROM stops ORDER BY id")


def catches(pid, number):
    """Return True if a process has a handler for a signal."""
    with open(f"/proc/{pid}/status") as file:
        (line,) = [line for line in file if line.startswith("SigCgt:")]
    return bool(int(line.split()[1], 16) >> (number - 1) & 1)


@pytest.mark.rule("E2")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_payload_ends_the_hook_with_a_row(number):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    started = subprocess.Popen(command_line(), env=clean_environ(), **pipes)
    assert until(lambda: catches(started.pid, number))
    started.send_signal(number)
    stdout, stderr = started.communicate(timeout=30)
    assert (started.returncode, stdout) == (-number, b"")
    assert b"NOT CHECKED" in stderr
    assert stops() == [("skipped", "signal")]


@pytest.mark.rule("E2")
@pytest.mark.parametrize(
    ("event", "rows"),
    [
        ("Stop", [("s1", "signal")]),
        ("SubagentStop", [("s1", "signal")]),
        ("SessionStart", []),
        ("PreToolUse", []),
    ],
)
def test_a_signal_before_the_gates_records_stops_only(tmp_path, event, rows):
    project = new_project(tmp_path / "p")
    change = "import signal\nfrom notyet.hook import main\n"
    change += "main.needs_nothing = lambda call: (call.payload(), signal.raise_signal(15))"
    done = run_changed_hook(payload("claude", project, hook_event_name=event), change)
    assert (done.returncode, done.stdout) == (-15, b"")
    assert [(json.loads(event)["session_id"], why) for event, why in events()] == rows


def test_a_hook_that_is_killed_leaves_nothing_running_and_the_next_stop_works(tmp_path):
    project = new_project(tmp_path / "p", gate("echo $$ > a.pid; test -e go || sleep 60"))
    started = start_hook(payload("claude", project))
    assert until(lambda: pids_in(project))
    started.kill()
    started.communicate(timeout=30)
    assert until(lambda: not any(running(pid) for pid in pids_in(project)))
    (project / "go").touch()
    done = run_hook(payload("claude", project))
    assert_allows("claude", done.returncode, done.stdout)
    assert stops() == [("skipped", "lost"), ("passed", "")]


@pytest.mark.rule("E2")
@pytest.mark.parametrize(
    "leave",
    [
        "sleep 60 >/dev/null 2>&1 & echo $! > a.pid",
        "sleep 60 & echo $! > a.pid",
        "setsid sh -c 'echo $$ > a.pid; exec sleep 60' >/dev/null 2>&1 & " + WAIT,
        "setsid sh -c '(echo $$ > a.pid; trap \"\" TERM; sleep 60; sleep 60) &' & " + WAIT,
    ],
)
def test_what_a_gate_leaves_in_the_background_is_gone_afterwards(tmp_path, leave):
    project = new_project(tmp_path / "p", gate(leave))
    begun = time.monotonic()
    done = run_hook(payload("claude", project))
    assert time.monotonic() - begun < 20
    assert_allows("claude", done.returncode, done.stdout)
    assert pids_in(project)
    assert not any(running(pid) for pid in pids_in(project))


@pytest.mark.rule("E1")
def test_a_gate_gets_the_whole_event_on_stdin_and_then_its_end(tmp_path):
    project = new_project(tmp_path / "p", gate("cat > seen"))
    run_hook(payload("claude", project, last_assistant_message="é" * 500_000))
    seen = json.loads((project / "seen").read_text())
    assert seen["last_message"] == "é" * 500_000
    assert (seen["session_id"], seen["host"], "raw" in seen) == ("s1", "claude", False)


@pytest.mark.rule("E11")
def test_a_gate_that_calls_the_hook_itself_is_not_gated_again(tmp_path):
    inner = f"{sys.executable} -I -S {ENTRY} hook > inner.out 2> inner.err; echo $? > inner.code"
    project = new_project(tmp_path / "p", gate(f"env > inner.env; cat > event; {inner} < event"))
    event = payload("notyet", project)
    done = run_hook(event, "--host", "notyet")
    assert_allows("notyet", done.returncode, done.stdout)
    assert (project / "inner.code").read_text() == "0\n"
    assert "NOTYET_INSIDE=1\n" in (project / "inner.env").read_text()
    assert sorted(stops()) == [("passed", ""), ("skipped", "inside")]


@pytest.mark.rule("B12")
def test_two_hooks_at_once_for_one_stop_get_one_answer_and_one_count(tmp_path):
    project = new_project(tmp_path / "p", gate("echo x >> asked; sleep 1; exit 1"))
    both = [start_hook(payload("claude", project)) for _ in range(2)]
    answers = [started.communicate(timeout=60)[0] for started in both]
    assert json.loads(answers[0])["decision"] == "block"
    assert json.loads(answers[0])["reason"] == json.loads(answers[1])["reason"]
    assert (project / "asked").read_text() == "x\n"
    assert stops() == [("blocked", "g")]
    assert query("SELECT blocks FROM agents") == [(1,)]


@pytest.mark.rule("B12")
@pytest.mark.parametrize(("code", "runs"), [(0, 2), (1, 1)])
def test_a_hook_that_was_started_before_the_first_answered_repeats_a_block(tmp_path, code, runs):
    project = new_project(tmp_path / "p", gate(f"echo x >> asked; exit {code}"))
    event = payload("claude", project, stop_hook_active=True)
    # The shell is our process, and turns into the hook when the other has answered.
    late = subprocess.Popen(
        ["/bin/sh", "-c", 'read line; exec "$@"', "sh", *command_line()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environ(),
    )
    first = run_hook(event)
    again = late.communicate(b"now\n" + in_bytes(event), timeout=60)[0]
    assert again == first.stdout
    assert (project / "asked").read_text() == "x\n" * runs  # a pass is not inherited
    run_hook(event)  # a hook that is started later is about a stop of its own
    assert (project / "asked").read_text() == "x\n" * (runs + 1)


@pytest.mark.rule("B12")
def test_a_forged_stop_in_flight_does_not_answer_the_real_one(tmp_path):
    project = new_project(tmp_path / "p", gate("checker", timeout=60))
    scripts = {"bad": "touch asked; until [ -e go ]; do sleep 0.01; done", "good": "exit 1"}
    for name, script in scripts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "checker").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name / "checker").chmod(0o755)
    path = os.environ["PATH"]
    forged = start_hook(payload("claude", project), environ={"PATH": f"{tmp_path}/bad:{path}"})
    assert until((project / "asked").exists)
    real = start_hook(payload("claude", project), environ={"PATH": f"{tmp_path}/good:{path}"})
    (project / "go").touch()
    assert_allows("claude", 0, forged.communicate(timeout=60)[0])
    assert json.loads(real.communicate(timeout=60)[0])["decision"] == "block"
    assert stops() == [("passed", ""), ("blocked", "g")]


@pytest.mark.rule("B12", "G5")
def test_a_stop_that_an_equal_one_holds_up_is_not_checked_and_says_so(tmp_path):
    project = new_project(tmp_path / "p", gate("touch asked; sleep 50"))
    forged = start_hook(payload("claude", project))
    assert until((project / "asked").exists)
    done = run_hook(payload("claude", project), "--timeout", "5")
    assert "NOT CHECKED: the same stop is still being" in json.loads(done.stdout)["systemMessage"]
    assert stops() == [("asking", ""), ("skipped", "duplicate")]
    forged.kill()
    forged.communicate(timeout=30)


def loaded_by(folder):
    """Return the modules that a real run of the hook has loaded at its end."""
    return loaded(payload("claude", folder))[1]


@pytest.mark.rule("J6")
def test_the_users_own_file_is_compiled_once(tmp_path):
    own = os.path.join(os.environ["XDG_CONFIG_HOME"], "notyet")
    os.makedirs(own)
    with open(os.path.join(own, "notyet.toml"), "w") as file:
        file.write('[gates.mine]\nrun = "true"\nwhen = "always"\n')
    (tmp_path / "other").mkdir()
    assert "tomllib" in loaded_by(tmp_path / "other")
    assert loaded_by(tmp_path / "other").isdisjoint(HEAVY)
    assert stops() == [("passed", "")] * 2


@pytest.mark.rule("E2")
def test_a_host_that_is_killed_takes_the_gates_with_it(tmp_path):
    project = new_project(tmp_path / "p", gate("echo $$ > a.pid; sleep 60"))
    host = f"""
import subprocess, sys
hook = subprocess.Popen({[sys.executable, "-I", "-S", str(ENTRY), "hook"]!r}, stdin=subprocess.PIPE,
    stdout=subprocess.PIPE, start_new_session=True)
hook.stdin.write(sys.stdin.buffer.read())
hook.stdin.close()
print(hook.pid, flush=True)
hook.wait()
"""
    running_host = subprocess.Popen(
        [sys.executable, "-c", host],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environ(),
    )
    running_host.stdin.write(json.dumps(payload("claude", project)).encode())
    running_host.stdin.close()
    hook = int(running_host.stdout.readline())
    until(lambda: pids_in(project))
    running_host.kill()
    running_host.wait()
    running_host.stdout.close()
    assert until(lambda: not running(hook) and not any(running(pid) for pid in pids_in(project)))
    assert stops() == [("skipped", "cancelled")]
