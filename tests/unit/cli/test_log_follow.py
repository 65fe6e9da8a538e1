"""`notyet log -f`: stops of other processes appear as they are decided."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from hook_runs import clean_environ, ledger_path
from notyet import Allow, Block, Decision, Ledger
from notyet.cli.log import Follow
from notyet.ledger.past_stops import StopFilter
from support import decide, stop

_COMMAND = [sys.executable, "-c", "import sys; from notyet.cli.main import main; sys.exit(main())"]


class Following:
    """A running `notyet log -f`, whose lines come as they are written."""

    def __init__(self, process):
        self.process = process
        self._lines = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def line(self):
        return self._lines.get(timeout=30)


@contextmanager
def following(*argv):
    environ = clean_environ(PYTHONPATH=os.pathsep.join(sys.path))
    with subprocess.Popen(
        [*_COMMAND, "log", "-f", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ,
    ) as process:
        try:
            yield Following(process)
        finally:
            process.kill()
            process.stderr.close()


def test_stops_appear_when_they_are_decided_and_again_when_they_are_overridden():
    decide(Ledger(), stop(session_id="before"), "passed")
    with following("--all") as seen:
        assert seen.line().split()[:3] == ["ID", "WHEN", "HOST"]
        assert "before" in seen.line()
        ledger = Ledger()
        begun = ledger.begin(stop(session_id="now", turn_id="t1"))
        other = decide(ledger, stop(session_id="other"), "passed")
        line = seen.line()
        assert line.split()[0] == str(other)
        blocked = Decision(verdict=Block("x"), outcome="blocked", turn=1, count=1, limit=3)
        ledger.record(begun, blocked)
        line = seen.line()
        assert line.split()[0] == str(begun.stop)
        assert "blocked" in line
        decide(ledger, stop(session_id="now", turn_id="t2"), "passed")
        assert "overridden" in seen.line()
        assert "passed" in seen.line()
        seen.process.send_signal(signal.SIGINT)
        assert seen.process.wait(30) == 130
        assert seen.process.stderr.read() == ""
        assert seen.line() is None


def test_a_ledger_that_is_made_later_or_replaced_is_followed():
    with following("--all", "--json") as seen:
        decide(Ledger(), stop(session_id="first"), "passed")
        assert json.loads(seen.line())["session_id"] == "first"
        os.rename(ledger_path(), ledger_path() + ".old")
        for suffix in ("-wal", "-shm"):
            if os.path.exists(ledger_path() + suffix):
                os.unlink(ledger_path() + suffix)
        decide(Ledger(), stop(session_id="second"), "passed")
        known = json.loads(seen.line())
        assert (known["id"], known["session_id"]) == (1, "second")


def test_only_what_is_wished_appears():
    with following("--all", "--outcome", "blocked", "--json") as seen:
        ledger = Ledger()
        decide(ledger, stop(session_id="a"), "passed")
        decide(ledger, stop(session_id="b"))
        assert json.loads(seen.line())["session_id"] == "b"


def test_it_ends_when_its_output_is_closed():
    with following("--all") as seen:
        decide(Ledger(), stop(), "passed")
        assert seen.line()
        environ = clean_environ(PYTHONPATH=os.pathsep.join(sys.path))
        reading, writing = os.pipe()
        process = subprocess.Popen(
            [*_COMMAND, "log", "-f", "--all"], stdout=writing, stderr=subprocess.PIPE, env=environ
        )
        os.close(writing)
        os.read(reading, 10)  # it has begun
        os.close(reading)
        assert process.wait(30) == 0
        assert process.stderr.read() == b""
        process.stderr.close()


@pytest.fixture
def ledger():
    return Ledger()


def told(capsys):
    return [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]


def test_one_that_lost_its_asker_is_told_of_and_corrected_if_it_is_decided_after_all(
    ledger, monkeypatch, capsys
):
    watching = Follow(ledger, StopFilter(), as_json=True)
    begun = ledger.begin(stop())
    watching.begin()
    watching.look()
    assert told(capsys) == []
    monkeypatch.setattr("notyet.ledger.past_stops.is_lost", lambda *_: True)
    watching.look()
    watching.look()
    assert json.loads(capsys.readouterr().out)["why"] == "lost"
    ledger.record(begun, Decision(verdict=Allow(), outcome="passed", turn=1))
    watching.look()
    assert json.loads(capsys.readouterr().out)["outcome"] == "passed"
