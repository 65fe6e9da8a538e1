"""The runner of commands: what goes in, what comes out, and how an ending is told."""

import os
import signal
import sys
import threading
import time

import pytest

from commands import program, python, run, script, until
from notyet.run import command_runner as started
from notyet.run import process
from notyet.run.command_runner import run_together
from notyet.run.process import Output
from notyet.run.spawn import shell_argv

pytestmark = pytest.mark.rule("E1", "E8")

NOT_UTF8 = bytes(range(256)) + b"\x1b[31m\xff\xfe\0"


@pytest.mark.parametrize("code", [0, 1, 2, 77, 126, 127, 255])
def test_an_exit_code_is_told_as_it_is(code):
    ended = run(script(f"exit {code}"))
    assert (ended.code, ended.signal, ended.problem) == (code, 0, "")


def test_a_death_by_signal_is_told_apart_from_an_exit_code():
    ended = run(script("kill -SEGV $$"))
    assert (ended.code, ended.signal) == (None, signal.SIGSEGV)


def test_both_streams_come_back_apart_and_byte_for_byte(tmp_path):
    (tmp_path / "bytes").write_bytes(NOT_UTF8)
    ended = run(script("cat bytes; echo other >&2", tmp_path))
    assert (ended.stdout, ended.stderr, ended.left_out) == (NOT_UTF8, b"other\n", 0)


def test_a_command_reads_its_whole_input_and_then_its_end():
    assert run(script("cat", stdin=NOT_UTF8)).stdout == NOT_UTF8
    assert run(script("cat", stdin=b"")).stdout == b""


def test_a_long_input_goes_through_while_output_comes_back():
    sent = os.urandom(200_000)
    ended = run(script("cat; head -c 200000 /dev/zero >&2", stdin=sent))
    assert ended.stdout == sent
    assert len(ended.stderr) == 200_000


@pytest.mark.parametrize("text", ["sleep 0.1", "exec 0<&-; sleep 0.1", "head -c 1", "exit 0"])
def test_a_command_that_does_not_read_its_input_is_fine(text):
    assert run(script(text, stdin=bytes(50_000_000))).code == 0


def test_an_unread_input_does_not_kill_a_program_that_dies_of_sigpipe():
    code = """
import signal, sys
sys.path[:0] = sys.argv[1:]
from commands import run, script
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
assert run(script("exec 0<&-; sleep 0.1", stdin=bytes(1000000))).code == 0
assert signal.SIGPIPE not in signal.sigpending()
assert signal.SIGPIPE not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
"""
    ended = run(python(code, *(path for path in sys.path if path)))
    assert (ended.code, ended.signal, ended.stderr) == (0, 0, b"")


def test_a_command_may_close_its_output_early_and_go_on():
    ended = run(script("echo said; exec >&- 2>&-; sleep 0.1; exit 3"))
    assert (ended.code, ended.stdout) == (3, b"said\n")


def test_a_script_has_many_lines_and_a_list_needs_no_shell():
    assert run(script("a=1\nif [ $a = 1 ]; then\n  echo yes\nfi\n")).stdout == b"yes\n"
    assert run(program("printf", "%s|", "a b", "$HOME", "`x`", "")).stdout == b"a b|$HOME|`x`||"
    assert shell_argv("x y", "/bin/bash") == ("/bin/bash", "-c", "x y")


def test_signals_that_this_program_ignores_are_as_usual_in_a_command():
    ended = run(script("yes | head -n 1"))  # without SIGPIPE, yes would complain
    assert (ended.stdout, ended.stderr) == (b"y\n", b"")
    found = run(script("grep -E 'SigIgn|SigBlk' /proc/self/status")).stdout.split()[1::2]
    assert [int(mask, 16) & 0x7FFF_FFFF for mask in found] == [0, 0]  # above are the C library's


@pytest.mark.rule("E4")
def test_of_a_long_output_the_beginning_and_the_end_are_kept():
    ended = run(python("print('first'); print('x' * 5_000_000); print('last')"))
    assert ended.stdout.startswith(b"first\nxxx")
    assert ended.stdout.endswith(b"xxx\nlast\n")
    assert ended.left_out == 5_000_012 - 256 * 1024
    assert b" lines (%d bytes) left out ...\n" % ended.left_out in ended.stdout


@pytest.mark.rule("E4")
def test_memory_stays_flat_however_much_is_printed():
    code = """
import sys
sys.path[:0] = sys.argv[1:]
from commands import run, script
ended = run(script("head -c 1000000000 /dev/zero & yes >&2 & wait %1", timeout=50))
assert ended.code == 0 and ended.left_out > 900_000_000, ended.code
# Not ru_maxrss: a process that was spawned starts with that of its parent.
status = open("/proc/self/status").read()
print(status.partition("VmHWM:")[2].split()[0])
"""
    ended = run(python(code, *(path for path in sys.path if path)))
    assert ended.stderr == b""
    assert int(ended.stdout) < 64 * 1024


@pytest.mark.rule("E3")
@pytest.mark.parametrize("left", ["sleep 1000 &", "sleep 1000 2>/dev/null &", "(sleep 1000 &) &"])
def test_the_result_comes_when_the_command_exits_not_when_its_pipes_close(left):
    # Were they waited for, it would run out of time.
    ended = run(script(f"{left} echo done; exit 4", timeout=30))
    assert (ended.code, ended.stdout, ended.timed_out) == (4, b"done\n", False)


@pytest.mark.rule("E3")
def test_what_a_leftover_still_prints_when_it_is_ended_is_not_the_commands():
    left = "(trap 'echo bye; exit' TERM; touch ready; while :; do sleep 0.01; done) &"
    ended = run(script(f"cd $(mktemp -d); {left} until [ -e ready ]; do :; done; echo done"))
    assert ended.stdout == b"done\n"


@pytest.mark.rule("E2")
def test_a_command_out_of_time_is_ended_and_keeps_what_it_printed(tmp_path, clock):
    clock.hold_until((tmp_path / "there").exists)
    ended = run(script("echo began; touch there; sleep 1000", tmp_path, timeout=0.3))
    assert (ended.timed_out, ended.signal, ended.stdout) == (True, signal.SIGTERM, b"began\n")
    assert 0.2 < ended.seconds < 20


@pytest.mark.rule("E2")
def test_a_command_that_ignores_sigterm_is_killed(tmp_path, clock):
    clock.hold_until((tmp_path / "there").exists)
    text = "trap '' TERM; echo began; touch there; while :; do sleep 0.01; done"
    ended = run(script(text, tmp_path, timeout=0.3))
    assert (ended.timed_out, ended.signal, ended.stdout) == (True, signal.SIGKILL, b"began\n")


@pytest.mark.rule("E2")
def test_a_command_that_is_stopped_is_ended_all_the_same():
    ended = run(script("kill -STOP $$", timeout=0.2))
    assert (ended.timed_out, ended.signal) == (True, signal.SIGTERM)


@pytest.mark.rule("E2")
def test_a_command_may_clean_up_when_its_time_is_over(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(started, "_GRACE", 30.0)
    clock.hold_until((tmp_path / "there").exists)
    text = "trap 'touch cleaned; exit 9' TERM; touch there; while :; do sleep 0.01; done"
    ended = run(script(text, tmp_path, timeout=0.3))
    assert (ended.timed_out, ended.code) == (True, 9)
    assert (tmp_path / "cleaned").exists()


@pytest.mark.rule("E9")
def test_the_deadline_ends_everything_that_still_runs_and_only_that(clock, monkeypatch):
    exited = []

    def take_status(seen):
        if not real(seen):
            return False
        exited.append(seen)
        return True

    real = process.Process.has_ended
    monkeypatch.setattr(process.Process, "has_ended", take_status)
    clock.hold_until(lambda: exited)
    jobs = [script("exit 5"), script("sleep 1000"), script("sleep 1000", timeout=500)]
    quick, *cut = run_together(jobs, deadline=time.monotonic() + 0.5)
    assert (quick.code, quick.timed_out) == (5, False)
    assert [ended.timed_out for ended in cut] == [True, True]


@pytest.mark.rule("E9")
def test_after_the_deadline_nothing_is_started(tmp_path):
    ended = run(script("touch started", tmp_path), deadline=time.monotonic() - 1)
    assert ended.timed_out
    assert not (tmp_path / "started").exists()


@pytest.mark.rule("E2")
@pytest.mark.parametrize("how", ["written", "closed"])
def test_everything_is_ended_on_cancellation(tmp_path, how):
    receives, sends = os.pipe()

    def cancel():
        until((tmp_path / "began").exists)
        if how == "written":
            os.write(sends, b"x")
        os.close(sends)

    thread = threading.Thread(target=cancel)
    thread.start()
    jobs = [script("exit 0"), script("sleep 0.05; touch began; sleep 1000", tmp_path)]
    done, ended = run_together(jobs, cancel=receives)
    thread.join()
    os.close(receives)
    assert (done.code, done.cancelled) == (0, False)
    assert (ended.cancelled, ended.timed_out, ended.signal) == (True, False, signal.SIGTERM)


def test_what_was_cancelled_before_is_not_started(tmp_path):
    receives, sends = os.pipe()
    os.close(sends)
    ended = run(script("touch started", tmp_path), cancel=receives)
    os.close(receives)
    assert ended.cancelled
    assert not (tmp_path / "started").exists()


def test_jobs_run_at_the_same_time(tmp_path):
    os.mkfifo(tmp_path / "there")
    os.mkfifo(tmp_path / "back")
    first = script("echo ping > there; cat back", tmp_path, timeout=20)
    second = script("cat there; echo pong > back", tmp_path, timeout=20)
    ended = run_together([first, second])  # each waits for the other
    assert [(one.code, one.stdout) for one in ended] == [(0, b"pong\n"), (0, b"ping\n")]


def test_many_threads_may_run_commands_at_once():
    seen = {}

    def work(name):
        for n in range(5):
            job = script(f"echo {name}-{n}; sleep 0.01", stdin=bytes(100_000))
            seen[name, n] = run(job).stdout.decode().strip()

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {(name, n): f"{name}-{n}" for name in range(8) for n in range(5)}


@pytest.mark.rule("E3")
def test_it_works_where_there_are_no_pidfds(monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")
    jobs = [script("cat; exit 3", stdin=b"x"), script("sleep 1000", timeout=0.2)]
    first, second = run_together([*jobs, script("sleep 30 & kill -9 $$")])[:2]
    assert (first.code, first.stdout) == (3, b"x")
    assert (second.timed_out, second.signal) == (True, signal.SIGTERM)


@pytest.mark.rule("E3")
def test_it_works_where_a_child_cannot_be_left_for_later(monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")
    monkeypatch.delattr(os, "waitid")
    ended = run_together([script("exit 3"), script("kill -9 $$"), script("sleep 9", timeout=0.1)])
    assert [(one.code, one.signal) for one in ended] == [(3, 0), (None, 9), (None, 15)]


def test_an_interrupt_ends_all_before_it_goes_on(tmp_path):
    code = """
import os, signal, sys, threading
sys.path[:0] = sys.argv[2:]
from commands import script, run_together, until
def interrupt():
    until(lambda: os.path.exists(sys.argv[1] + "/there"))
    os.kill(os.getpid(), signal.SIGINT)
try:
    threading.Thread(target=interrupt).start()
    deaf = "trap '' TERM; touch there; while :; do sleep 0.1; done"
    run_together([script("sleep 1000"), script(deaf, sys.argv[1])])
except KeyboardInterrupt:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print("all gone")
"""
    ended = run(python(code, str(tmp_path), *(path for path in sys.path if path), timeout=30))
    assert (ended.stdout, ended.stderr) == (b"all gone\n", b"")


def test_a_program_that_ignores_sigchld_is_told_that_exit_codes_are_lost():
    code = """
import signal, sys
sys.path[:0] = sys.argv[1:]
from commands import run, script
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
ended = run(script("echo said; exit 3"))
print(ended.code, ended.stdout, ended.problem)
"""
    ended = run(python(code, *(path for path in sys.path if path), timeout=30))
    assert b"None b'said\\n' its exit code was lost: this program ignores SIGCHLD" in ended.stdout


def test_as_much_is_kept_as_was_asked_for():
    stream = Output(1_000_000)
    for _ in range(30):
        stream.add(b"x" * 50_000)
    assert stream.left_out == 1_500_000 - 1_000_000 - 192 * 1024
    assert stream.text().startswith(b"x" * 1_000_000 + b"\n...")
    assert run(script("head -c 900000 /dev/zero", head=1_000_000)).left_out == 0


def test_a_refused_command_is_not_started():
    assert run(script("exit 0", refused="it cannot be")).problem == "it cannot be"
