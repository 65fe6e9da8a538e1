"""What the runner does for commands elsewhere, tried with commands here."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from commands import pids_in, run, run_together, running, script
from notyet.core.record import replace
from notyet.run.groups import Watchdog
from notyet.run.output import Framed, Kept

MARK = b"0123456789abcdef"


def framed(text, **fields):
    """Make a job that prints the frame by itself."""
    begin = f"echo {MARK.decode()}; echo {MARK.decode()} >&2;"
    end = rf"printf '\n{MARK.decode()} 7\n{MARK.decode()}\n' | tee /dev/stderr;"
    return script(f"{begin} {text} {end} sleep 1000", framed=MARK, **fields)


# Commands that wait for another one.


def test_a_command_waits_for_the_one_it_comes_after(tmp_path):
    first = script("sleep 0.2; touch ready", tmp_path)
    late = script("test -e ready && echo yes", tmp_path, after=first)
    other = script("test -e ready || echo no", tmp_path)
    ended = run_together([late, other, replace(late, stdin=b"x")])
    assert [one.stdout for one in ended] == [b"yes\n", b"no\n", b"yes\n"]
    assert ended[0].seconds > 0.2  # its time began with the first one's


def test_a_command_does_not_start_when_the_one_before_it_fails(tmp_path):
    for text in ("exit 1", "kill -9 $$"):
        late = script("touch started", tmp_path, after=script(text, tmp_path))
        ended = run(late)
        assert (ended.code, ended.problem) == (None, "what it needs could not be made ready")
    cannot = script("exit 0", tmp_path / "nowhere")
    assert run(script("touch started", tmp_path, after=cannot)).problem
    assert not (tmp_path / "started").exists()


@pytest.mark.rule("M2")
def test_the_time_of_a_command_includes_what_it_waits_for():
    late = script("exit 0", timeout=0.3, after=script("sleep 1000", timeout=60.0))
    patient = script("exit 3", timeout=60.0, after=script("sleep 0.6"))
    started = time.monotonic()
    one, two = run_together([late, patient], deadline=started + 30)
    assert (one.timed_out, one.code, two.code) == (True, None, 3)


@pytest.mark.rule("M2")
def test_the_deadline_holds_for_those_that_wait():
    late = script("exit 0", after=script("sleep 1000"))
    started = time.monotonic()
    assert run(late, deadline=started + 0.3).timed_out
    assert run(late, deadline=started - 1).timed_out
    assert time.monotonic() - started < 20


def test_those_that_wait_are_cancelled_with_the_rest():
    seen, cancel = os.pipe()
    os.close(cancel)
    assert run(script("exit 0", after=script("sleep 1000")), cancel=seen).cancelled
    os.close(seen)
    seen, cancel = os.pipe()
    threading.Timer(0.3, os.close, [cancel]).start()
    late = script("exit 0", after=script("sleep 1000"))
    assert run(late, cancel=seen).cancelled
    os.close(seen)


# What is wanted after its end.


def test_what_a_command_leaves_on_purpose_lives_on_and_carries_no_mark(tmp_path):
    told = []
    text = "sh -c 'echo $$ > a.pid; env > env; exec sleep 1000' & until [ -s env ]; do :; done"
    left = script(text, tmp_path, leaves=told.append, environ={"NOTYET_GATE": "outer"})
    assert run(script("exit 3", tmp_path, after=left)).code == 3
    (pid,) = pids_in(tmp_path)
    try:
        assert running(pid)
        assert "NOTYET_GATE" not in (tmp_path / "env").read_text()
        assert [process.code for process in told] == [0]
    finally:
        os.kill(pid, signal.SIGKILL)


def test_what_a_command_leaves_is_ended_when_it_fails(tmp_path):
    told = []
    text = "sh -c 'echo $$ > a.pid; exec sleep 1000' & until [ -s a.pid ]; do :; done; exit 1"
    run(script(text, tmp_path, leaves=told.append))
    (pid,) = pids_in(tmp_path)
    assert not running(pid)
    assert not told


def test_the_watchdog_leaves_alone_what_is_wanted(tmp_path):
    def start():
        return subprocess.Popen(["sleep", "1000"], start_new_session=True)

    one, two, three = start(), start(), start()
    dog = Watchdog("no-such-mark", ())
    dog.watch([one.pid, two.pid])
    dog.watch([three.pid])
    dog.leave(two.pid)
    os.close(dog.pipe)
    try:
        assert one.wait(20) == three.wait(20) == -signal.SIGTERM
        os.waitpid(dog.pid, 0)
        assert two.poll() is None
    finally:
        two.kill()
        two.wait()


ADOPTING = """
import os, sys
sys.path[:0] = sys.argv[2:]
from commands import run, running, script, pids_in, until
import pathlib
from notyet.run.sweep import adopt_orphans, spare, sweep, adopts
here = pathlib.Path(sys.argv[1])
assert not adopts() and adopt_orphans() and adopts()
one = "(setsid sh -c 'echo $$ > a.pid; exec sleep 1000' &)"
two = "sh -c 'echo $$ > b.pid; exec sleep 1000' &"
three = "(setsid sh -c 'echo $$ > c.pid; exec sleep 1000' &)"
wait = "until [ -s a.pid ] && [ -s b.pid ] && [ -s c.pid ]; do sleep 0.01; done"
def left(process):
    spare(int((here / "a.pid").read_text()), process.pid, 0)
run(script(f"{one}; {two} {three}; {wait}", here, leaves=left))
pids = [int((here / f"{name}.pid").read_text()) for name in "abc"]
sweep()
print([running(pid) for pid in pids])
for pid in pids[:2]:
    os.kill(pid, 9)
until(lambda: not any(map(running, pids)))
sweep()
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("clean")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can adopt orphans")
def test_a_sweep_spares_what_is_wanted_and_its_session(tmp_path):
    paths = [path for path in sys.path if path]
    command = [sys.executable, "-c", ADOPTING, str(tmp_path), *paths]
    done = subprocess.run(command, capture_output=True, timeout=60, text=True)
    assert (done.stdout, done.stderr) == ("[True, True, False]\nclean\n", "")


# The lifeline, and the frame.


@pytest.mark.rule("M2")
def test_a_lifeline_is_open_until_the_time_is_over():
    text = "head -c 3; read -r line; echo gone $line; sleep 1000"
    ended = run(script(text, stdin=b"abc", lifeline=True, timeout=0.2))
    assert (ended.timed_out, ended.stdout) == (True, b"abcgone\n")


@pytest.mark.rule("M2")
def test_a_command_elsewhere_is_told_how_long_it_may_take_once_it_has_read_all():
    sent = bytes(300_000)
    text = "sleep 0.5; head -c 300000 >/dev/null; read -r seconds; echo $seconds"
    ended = run(script(text, stdin=sent, lifeline=True, timeout=50.0))
    assert 55 <= int(ended.stdout) <= 60
    assert run(script("sleep 0.4; exit 3", lifeline=True)).code == 3  # who has no limit is not told


def test_a_frame_that_is_complete_is_the_end_of_it():
    started = time.monotonic()
    ended = run(framed("echo said; echo other >&2;", timeout=50.0))
    assert (ended.stdout, ended.stderr) == (b"said\n", b"other\n")
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_frame_is_found_however_it_is_cut(size):
    said = b"a\n" + MARK[:8] + b"\n\n" + MARK[:-1] + b"\n" + bytes(range(256)) + b"\n"
    content = b"banner" + MARK + b"\n" + said + b"\n" + MARK + b" 3\nmore\n" + MARK + b"\nlate\n"
    stream = Framed(MARK)
    for at in range(0, len(content), size):
        stream.add(content[at : at + size])
    assert (stream.preamble, stream.text(), stream.told) == (b"banner", said, b"3\nmore")
    assert stream.is_complete


def test_a_frame_without_an_end_keeps_all_that_came():
    stream = Framed(MARK)
    stream.add(b"x" * 10_000)
    assert (stream.has_begun, len(stream.preamble), stream.text()) == (False, 4096, b"")
    stream.add(MARK + b"\nsaid\n" + MARK[:4])
    assert stream.text() == stream.text() == b"said\n" + MARK[:4]
    assert not stream.is_complete


def test_as_much_is_kept_as_was_asked_for():
    stream = Kept(1_000_000)
    for _ in range(30):
        stream.add(b"x" * 50_000)
    assert stream.left_out == 1_500_000 - 1_000_000 - 192 * 1024
    assert stream.text().startswith(b"x" * 1_000_000 + b"\n...")
    assert run(script("head -c 900000 /dev/zero", head=1_000_000)).left_out == 0


def test_a_refused_command_is_not_started():
    assert run(script("exit 0", refused="it cannot be")).problem == "it cannot be"


def test_nothing_is_left_open_by_those_that_wait():
    before = sorted(os.listdir("/dev/fd"))
    run_together([script("exit 0", after=script("exit 1")), framed("true;")])
    assert sorted(os.listdir("/dev/fd")) == before


# What is started again, and what is long.


def late(tmp_path, times, **fields):
    """Make one that fails so many times before it works, and counts."""
    text = f"echo >> {tmp_path}/tries; [ $(wc -l < {tmp_path}/tries) -gt {times} ]"
    return script(text, leaves=lambda _: None, **fields)


def tries(tmp_path):
    return len((tmp_path / "tries").read_text().splitlines())


def test_what_fails_may_be_started_again_after_a_while(tmp_path):
    first = late(tmp_path, 3, again=lambda _: 0.02)
    assert [one.code for one in run_together([script("exit 3", after=first)] * 2)] == [3, 3]
    assert tries(tmp_path) == 4


def test_it_is_not_started_again_for_ever(tmp_path):
    first = late(tmp_path, 9, again=lambda _: 0.01 if tries(tmp_path) < 3 else None)
    assert run(script("exit 3", after=first)).problem == "what it needs could not be made ready"
    assert tries(tmp_path) == 3


def test_nobody_waits_for_one_that_is_to_be_started_again(tmp_path):
    first = late(tmp_path, 9, again=lambda _: 1000.0)
    ended = run(script("exit 3", after=first, timeout=0.5))
    assert (ended.timed_out, tries(tmp_path)) == (True, 1)
    assert run(script("exit 3", after=first), deadline=time.monotonic() + 0.5).timed_out
    seen, cancel = os.pipe()
    threading.Timer(0.5, os.close, [cancel]).start()
    assert run(script("exit 3", after=first), cancel=seen).cancelled
    os.close(seen)


def test_what_is_given_may_come_in_parts():
    parts = (b"b", b"", bytes(300_000), b"c")
    ended = run(script("cat", stdin=b"a", parts=parts, head=400_000))
    assert ended.stdout == b"ab" + bytes(300_000) + b"c"
