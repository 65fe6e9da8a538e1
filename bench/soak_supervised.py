"""Supervisors under load: many subagents, two processes on one ledger, one of them killed.

Every result must reach the consumer, and none under two keys; no task may be left at work, no
prompt may arrive twice, no program may be left running, and memory must not grow with the tasks.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import functools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.soak_agents import Agent
from notyet import Block, Engine, Function, Gate, Ledger, Limits, Match
from notyet.errors import Refused
from notyet.run.proc import is_gone
from notyet.supervise import Supervisor, SupervisorSettings

MAX_BLOCKS = 3
MOST_GROWTH = 16.0  # MB, from the time when all that is allowed to be at work is
SETTINGS = SupervisorSettings(grace=0.05, first_retry=0.05, steer_pause=0.0, ledger_patience=120.0)
PATIENCE = 300.0


def ledger_in(folder: str, *, repair: bool = True) -> Ledger:
    """Return the ledger of a soak: the file in its folder, or where a file `address` says."""
    address = Path(folder, "address")
    place = address.read_text() if address.exists() else os.path.join(folder, "ledger.db")
    return Ledger(place, patience=30.0, repair=repair)


class Worker:
    """One process with a supervisor, and its share of the tasks."""

    def __init__(self, folder: str, at_once: int) -> None:
        self.folder = folder
        self.ledger = ledger_in(folder)
        self.turns = asyncio.Semaphore(at_once)
        self.ended = 0
        self.memory: list[tuple[int, float]] = []

    def write(self, **known: object) -> None:
        file = os.open(
            os.path.join(self.folder, "journal"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600
        )
        os.write(file, (json.dumps(known) + "\n").encode())
        os.close(file)

    async def judge(self, event):
        await asyncio.sleep(0.01)
        return None if event.last_message == "tests pass" else Block("run the tests")

    async def deliver(self, announcement) -> None:
        if random.random() < 0.05:
            raise OSError("not now")
        result = announcement.result
        self.write(key=announcement.key, task=result.task_id, ending=result.ending)

    async def work(self, names: list[str]) -> None:
        """Recover what others left, then do what nobody has begun."""
        scopes = Match(events=("subagent",))
        gate = Gate(name="tests", check=Function(self.judge, "notyet"), match=scopes)
        limits = Limits(max_blocks=MAX_BLOCKS, stuck_after=0)
        engine = Engine([gate], limits=limits, ledger=self.ledger, warn=lambda _: None)
        supervisor = Supervisor(
            engine,
            self.ledger,
            lambda ref: Agent(ref["folder"], ref["name"]),
            deliver=self.deliver,
            settings=SETTINGS,
        )
        async with supervisor:
            handles = await supervisor.recover()
            known = {view.task.label for view in await supervisor.tasks(10**6)}
            async with asyncio.TaskGroup() as group:
                for handle in handles:
                    group.create_task(handle.result())
                for name in names:
                    if name not in known:
                        await self.turns.acquire()
                        group.create_task(self.one(supervisor, name))
            while await self.has_undelivered(supervisor):  # noqa: ASYNC110  # as the consumer sees it
                await asyncio.sleep(0.05)
        self.write(memory=self.memory, pid=os.getpid())

    async def has_undelivered(self, supervisor: Supervisor) -> bool:
        return any(
            view.delivery in {"pending", "leased"} and view.owner_pid == os.getpid()
            for view in await supervisor.tasks(10**6)
        )

    async def one(self, supervisor: Supervisor, name: str) -> None:
        """Give an agent its task, and let a person meddle now and then."""
        chance = random.Random(f"person {name}")
        handle = await supervisor.spawn(
            Agent(self.folder, name), f"do {name}", label=name, timeout=1.0
        )
        meddling = asyncio.ensure_future(self.meddle(supervisor, handle, chance))
        result = await handle
        meddling.cancel()
        self.turns.release()
        self.ended += 1
        if result.steers > MAX_BLOCKS:
            self.write(wrong=f"{name} was sent back {result.steers} times")
        if self.ended % 25 == 0:
            self.memory.append((self.ended, resident()))

    async def meddle(self, supervisor, handle, chance: random.Random) -> None:
        if chance.random() > 0.25:
            return
        await asyncio.sleep(chance.uniform(0, 0.3))
        try:
            what = chance.choice(("kill", "reset", "interrupt", "steer", "say"))
            if what in {"steer", "say"}:
                await getattr(supervisor, what)(handle, "another way")
            else:
                await getattr(supervisor, what)(handle)
        except Refused:
            return


def resident() -> float:
    """Return this process's memory in MB; 0 where the system does not say."""
    if not os.path.exists("/proc/self/statm"):
        return 0.0
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def start(folder: str, first: int, last: int, at_once: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bench.soak_supervised", "--worker", folder]
    command += [str(first), str(last), str(at_once)]
    return subprocess.Popen(command, start_new_session=True)


def soak(tasks: int, at_once: int, ledger: str = "") -> int:
    """Run it; print a table, return 1 if a promise was broken."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="notyet-soak-") as folder:
        if ledger:
            Path(folder, "address").write_text(ledger)
        half = tasks // 2
        killed = start(folder, 0, half, at_once // 2)
        other = start(folder, half, tasks, at_once // 2)
        crew = [killed, other]
        try:
            _wait(lambda: _ended(folder) > tasks * 0.4 or killed.poll() is not None)
            left = _at_work(folder, killed.pid)
            killed.send_signal(signal.SIGKILL)
            killed.wait()
            heir = start(folder, 0, half, at_once // 2)
            crew.append(heir)
            _wait(lambda: heir.poll() is not None and other.poll() is not None)
            statuses = (heir.returncode, other.returncode)
        finally:
            for each in crew:
                if each.poll() is None:
                    each.kill()
                    each.wait()
        table, broken = judge(folder, tasks)
    if any(statuses):
        broken.append(f"workers ended with {statuses}")
    table = {"tasks, at once": f"{tasks:,}, {at_once}", "at work when one was killed": left} | table
    table["seconds"] = f"{time.monotonic() - started:.1f}"
    for name, figure in table.items():
        print(f"  {name:<34} {figure}")
    print("\n".join(broken) or "  nothing lost, nothing under two keys, nothing left running")
    return 1 if broken else 0


def _wait(condition) -> None:
    ends = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > ends:
            raise TimeoutError("the soak does not come to its end")
        time.sleep(0.05)


def _query(folder: str, sql: str, *values: object) -> list[tuple[Any, ...]]:
    return _reader(folder).connection.rows(sql, values)


@functools.cache
def _reader(folder: str) -> Ledger:
    return ledger_in(folder, repair=False)


def _ended(folder: str) -> int:
    rows = _query(folder, "SELECT count(*) FROM tasks WHERE ended_at IS NOT NULL")
    return rows[0][0] if rows else 0


def _at_work(folder: str, pid: int) -> int:
    sql = "SELECT count(*) FROM tasks JOIN owners ON owners.id = owner WHERE pid = ? AND ended_at IS NULL"
    rows = _query(folder, sql, pid)
    return rows[0][0] if rows else 0


def judge(folder: str, tasks: int) -> tuple[dict[str, object], list[str]]:
    """Return the table, and what is wrong in sentences."""
    lines = [json.loads(line) for line in Path(folder, "journal").read_text().splitlines()]
    broken = [line["wrong"] for line in lines if "wrong" in line]
    given = [line for line in lines if "key" in line]
    keys = collections.defaultdict(set)
    for line in given:
        keys[line["task"]].add((line["key"], line["ending"]))
    labels = collections.Counter(
        json.loads(about)["label"] for (about,) in _query(folder, "SELECT about FROM tasks")
    )
    ids = [row[0] for row in _query(folder, "SELECT id FROM tasks")]
    lost = [task for task in ids if task not in keys]
    twice = [task for task, known in keys.items() if len(known) > 1]
    is_file = not Path(folder, "address").exists()
    sound = _query(folder, "PRAGMA integrity_check")[0][0] if is_file else "ok"
    for what, found in (
        ("tasks are missing", tasks - len(labels)),
        ("tasks were begun twice", sum(count - 1 for count in labels.values())),
        ("results never reached the consumer", len(lost)),
        ("results came under two keys, or in two versions", len(twice)),
        ("tasks are left at work", _one(folder, "tasks WHERE ended_at IS NULL")),
        ("results are undelivered", _one(folder, "outbox WHERE status != 'delivered'")),
        ("outbox rows too many", _one(folder, "outbox") - len(ids)),
        ("programs are left running", sum(map(_runs, Path(folder).glob("*.pid")))),
        ("prompts arrived twice", sum(map(_doubles, Path(folder).glob("*.got")))),
        ("faults in the file", 0 if sound == "ok" else sound),
    ):
        if found:
            broken.append(f"{found} {what}")
    endings = collections.Counter(ending for known in keys.values() for _, ending in known)
    growth = _growth(lines)
    if growth > MOST_GROWTH:
        broken.append(f"memory grew by {growth:.1f} MB")
    table: dict[str, object] = {
        "endings": ", ".join(f"{count} {ending}" for ending, count in endings.most_common()),
        "steers (by gates, hand, users)": _steers(folder),
        "deliveries, again under their key": f"{len(given):,}, {len(given) - len(keys)}",
        "memory of the one that lived": f"grew {growth:.1f} MB (< {MOST_GROWTH:g})",
    }
    return table, broken


def _one(folder: str, what: str) -> int:
    return int(_query(folder, f"SELECT count(*) FROM {what}")[0][0])  # noqa: S608  # our own words


def _steers(folder: str) -> str:
    rows = dict(_query(folder, "SELECT source, count(*) FROM steers GROUP BY source"))
    return ", ".join(str(rows.get(source, 0)) for source in ("gate", "manual", "user"))


def _runs(file: Path) -> bool:
    text = file.read_text().strip()
    return bool(text) and not is_gone(int(text), "")


def _doubles(file: Path) -> int:
    keys = file.read_text().split()
    return len(keys) - len(set(keys))


def _growth(lines: list[dict[str, Any]]) -> float:
    """Return by how much a process grew after the first third of its tasks."""
    grown = []
    for line in lines:
        figures = [size for _, size in line.get("memory", ())]
        late = figures[len(figures) // 3 :]
        grown += [max(late) - late[0]] if len(late) > 1 else []
    return max(grown, default=0.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=200)
    parser.add_argument("--ledger", default="", help="an address of PostgreSQL")
    parser.add_argument("--worker", nargs=4)
    args = parser.parse_args()
    if args.worker is None:
        return soak(args.tasks, args.at_once, args.ledger)
    folder, first, last, at_once = args.worker

    async def work() -> None:
        names = [f"agent-{n}" for n in range(int(first), int(last))]
        await Worker(folder, int(at_once)).work(names)

    asyncio.run(work())
    return 0


if __name__ == "__main__":
    sys.exit(main())
