"""The write-ahead log, which whoever opens the ledger next has to read."""

import os
import signal
import subprocess
import sys
import time

import pytest

from notyet import Ledger
from support import decide, fill, rows, stop

pytestmark = pytest.mark.file_only("its log")

_PAGE = 4096 + 24  # with its header in the log
_SHORT, _ONE_STOP = 200, 40  # pages: where it is written back, and more than a stop ever writes

# A process for one stop, as a hook is: it leaves without closing anything, or is killed.
HOOK = """
import os, resource, sys, time
from notyet import Block, Decision, Ledger, StopEvent
ledger = Ledger(sys.argv[1])
if "full" in sys.argv:  # there is room for the log, but none for more of the file itself
    size = os.path.getsize(ledger.path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
ledger.called_at = time.time()
begun = ledger.begin(StopEvent(session_id="s", last_message=sys.argv[2] * 3000))
if "write_back" in sys.argv:
    ledger.connection.write_back()  # while its gates are at work
decision = Decision(verdict=Block("x"), outcome="blocked", turn=1, limit=10**6)
said = ledger.record(begun, decision).count
os.write(1, str(said).encode())
os.kill(os.getpid(), int(sys.argv[3])) if sys.argv[3] != "0" else os._exit(0)
"""


def hook(path, n, sent=0, *more):
    return subprocess.run(
        [sys.executable, "-c", HOOK, str(path), str(n), str(int(sent)), *more],
        stdout=subprocess.PIPE,
        check=False,
        timeout=60,
    ).stdout.decode()


def log_of(path):
    return os.path.getsize(f"{path}-wal")


@pytest.mark.rule("B3")
@pytest.mark.parametrize("sent", [0, signal.SIGKILL])
def test_what_was_answered_is_counted_though_the_process_ends_at_once(tmp_path, sent):
    path = tmp_path / "ledger.db"
    assert [hook(path, n, sent) for n in range(5)] == ["1", "2", "3", "4", "5"]


def test_hooks_that_follow_one_another_keep_the_log_short(tmp_path):
    path = tmp_path / "ledger.db"
    longest = 0
    for n in range(40):
        hook(path, n)
        longest = max(longest, log_of(path))
    assert _SHORT * _PAGE <= longest <= (_SHORT + _ONE_STOP) * _PAGE  # or nothing was tried
    assert rows(Ledger(path), "SELECT count(*) FROM stops") == [(40,)]


def test_a_process_that_stays_waits_for_the_disk_no_more_than_sqlite_does(tmp_path):
    def limit(ledger):
        return ledger.connection.read(
            lambda db: db.execute("PRAGMA wal_autocheckpoint").fetchone()[0]
        )

    ledger = Ledger(tmp_path / "ledger.db")
    decide(ledger, stop())
    assert limit(ledger) == 1000
    brief = Ledger(ledger.path)
    brief.called_at = time.time()
    brief.begin(stop(last_message="other"))
    assert limit(brief) == _SHORT


@pytest.mark.rule("B3")
def test_what_cannot_be_written_back_stays_in_the_log_and_is_counted(tmp_path):
    path = tmp_path / "ledger.db"
    size = fill(path)
    said = [hook(path, n, 0, "write_back", "full") for n in range(8)]
    assert said == [str(n + 1) for n in range(8)]
    assert path.stat().st_size == size  # or there was room for it
    assert rows(Ledger(path), "SELECT count(*) FROM stops") == [(108,)]
