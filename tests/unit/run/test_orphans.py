"""What left its group is ended by a process that adopts orphans, as a hook does (E2)."""

import subprocess
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
from notyet.run.groups import adopt_orphans, sweep
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
from notyet.run import proc
def no_lists(path, read=proc.read):
    if path.endswith("/children"):
        raise FileNotFoundError(path)
    return read(path)
proc.read = no_lists
"""


@pytest.mark.parametrize("hide", ["", NO_LISTS], ids=["with lists", "without lists"])
def test_what_left_its_group_is_swept_by_a_process_that_adopts_orphans(tmp_path, hide):
    code = ESCAPE.replace("HIDE", hide)
    ended = run(python(code, str(tmp_path), *PATHS, timeout=30))
    assert (ended.stdout, ended.stderr) == (b"True False 0\n", b"")


def test_orphans_cannot_be_adopted_without_the_system_call(monkeypatch):
    monkeypatch.setitem(sys.modules, "_ctypes", None)
    from notyet.run.groups import adopt_orphans

    assert adopt_orphans() is False


def test_a_sweep_ends_all_children_and_counts_them(tmp_path, monkeypatch):
    import ctypes

    from notyet.run import groups as orphans

    prctl = ctypes.CDLL(None).prctl  # tests replace ours, which is tried in other processes
    monkeypatch.setattr(orphans, "_become_subreaper", lambda: prctl(36, 1, 0, 0, 0) == 0)
    monkeypatch.setattr(orphans, "_adopted", False)
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
        prctl(36, 0, 0, 0, 0)  # the other tests are no hook


NEIGHBOUR = """
import os, subprocess, sys
sys.path[:0] = sys.argv[2:]
from commands import run, running, script, pids_in, until
import pathlib
here = pathlib.Path(sys.argv[1])
text = "(sleep 0.5; sleep 1000 & echo $! > b.pid) & exec sleep 1000"
theirs = subprocess.Popen(["sh", "-c", text], cwd=here)
short = subprocess.Popen(["sleep", "0"])
from notyet.run.groups import adopt_orphans, sweep
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


# A hook whose first gate has been started, is gone, and has left something behind, before the
# hook itself can do anything more.
OVERTAKEN = """
import os, pathlib, sys
sys.path[:0] = sys.argv[3:]
from commands import pids_in, run, running, script, until
from notyet.run import process
from notyet.hook.process import adopt, serve_host
from notyet.hosts.host import Reply
here, left = pathlib.Path(sys.argv[1]), sys.argv[2]
real = process.launch
def launch(*args):
    gate = real(*args)
    assert until(lambda: pids_in(here) and not running(gate))
    (pid,) = pids_in(here)
    parent = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1]
    print(running(pid), parent == str(os.getpid()))
    return gate
process.launch = launch
def answer():
    adopt()
    run(script(f"{left} >/dev/null 2>&1 &", here, environ=dict(os.environ)))
    return Reply()
code = serve_host(answer, lambda: None)
print(code, *(pid for pid in pids_in(here) if running(pid)), "left")
"""
STAY = "setsid sh -c 'echo $$ > a.pid; exec sleep 1000'"


@pytest.mark.parametrize(
    ("left", "environ"),
    [(STAY, {}), (f"env -i {STAY}", {}), (STAY, {"BIG": "x" * 100_000})],
    ids=["in a session of its own", "without any environment", "with a large environment"],
)
def test_what_the_first_gate_leaves_at_once_is_adopted_by_a_hook(tmp_path, left, environ):
    job = python(OVERTAKEN, str(tmp_path), left, *PATHS, timeout=50, environ=environ)
    ended = run(job)
    assert (ended.stdout, ended.stderr) == (b"True True\n0 left\n", b"")


INTERRUPTED = """
import os, sys
sys.path[:0] = sys.argv[2:]
from commands import run, running, script, pids_in, until
from notyet.run import groups as orphans, process, command_runner as started
import pathlib
here = pathlib.Path(sys.argv[1])
def interrupted(*args):
    real(*args)
    assert until(lambda: len(pids_in(here)) == 2)
    raise KeyboardInterrupt
WHERE
assert orphans.adopt_orphans()
left = "setsid sh -c 'echo $$ > a.pid; exec sleep 1000' &"
try:
    run(script(f"({left}) & echo $$ > b.pid; exec sleep 1000", here))
except KeyboardInterrupt:
    orphans.sweep()
    print(*(pid for pid in pids_in(here) if running(pid)), "left")
"""
BEFORE_ITS_NUMBER_IS_KNOWN = "real, process.launch = process.launch, interrupted"
BEFORE_WE_LISTEN_TO_IT = """
real, started.CommandRunner._listen_to = started.CommandRunner._listen_to, interrupted
"""


@pytest.mark.parametrize("where", [BEFORE_ITS_NUMBER_IS_KNOWN, BEFORE_WE_LISTEN_TO_IT])
def test_nothing_survives_an_interruption_right_after_the_start(tmp_path, where):
    code = INTERRUPTED.replace("WHERE", where)
    ended = run(python(code, str(tmp_path), *PATHS, timeout=50))
    assert (ended.stdout, ended.stderr) == (b"left\n", b"")


KEEPING = """
import os, sys
sys.path[:0] = sys.argv[2:]
from commands import run, running, script, pids_in, until
import pathlib
from notyet.run.groups import adopt_orphans, keep_alive, sweep
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


def test_a_sweep_keeps_a_session_and_a_command_line_alive(tmp_path):
    paths = [path for path in sys.path if path]
    command = [sys.executable, "-c", KEEPING, str(tmp_path), *paths]
    done = subprocess.run(command, capture_output=True, timeout=60, text=True)
    assert (done.stdout, done.stderr) == ("[True, True, False]\nclean\n", "")
