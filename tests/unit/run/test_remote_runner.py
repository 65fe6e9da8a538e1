"""What the runner keeps for commands elsewhere, tried here."""

import os
import signal
import subprocess
import sys

import pytest

from commands import run, script
from notyet.run.groups import Watchdog
from notyet.run.output import Kept
from notyet.run.ssh_session import Records

MARK = b"0123456789abcdef"


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
from notyet.run.sweep import adopt_orphans, keep_alive, sweep
here = pathlib.Path(sys.argv[1])
assert adopt_orphans()
one = "(setsid sh -c 'echo $$ > a.pid; exec sleep 1000' &)"
two = "(setsid sh -c 'echo $$ > b.pid; exec sleep 1001' &)"
three = "(setsid sh -c 'echo $$ > c.pid; exec sleep 1002' &)"
wait = "until [ -s a.pid ] && [ -s b.pid ] && [ -s c.pid ]; do sleep 0.01; done"
run(script(f"{one}; {two}; {three}; {wait}", here))
keep_alive(int((here / "a.pid").read_text()), "1001")
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


@pytest.mark.rule("M1")
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_record_is_found_however_it_is_cut(size):
    said = b"a\n" + MARK[:8] + b"\n\n" + MARK[:-1] + b"\n" + bytes(range(256)) + b"\n"
    mark = b"\n" + MARK
    content = b"banner%s\n%s 2 x 0 77" % (MARK, mark) + b"\n%s 2 0 77\n%s%s\nerr%s\n%s\n" % (
        mark,
        said,
        mark,
        mark,
        mark,
    )
    records, found = Records(MARK), []
    for at in range(0, len(content), size):
        records.add(content[at : at + size])
        found += records.take()
    assert records.preamble == b"banner"
    assert found == [(2, b"x 0 77", []), (2, b"0 77", [said, b"err", b""])]


def test_a_banner_without_end_is_kept_in_part():
    records = Records(MARK)
    records.add(b"x" * 10_000)
    assert (records.has_begun, len(records.preamble), records.take()) == (False, 4096, [])


def test_as_much_is_kept_as_was_asked_for():
    stream = Kept(1_000_000)
    for _ in range(30):
        stream.add(b"x" * 50_000)
    assert stream.left_out == 1_500_000 - 1_000_000 - 192 * 1024
    assert stream.text().startswith(b"x" * 1_000_000 + b"\n...")
    assert run(script("head -c 900000 /dev/zero", head=1_000_000)).left_out == 0


def test_a_refused_command_is_not_started():
    assert run(script("exit 0", refused="it cannot be")).problem == "it cannot be"
