"""The ledger under load: processes check stops without pause, and are killed at any moment.

Each worker writes a line after every send-back it was told of. In the end the ledger must be
sound, must have counted at least every send-back that somebody was told of, and nobody may have
been told more send-backs than the limits allow: hopeless agents, whose gate never passes, have
two turns with a budget each; the others have their session's ceiling.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from notyet import Ledger, StopEvent

MAX_BLOCKS = 3
CEILING = 40
HOOKS = 200

WORKER = f"""
import itertools, os, random, sys
from notyet import Block, Engine, Ledger, Limits, StopEvent
path, name = sys.argv[1:]
chance = random.Random(name)
limits = Limits(max_blocks={MAX_BLOCKS}, session_ceiling={CEILING})
def gate(event):
    if event.session_id.startswith("hopeless") or chance.random() < 0.7:
        return Block("go on")
engine = Engine([gate], limits=limits, ledger=Ledger(path))
for n in itertools.count():
    kind, turns = chance.choice([("hopeless", 2), ("busy", 30)])
    session = f"{{kind}}-{{chance.randrange(300)}}"
    event = StopEvent(session_id=session, turn_id=f"t{{chance.randrange(turns)}}", last_message=f"{{name}} {{n}}")
    if engine.check_sync(event).outcome == "blocked":
        os.write(1, f"{{session}}\\n".encode())
"""


class Worker:
    """One process and what it says it was told."""

    def __init__(self, path: str, folder: Path, number: int) -> None:
        self.said = folder / f"said-{number}"
        with self.said.open("w") as out:
            command = [sys.executable, "-c", WORKER, path, str(number)]
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)

    def kill(self) -> list[str]:
        """End it at once; return the sessions it was told to send back."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        return [
            line for line in self.said.read_text().splitlines(keepends=True) if line[-1] == "\n"
        ]


def main() -> int:
    """Run the soak; exit 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--workers", type=int, default=6)
    args = parser.parse_args()
    chance = random.Random()
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name), os.path.join(name, "ledger.db")
        told: dict[str, int] = {}
        kills = started = 0
        ends = time.monotonic() + args.seconds
        crew: list[Worker] = []
        while time.monotonic() < ends:
            while len(crew) < args.workers:
                crew.append(Worker(path, folder, started))
                started += 1
            time.sleep(chance.uniform(0.1, 0.6))
            _collect(crew.pop(chance.randrange(len(crew))), told)
            kills += 1
        for worker in crew:
            _collect(worker, told)
        broken = _judge(path, told, kills)
    return broken | _hooks_at_once() | _others()


def _hooks_at_once() -> int:
    """Start many hooks at the same moment, on one ledger: each must send its agent back."""
    print(f"\n{HOOKS} hooks at once", flush=True)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        own = place / "config" / "notyet"  # the user's file needs no trust
        project = place / "project"
        for folder in (own, project):
            folder.mkdir(parents=True)
        (own / "notyet.toml").write_text('[gates.bad]\nrun = "exit 1"\nwhen = "always"\n')
        environ = os.environ | {
            "XDG_CONFIG_HOME": str(own.parent),
            "NOTYET_LEDGER": str(place / "ledger.db"),
        }
        hooks = []
        for number in range(HOOKS):
            event = {"hook_event_name": "Stop", "session_id": f"s{number}", "cwd": str(project)}
            (place / "event").write_text(json.dumps(event))
            with (place / "event").open() as payload:
                command = [sys.executable, "-m", "notyet", "hook", "--host", "claude"]
                hook = subprocess.Popen(
                    command, stdin=payload, stdout=subprocess.PIPE, env=environ, cwd=project
                )
            (place / "event").unlink()
            hooks.append(hook)
        answers = [hook.communicate()[0] for hook in hooks]
    blocked = sum(b'"decision": "block"' in answer for answer in answers)
    print(f"{blocked} of {HOOKS} sent their agent back")
    return 0 if blocked == HOOKS else 1


def _others() -> int:
    """Run what else takes its time: gates over SSH, crashes, random lives, much supervising."""
    tests = Path(__file__).parents[1] / "tests"
    environ = os.environ | {"PYTHONPATH": str(tests), "NOTYET_LAWS": "deep"}
    laws = ["pytest", "-q", "-p", "no:cacheprovider", "-n", "auto", "--timeout", "600"]
    broken = 0
    for what, command in {
        "1,000 supervised agents, two processes, one of them killed": ["bench.soak_supervised"],
        "gates over SSH, somebody killed in each round": ["bench.soak_remote"],
        "every crash of a supervisor": ["crash.harness", "--then", "9"],
        "a supervisor suspended for longer than its lease": [
            *("crash.harness", "block_then_pass", "consumer_refuses_first"),
            *("--suspend", "--every", "3"),
        ],
        "crashes of a supervisor on PostgreSQL": [
            *("crash.harness", "--store", "postgresql", "--every", "11"),
        ],
        "supervised agents on a PostgreSQL server that crashes": ["crash.database"],
        "a fleet: 25 workers killed, the database crashes": [
            *("fleet_soak", "--only", "kills", "--kills", "25", "--crashes", "1", "--tasks", "60"),
        ],
        "random lives of supervised agents": [*laws, str(tests / "laws" / "test_supervisor.py")],
    }.items():
        print(f"\n{what}", flush=True)
        done = subprocess.run([sys.executable, "-m", *command], env=environ, check=False)
        broken |= done.returncode != 0
    return broken


def _collect(worker: Worker, told: dict[str, int]) -> None:
    for line in worker.kill():
        told[line.strip()] = told.get(line.strip(), 0) + 1


def _judge(path: str, told: dict[str, int], kills: int) -> int:
    db = sqlite3.connect(path)
    sound = db.execute("PRAGMA integrity_check").fetchone()[0]
    stops = db.execute("SELECT count(*) FROM stops").fetchone()[0]
    counted = dict(db.execute("SELECT session_id, session_blocks FROM agents").fetchall())
    db.close()
    broken = []
    if sound != "ok":
        broken.append(f"the file is not sound: {sound}")
    broken += [
        f"{session}: {number} send-backs told, {counted.get(session, 0)} counted"
        for session, number in told.items()
        if counted.get(session, 0) < number
    ]
    for session, number in told.items():
        most = 2 * MAX_BLOCKS if session.startswith("hopeless") else CEILING
        if number > most:
            broken.append(f"{session}: {number} send-backs told, at most {most} allowed")
    Ledger(path).begin(StopEvent(session_id="after"))
    print(f"{stops:,} stops, {sum(told.values()):,} send-backs told, {kills} processes killed")
    print("\n".join(broken) or "the file is sound, nothing was lost, no limit was exceeded")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
