"""A hook answers in time, whatever takes long; and whatever it inherits from its host."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress

import pytest

from commands import pids_in, running
from hook_runs import (
    ENTRY,
    PASSING,
    assert_allows,
    clean_environ,
    command_line,
    gate,
    ledger_path,
    new_project,
    payload,
    run_changed_hook,
    run_hook,
    stops,
    trust,
)
from notyet.hook import main as hook
from notyet.hook import process as hook_process
from notyet.hook.payload import HostCall, Options


def start(*argv, **options):
    """Start a hook whose stdin stays open."""
    return subprocess.Popen(
        command_line(*argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environ(),
        **options,
    )


@pytest.mark.rule("E9")
def test_an_event_that_trickles_in_is_not_waited_for_too_long(tmp_path):
    content = json.dumps(payload("claude", new_project(tmp_path / "p"))).encode()
    with start("--timeout", "6") as hook:
        begun = time.monotonic()
        while hook.poll() is None and time.monotonic() - begun < 12:
            try:
                hook.stdin.write(content[:5])
                hook.stdin.flush()
            except BrokenPipeError:
                break
            content = content[5:] or b"."
            time.sleep(0.25)
        code = hook.wait(10)
        assert time.monotonic() - begun < 26  # it did not hang
        assert_allows("claude", code, hook.stdout.read())
        assert b"not JSON" in hook.stderr.read()
        with suppress(BrokenPipeError):
            hook.stdin.close()


def test_a_whole_event_is_answered_although_the_host_leaves_the_pipe_open(tmp_path):
    project = new_project(tmp_path / "p", gate("exit 1"))
    reads, writes = os.pipe()
    os.write(writes, json.dumps(payload("claude", project)).encode() + b"\n")
    # It does not wait until the host has said nothing for long.
    change = "from notyet.hook import process as here\nhere._SILENCE = here._LONGEST_READING = 99"
    try:
        done = run_changed_hook(reads, change)
    finally:
        os.close(reads)
        os.close(writes)
    assert json.loads(done.stdout)["decision"] == "block"


@pytest.mark.parametrize("text", ['{"a": {}', '{"a": {}}}', "x}", "[1, {}", "{" * 5000 + "}"])
def test_what_only_looks_like_the_end_of_an_event_is_not_taken_for_it(text):
    reader = hook_process._StdinReader()
    reader.add(text.encode())
    assert not reader._is_complete()
    assert not reader._is_complete()


def test_a_host_that_ignores_and_blocks_signals_is_answered_all_the_same(tmp_path):
    def odd_host():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))

    project = new_project(tmp_path / "p", gate("exit 1"))
    done = run_hook(payload("claude", project), preexec_fn=odd_host)
    assert json.loads(done.stdout)["decision"] == "block"
    assert done.stderr == b""
    assert stops() == [("blocked", "g")]


@pytest.mark.rule("E2")
def test_a_child_that_the_hook_got_from_the_shell_before_it_is_left_alone(tmp_path):
    project = new_project(tmp_path / "p", gate("exit 1"))
    hook = f"exec {sys.executable} -I -S {ENTRY} hook"
    done = subprocess.run(
        ["sh", "-c", f"sleep 1000 >/dev/null 2>&1 & echo $! > {tmp_path}/server.pid; {hook}"],
        input=json.dumps(payload("claude", project)).encode(),
        capture_output=True,
        timeout=60,
        env=clean_environ(),
    )
    (server,) = pids_in(tmp_path)
    was_running = running(server)
    if was_running:
        os.kill(server, signal.SIGKILL)
    assert json.loads(done.stdout)["decision"] == "block"
    assert was_running


@pytest.mark.rule("E9")
@pytest.mark.parametrize("hang", ["time.sleep(60)", "while True: pass"])
def test_whatever_takes_too_long_in_the_hook_itself_the_host_is_answered(tmp_path, hang):
    project = new_project(tmp_path / "p")
    # The alarm rings after a second, and leaves much time for the answer.
    change = f"""
import re, time
import notyet.config.load as load
from notyet.hook import process as hook_time
def guard(alarm):
    alarm.set(alarm.left() - 29, 20, hook_time.raise_out_of_time)
hook_time.Alarm.guard = guard
def hangs(*_, **__):
    while True:
        try:
            {hang}
        except Exception:
            pass
load.load = hangs"""
    done = run_changed_hook(payload("claude", project), change, "--timeout", "30")
    assert_allows("claude", done.returncode, done.stdout)
    assert b"no answer within the 30 s that the host waits" in done.stderr
    assert "NOT CHECKED" in json.loads(done.stdout)["systemMessage"]
    assert stops() == [("skipped", "deadline")]


@pytest.mark.rule("E9")
def test_a_locked_ledger_does_not_cost_the_answer(tmp_path):
    project = new_project(tmp_path / "p", PASSING)
    run_hook(payload("claude", project))
    with closing(sqlite3.connect(ledger_path(), isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        done = run_hook(payload("claude", project, session_id="s2"), "--timeout", "6")
        taken = time.monotonic() - begun
        db.execute("ROLLBACK")
    assert taken < 26  # it did not hang
    assert_allows("claude", done.returncode, done.stdout)


def test_a_host_that_reads_no_warnings_still_gets_its_answer(tmp_path):
    project = new_project(tmp_path / "p", gate("exit 1"))
    warned = [f"--unknown-{n}-{'x' * 1000}" for n in range(100)]
    with start("--timeout", "6", *warned) as hook:
        begun = time.monotonic()
        hook.stdin.write(json.dumps(payload("claude", project)).encode())
        hook.stdin.close()
        assert hook.wait(20) == 0
        assert time.monotonic() - begun < 26  # it did not hang
        assert json.loads(hook.stdout.read())["decision"] == "block"


def mux_hooks(project, *handlers):
    """Write and trust settings of Mux."""
    entries = [{"type": "command"} | handler for handler in handlers]
    (project / ".mux").mkdir(parents=True)
    path = project / ".mux" / "settings.json"
    path.write_text(json.dumps({"hooks": {"Stop": [{"hooks": entries}]}}))
    trust(path, "mux")


@pytest.mark.rule("E9")
@pytest.mark.parametrize(
    ("handlers", "argv", "seconds"),
    [
        ([{"command": "true"}], (), 10),
        ([{"command": "true", "timeout": 30}, {"command": ":", "timeout": 20}], (), 33),
        ([{"command": "true", "timeout": 30}], ("--timeout", "5"), 5),
        ([{"command": "true"}, {"command": "notyet hook --host mux", "timeout": 40}], (), 40),
        ([{"command": "true", "timeout": 30}, {"command": "notyet hook --host mux"}], (), 10),
    ],
)
def test_the_timeouts_in_the_settings_of_mux_count(tmp_path, handlers, argv, seconds):
    mux_hooks(tmp_path / "p", *handlers)
    call = HostCall(
        Options(["--host", "mux", *argv]),
        os.environ,
        lambda: json.dumps(payload("mux", tmp_path / "p")).encode(),
    )
    hook.reply_to(call)
    assert stops() == [("passed", "")]
    assert call.patience == seconds


def test_a_gate_of_a_file_does_not_make_mux_wait_longer(tmp_path):
    project = new_project(tmp_path / "p", gate("true", timeout=60))
    (project / ".mux").mkdir()
    (project / ".mux" / "settings.json").write_text("{")
    call = HostCall(
        Options(["--host", "mux"]), os.environ, lambda: json.dumps(payload("mux", project)).encode()
    )
    hook.reply_to(call)
    assert call.patience == 10
