"""Many processes at once, and processes that are killed at any moment."""

import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

from notyet import Block, Decision, Ledger
from stores import locked, place, sound
from support import stop

pytestmark = pytest.mark.rule("B3")

WORKER = """
import sys
from notyet import Block, Decision, Ledger, StopEvent
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
ledger = Ledger(path)
for n in range(count):
    begun = ledger.begin(StopEvent(session_id="shared", last_message=f"{name} {n}"))
    ledger.record(begun, Decision(verdict=Block("x"), outcome="blocked", turn=1, limit=10**6))
    print(n + 1, flush=True)
"""


def worker(path, name, count, said):
    with said.open("w") as file:
        return subprocess.Popen(
            [sys.executable, "-c", WORKER, place(path), name, str(count)], stdout=file
        )


def test_no_update_is_lost_among_many_writers(tmp_path):
    path = tmp_path / "ledger.db"
    workers = [worker(path, f"w{n}", 50, tmp_path / f"said{n}") for n in range(6)]
    for each in workers:
        assert each.wait(timeout=60) == 0
    assert Ledger(path).begin(stop(session_id="shared")).history.blocks == 300


def test_after_kill_9_the_file_is_sound_and_the_count_is_never_too_low(tmp_path):
    path = tmp_path / "ledger.db"
    shuffler = random.Random(7)
    answered = 0
    for round_number in range(6):
        said = tmp_path / "said"
        process = worker(path, f"r{round_number}", 100_000, said)
        while not said.read_text():
            time.sleep(0.005)
        time.sleep(shuffler.uniform(0, 0.05))
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
        answered += said.read_text().count("\n")
    ledger = Ledger(path)
    sound(ledger)
    counted = ledger.begin(stop(session_id="shared")).history.blocks
    assert answered <= counted <= answered + 6


def test_forked_children_of_a_process_with_an_open_ledger_lose_nothing(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    kept_open = Ledger(tmp_path / "ledger.db")
    kept_open.begin(stop(session_id="another"))

    def work(name):
        for n in range(100):
            begun = ledger.begin(stop(session_id="shared", last_message=f"{name} {n}"))
            ledger.record(
                begun, Decision(verdict=Block("x"), outcome="blocked", turn=1, limit=10**6)
            )

    work("before")
    children = []
    for name in range(4):
        child = os.fork()
        if child == 0:
            try:
                work(name)
            finally:
                os._exit(0)
        children.append(child)
    work("parent")
    for child in children:
        os.waitpid(child, 0)
    assert ledger.begin(stop(session_id="shared")).history.blocks == 600


@pytest.mark.file_only("what is left of it in its folder")
def test_a_ledger_that_is_let_go_closes_its_file(tmp_path):
    Ledger(tmp_path / "ledger.db").begin(stop())
    assert {path.name for path in tmp_path.iterdir()} == {"ledger.db"}


def test_a_fork_does_not_wait_for_a_busy_ledger(tmp_path):
    path = tmp_path / "ledger.db"
    Ledger(path).begin(stop(session_id="another"))
    ledger = Ledger(path, patience=30)
    with locked(ledger):
        waiting = threading.Thread(target=ledger.begin, args=(stop(),))
        waiting.start()
        time.sleep(0.05)
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert waiting.is_alive()
    os.waitpid(child, 0)
    waiting.join()
