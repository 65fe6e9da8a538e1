"""What left its group is ended by a process that adopts orphans, as a hook does (E2)."""

import sys

import pytest

from commands import pids_in, python, run, running, script

pytestmark = [
    pytest.mark.rule("E2"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux can adopt orphans"),
]

PATHS = [path for path in sys.path if path]
WAIT = "until [ -s a.pid ]; do sleep 0.01; done;"

ESCAPE = """
import os, sys
sys.path[:0] = sys.argv[2:]
from commands import run, running, script, pids_in
from notyet.checks.orphans import adopt_orphans, sweep
import pathlib
here = pathlib.Path(sys.argv[1])
HIDE
assert sweep() == 0
assert adopt_orphans() and "ctypes" not in sys.modules
texts = ["exec sleep 1000", "trap '' TERM; while :; do sleep 0.1; done", "kill -STOP $$"]
for n, text in enumerate(texts):
    (here / f"{n}.sh").write_text(f"echo $$ > {n}.pid; " + text)
    run(script(f"(setsid sh {n}.sh &) & until [ -s {n}.pid ]; do sleep 0.01; done", sys.argv[1]))
pids = pids_in(here)
assert len(pids) == 3 and all(map(running, pids)), pids
print(sweep() >= 3, any(map(running, pids)), sweep())
"""
NO_LISTS = """
import notyet.checks.sweeping as sweeping
def no_lists(path):
    raise FileNotFoundError(path)
sweeping.read = no_lists
"""


@pytest.mark.parametrize("hide", ["", NO_LISTS], ids=["with lists", "without lists"])
def test_what_left_its_group_is_swept_by_a_process_that_adopts_orphans(tmp_path, hide):
    code = ESCAPE.replace("HIDE", hide)
    ended = run(python(code, str(tmp_path), *PATHS, timeout=30))
    assert (ended.stdout, ended.stderr) == (b"True False 0\n", b"")


def test_orphans_cannot_be_adopted_without_the_system_call(monkeypatch):
    monkeypatch.setitem(sys.modules, "_ctypes", None)
    from notyet.checks.orphans import adopt_orphans

    assert adopt_orphans() is False


def test_a_sweep_ends_all_children_and_counts_them(tmp_path, monkeypatch):
    import ctypes

    from notyet.checks import orphans

    monkeypatch.setattr(orphans, "_sweeps", False)
    assert orphans.sweep() == 0
    try:
        assert orphans.adopt_orphans()
        text = "trap '' TERM; echo $$ > a.pid; while :; do sleep 0.1; done"
        run(script(f"(setsid sh -c '{text.replace(chr(39), chr(34))}' &) & {WAIT}", tmp_path))
        (pid,) = pids_in(tmp_path)
        assert running(pid)
        assert orphans.sweep() >= 1
        assert not running(pid)
    finally:
        ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)  # the other tests are no hook


NEIGHBOUR = """
import os, subprocess, sys
sys.path[:0] = sys.argv[2:]
from commands import run, running, script, pids_in, until
import pathlib
here = pathlib.Path(sys.argv[1])
text = "(sleep 0.5; sleep 1000 & echo $! > b.pid) & exec sleep 1000"
theirs = subprocess.Popen(["sh", "-c", text], cwd=here)
short = subprocess.Popen(["sleep", "0"])
from notyet.checks.orphans import adopt_orphans, sweep
assert adopt_orphans()
left = "(setsid sh -c 'echo $$ > a.pid; exec sleep 1000' &) &"
run(script(left + " until [ -s a.pid ]; do :; done", here))
(ours,) = pids_in(here)
assert running(ours)
assert until(lambda: len(pids_in(here)) == 2)  # an orphan of theirs, which comes to us
adopted = int((here / "b.pid").read_text())
until(lambda: int(open(f"/proc/{adopted}/stat").read().split()[3]) == os.getpid())
print(sweep(), running(ours), running(theirs.pid), running(adopted), short.wait())
theirs.kill()
os.kill(adopted, 9)
"""


def test_a_sweep_leaves_alone_what_was_there_before(tmp_path):
    ended = run(python(NEIGHBOUR, str(tmp_path), *PATHS, timeout=30))
    assert (ended.stdout, ended.stderr) == (b"1 False True True 0\n", b"")


LATE = """
import os, sys
sys.path[:0] = sys.argv[2:]
from commands import run, running, script, pids_in, until
from notyet.checks import orphans
import pathlib
here = pathlib.Path(sys.argv[1])
become = orphans._become_subreaper
def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
def is_lost(pid):
    while pid > 1 and pid != os.getpid():
        pid = parent(pid)
    return pid != os.getpid()
WHEN
orphans._become_subreaper = become_late
orphans.adopt_once_started()
assert not orphans.adopts()
stubborn = "trap '' TERM; echo $$ > a.pid; while :; do sleep 0.1; done"
(here / "s.sh").write_text(stubborn)
text = "until [ -e go ]; do sleep 0.01; done; (setsid sh s.sh &) & "
run(script(text + "until [ -s a.pid ]; do sleep 0.01; done", here))
assert orphans.adopts()
(pid,) = pids_in(here)
print(running(pid), parent(pid) == os.getpid(), orphans.sweep() >= 1, running(pid), orphans.sweep())
"""
IN_TIME = """
def become_late():
    done = become()
    (here / "go").touch()
    return done
"""
TOO_LATE = """
def become_late():
    (here / "go").touch()
    assert until(lambda: any(map(is_lost, pids_in(here))))
    return become()
"""


def test_orphans_are_adopted_also_when_their_forebear_runs_already(tmp_path):
    ended = run(python(LATE.replace("WHEN", IN_TIME), str(tmp_path), *PATHS, timeout=30))
    assert (ended.stdout, ended.stderr) == (b"True True True False 0\n", b"")


def test_what_lost_its_parent_before_orphans_were_adopted_is_found_by_our_mark(tmp_path):
    ended = run(python(LATE.replace("WHEN", TOO_LATE), str(tmp_path), *PATHS, timeout=30))
    assert (ended.stdout, ended.stderr) == (b"True False True False 0\n", b"")


INTERRUPTED = """
import os, sys
sys.path[:0] = sys.argv[2:]
from commands import run, running, script, pids_in, until
from notyet.checks import orphans, process, started
import pathlib
here = pathlib.Path(sys.argv[1])
def interrupted(*args):
    real(*args)
    assert until(lambda: len(pids_in(here)) == 2)
    raise KeyboardInterrupt
WHERE
orphans.adopt_once_started()
left = "setsid sh -c 'echo $$ > a.pid; exec sleep 1000' &"
try:
    run(script(f"({left}) & echo $$ > b.pid; exec sleep 1000", here))
except KeyboardInterrupt:
    orphans.sweep()
    print(*(pid for pid in pids_in(here) if running(pid)), "left")
"""
BEFORE_ITS_NUMBER_IS_KNOWN = "real, process.launch = process.launch, interrupted"
BEFORE_ORPHANS_ARE_ADOPTED = """
real, started.Started._listen_to = started.Started._listen_to, interrupted
"""


@pytest.mark.parametrize("where", [BEFORE_ITS_NUMBER_IS_KNOWN, BEFORE_ORPHANS_ARE_ADOPTED])
def test_nothing_survives_an_interruption_right_after_the_start(tmp_path, where):
    code = INTERRUPTED.replace("WHERE", where)
    ended = run(python(code, str(tmp_path), *PATHS, timeout=50))
    assert (ended.stdout, ended.stderr) == (b"left\n", b"")
