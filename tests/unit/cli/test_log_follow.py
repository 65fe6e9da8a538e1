"""`notyet log -f`: stops of other processes appear as they are decided."""

import json
import os
import queue
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager

import pytest

from hook_runs import clean_environ, ledger_path
from notyet import Allow, Block, Decision, Ledger, Report
from notyet.cli.log import Follow
from notyet.ledger import history as past_news
from notyet.ledger.history import StopFilter
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


def test_it_ends_when_nobody_reads_any_more():
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


def test_a_gate_that_is_wished_for_counts_when_it_has_answered(ledger, capsys):
    asking = ledger.begin(stop(session_id="asking"))
    watching = Follow(ledger, StopFilter(gate="g"), as_json=True)
    watching.begin()
    fresh = ledger.begin(stop(session_id="fresh"))
    watching.look()
    assert capsys.readouterr().out == ""
    report = Report(gate="g", answer=Allow())
    passed = Decision(verdict=Allow(), outcome="passed", turn=1, reports=(report,))
    ledger.record(asking, passed)
    ledger.record(fresh, passed)
    decide(ledger, stop(session_id="without"), "passed")
    watching.look()
    told = [json.loads(line)["session_id"] for line in capsys.readouterr().out.splitlines()]
    assert told == ["asking", "fresh"]


@pytest.fixture
def ledger():
    return Ledger()


def told(capsys):
    return [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]


def test_of_send_backs_the_newest_are_watched_and_of_what_is_asked_all(ledger, monkeypatch, capsys):
    monkeypatch.setattr("notyet.cli.log._MAX_WATCHED", 2)
    watching = Follow(ledger, StopFilter(), as_json=True)
    watching.begin()
    watching.look()  # there is no file yet
    asking = [ledger.begin(stop(session_id=f"asking {n}")) for n in range(3)]
    for n in range(4):
        decide(ledger, stop(session_id=f"s{n}"))
    watching.look()
    assert told(capsys) == [4, 5, 6, 7]
    assert set(watching._watched) == {1, 2, 3}
    ledger.record(asking[0], Decision(verdict=Allow(), outcome="passed", turn=1))
    ledger.record(asking[2], Decision(verdict=Allow(), outcome="passed", turn=1))
    watching.look()
    assert told(capsys) == [1, 3]
    for n in range(4):
        decide(ledger, stop(session_id=f"t{n}"))
    watching.look()
    assert set(watching._watched) == {2, 11}


def test_those_that_were_asked_before_it_began_are_told_of_however_many(ledger, capsys):
    asking = [ledger.begin(stop(session_id=f"asking {n}")) for n in range(300)]
    watching = Follow(ledger, StopFilter(most=1), as_json=True)
    watching.begin()
    for begun in asking:
        ledger.record(begun, Decision(verdict=Allow(), outcome="passed", turn=1))
    watching.look()
    assert told(capsys) == list(range(1, 301))


def test_a_busy_ledger_is_asked_again_from_the_same_stop_on(ledger, capsys):
    decide(ledger, stop(), "passed")
    impatient = Ledger(patience=0.05)
    watching = Follow(impatient, StopFilter(), as_json=True)
    watching.begin()
    decide(ledger, stop(session_id="s2"), "passed")
    ledger.close()
    impatient.close()
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as db:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        db.execute("UPDATE stops SET repeated = 0")
        db.execute("COMMIT")
        assert not watching.look()
        assert told(capsys) == [1]
    watching.look()
    assert told(capsys) == [2]


def test_what_happened_while_it_was_stopped_is_told_in_order_and_whole(ledger, monkeypatch, capsys):
    monkeypatch.setattr("notyet.ledger.history._STOPS_AT_ONCE", 10)
    watching = Follow(ledger, StopFilter(), as_json=True)
    decide(ledger, stop(), "passed")
    watching.begin()
    watching.look()
    told(capsys)
    for n in range(35):
        decide(ledger, stop(session_id=f"s{n}"), "passed")
    looks = 1
    while watching.look():
        looks += 1
    assert told(capsys) == list(range(2, 37))
    assert looks == 4


def test_a_look_is_one_transaction_so_that_nothing_comes_between(ledger, monkeypatch, capsys):
    decide(ledger, stop(), "passed")
    watching = Follow(ledger, StopFilter(), as_json=True)
    busy = Ledger()
    made = []

    def meanwhile(read):
        def reading(*given):
            found = read(*given)  # and now somebody else stops
            made.append(decide(busy, stop(session_id=f"m{len(made)}"), "passed"))
            return found

        return reading

    for name in ("find", "_read", "_newest"):
        whole = getattr(past_news, name)
        monkeypatch.setattr(past_news, name, meanwhile(whole))
    watching.begin()
    for _ in range(3):
        watching.look()
    monkeypatch.undo()
    watching.look()
    assert told(capsys) == [1, *made]


def test_one_that_lost_its_asker_is_told_of_and_corrected_if_it_is_decided_after_all(
    ledger, monkeypatch, capsys
):
    watching = Follow(ledger, StopFilter(), as_json=True)
    begun = ledger.begin(stop())
    watching.begin()
    watching.look()
    assert told(capsys) == []
    monkeypatch.setattr("notyet.ledger.history.is_lost", lambda *_: True)
    watching.look()
    watching.look()
    assert json.loads(capsys.readouterr().out)["why"] == "lost"
    ledger.record(begun, Decision(verdict=Allow(), outcome="passed", turn=1))
    watching.look()
    assert json.loads(capsys.readouterr().out)["outcome"] == "passed"


def test_following_in_this_process_ends_with_an_interrupt(ledger, monkeypatch, capsys):
    decide(ledger, stop(), "passed")

    def interrupted(_seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("notyet.cli.log.time.sleep", interrupted)
    assert Follow(ledger, StopFilter(), as_json=True).run() == 130
    assert json.loads(capsys.readouterr().out)["outcome"] == "passed"
