"""The timer of a hook goes off anywhere: nobody is let go because of that.

What happens once in thousands of stops on a busy machine is made to happen here, at each step.
"""

import json
import os
import subprocess
import sys

import pytest

from hook_runs import (
    ENTRY,
    assert_allows,
    clean_environ,
    gate,
    in_bytes,
    new_project,
    payload,
    run_changed_hook,
    stops,
)

# Reads an event once for each step of our code while the short timer runs that looks whether it is
# complete, and lets it go off at that step.
AT_EACH_STEP = f"""
import os, signal, sys
sys.path.insert(0, {str(ENTRY.parent.parent)!r})
from notyet.hook import process as hook_process
from notyet.hook.payload import HostCall, Options
from notyet import light
from notyet.hosts.host import Reply

EVENT = b'{{"a": 1}}'

def answered(reads, step):
    os.dup2(reads, 0)
    got, left = [], [step]

    def trace(frame, kind, _):
        frame.f_trace_opcodes = True
        if kind in ("opcode", "line") and 0 < signal.getitimer(signal.ITIMER_REAL)[0] < 1:
            left[0] -= 1
            if left[0] == 0:
                signal.raise_signal(signal.SIGALRM)
        return trace if "/notyet/hook/" in frame.f_code.co_filename else None

    def answer():
        call = HostCall(Options(["--host", "claude"]), {{}}, hook_process.read_stdin)
        sys.settrace(lambda *given: trace(*given) if given[1] == "call" else None)
        try:
            try:
                got.append(call.payload())
            except Exception:  # as the door does
                got.append(call.payload())
        finally:
            sys.settrace(None)
        return Reply()

    hook_process.serve_host(answer, lambda: None)
    return 3 if left[0] > 0 else 0 if got == [{{"a": 1}}] else 1

step, lost = 0, []
while True:
    step += 1
    reads, writes = os.pipe()
    os.write(writes, EVENT)
    pid = os.fork()
    if pid == 0:
        os.close(writes)
        try:
            os._exit(answered(reads, step))
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(2)
    os.close(writes)
    os.close(reads)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code == 3:
        break
    if code:
        lost.append(step)
print(step, lost)
"""


@pytest.mark.rule("G5")
def test_at_whichever_step_of_reading_the_timer_goes_off_the_event_is_read():
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", AT_EACH_STEP],
        capture_output=True,
        timeout=100,
        env=clean_environ(),
    )
    steps, _, lost = done.stdout.decode().strip().partition(" ")
    assert (lost, done.stderr) == ("[]", b"")
    assert int(steps) > 10  # some versions of Python tell of lines only


# The timer goes off in the middle of something, as often as it can.
RINGS = """
import _signal
def ring():
    if _signal.getitimer(_signal.ITIMER_REAL)[0]:
        _signal.raise_signal(_signal.SIGALRM)
"""


# Stdin is read when all the time for it is over already.
LATE = f"""{RINGS}
from notyet import light
from notyet.hook import process as hook_process
hook_process._SILENCE = hook_process._LONGEST_READING = 0
read = light.read
def late(descriptor, size):
    if descriptor == 0:
        ring()
    return read(descriptor, size)
light.read = late"""


def test_a_hook_that_was_held_up_itself_reads_what_lies_there(tmp_path):
    project = new_project(tmp_path / "p", gate("exit 1"))
    reads, writes = os.pipe()
    os.write(writes, in_bytes(payload("claude", project)))
    os.close(writes)
    done = run_changed_hook(reads, LATE, "--host", "claude")
    os.close(reads)
    assert json.loads(done.stdout)["decision"] == "block"


# While one module is looked for, for the first time, the host's time runs out.
OUT_OF_TIME_IN = """
import sys, _signal
class Finder:
    names = {names!r}
    def find_spec(self, name, *_):
        if name in self.names:
            self.names.remove(name)
            _signal.raise_signal(_signal.SIGALRM)
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.rule("E9")
@pytest.mark.parametrize(
    "names",
    [
        ["notyet.engine.stop"],
        ["notyet.hook.hook", "notyet.config.load"],
        ["notyet.ledger.connection"],
    ],
    ids=" ".join,
)
def test_time_that_runs_out_while_something_is_imported_is_said_and_written_down(tmp_path, names):
    project = new_project(tmp_path / "p")
    change = OUT_OF_TIME_IN.format(names=names)
    done = run_changed_hook(
        payload("claude", project), change, "--host", "claude", "--timeout", "30"
    )
    assert_allows("claude", done.returncode, done.stdout)
    assert "no answer within the 30 s" in json.loads(done.stdout)["systemMessage"]
    assert stops() == [("skipped", "deadline")]


@pytest.mark.rule("E9")
def test_time_that_is_up_where_nothing_can_be_raised_is_up_a_little_later(tmp_path):
    project = new_project(tmp_path / "p")
    change = """
import _signal, time
from notyet.config import load
class Lock:
    def __del__(self):
        _signal.raise_signal(_signal.SIGALRM)
        len("so that the handler is called in here")
def hangs(*_, **__):
    _signal.setitimer(_signal.ITIMER_REAL, 60, 0.01)
    Lock()
    _signal.setitimer(_signal.ITIMER_REAL, 0.01, 0.01)
    time.sleep(50)
load.load = hangs"""
    done = run_changed_hook(payload("claude", project), change, "--host", "claude")
    said = b"notyet: NOT CHECKED: no answer within the 600 s that the host waits (notyet log 1)\n"
    assert done.stderr == said
    assert stops() == [("skipped", "deadline")]


@pytest.mark.rule("E9")
def test_an_answer_that_is_known_is_not_lost_when_time_is_up_while_it_is_put_into_words(tmp_path):
    project = new_project(tmp_path / "p", gate("exit 1"))
    change = f"""{RINGS}
from notyet.hook import hook as hook_line
class Said(list):
    def __iter__(self):
        ring()
        return super().__iter__()
answer = hook_line.Hook.answer
def answered(hook):
    reply = answer(hook)
    hook.warnings = Said(hook.warnings)
    return reply
hook_line.Hook.answer = answered"""
    done = run_changed_hook(payload("claude", project), change, "--host", "claude")
    assert json.loads(done.stdout)["decision"] == "block"


@pytest.mark.rule("E9")
def test_time_that_is_up_just_when_all_was_said_to_one_stream_does_not_cost_the_other(tmp_path):
    project = new_project(tmp_path / "p", gate("exit 1"))
    change = f"""{RINGS}
from notyet.hook import process as hook_time
stop = hook_time.Alarm.stop
def stopping(alarm):
    if sys._getframe(1).f_code.co_name == "_write":
        ring()
    stop(alarm)
hook_time.Alarm.stop = stopping"""
    done = run_changed_hook(payload("claude", project), change, "--host", "claude", "--nonsense")
    assert b"--nonsense" in done.stderr
    assert json.loads(done.stdout)["decision"] == "block"
