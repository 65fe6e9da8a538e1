"""Shows a fleet: PostgreSQL, two workers and twenty scripted agents with gates, and what fails.

One worker is killed and the database crashes on the way; every result must arrive all the same.
"""

from __future__ import annotations

import asyncio
import collections
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import postgres_server

if TYPE_CHECKING:
    from notyet.core.task import Announcement
    from notyet.fleet import Fleet

AGENTS = 20
KILLED_AFTER, CRASHED_AFTER = 4, 10  # results
PATIENCE = 100.0  # seconds
GATES = """\
[gates]
tests = "sh tests.sh"
notes = "test -e NOTES"
"""
SCRIPTS = {
    "careful": ("echo pass > result; echo done > NOTES",),
    "hasty": ("true", "echo pass > result; echo done > NOTES"),
    "hopeful": ("true", "echo pass > result", "echo done > NOTES"),
}
TURN = """\
[[turn]]
steps = [{{ wait = 0.8 }}, {{ tool = "bash", input = {{}}, run = "{work}" }}]
say = "{say}"
"""


class Demo:
    """A fleet in a temporary folder."""

    def __init__(self, folder: Path, cluster: postgres_server.Cluster) -> None:
        self.folder, self.cluster = folder, cluster
        self.began = time.monotonic()
        self.results: dict[str, Announcement] = {}
        self.deliveries = 0
        # Nothing of the user's is read or written.
        places = ("CONFIG", "DATA", "STATE", "CACHE")
        self.environ = {f"XDG_{place}_HOME": str(folder / place.lower()) for place in places} | {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "NOTYET_FLEET": cluster.url(),
        }
        self.workers: dict[str, subprocess.Popen[bytes]] = {}

    def say(self, text: str) -> None:
        """Print what happens, and when."""
        print(f"{time.monotonic() - self.began:5.1f} s  {text}", flush=True)

    def make_project(self) -> str:
        """Commit a project with gates, and scripts of agents; return its address."""
        shop = self.folder / "shop"
        shop.mkdir()
        (shop / "notyet.toml").write_text(GATES)
        (shop / "tests.sh").write_text("grep -q pass result || { echo 1 test failed; exit 1; }\n")
        for name, turns in SCRIPTS.items():
            last = len(turns) - 1
            said = ["It works." if n == last else "Done!" for n in range(len(turns))]
            text = [TURN.format(work=work, say=say) for work, say in zip(turns, said, strict=True)]
            (shop / f"{name}.toml").write_text("\n".join(text))
        who = ("-c", "user.name=demo", "-c", "user.email=demo@example.com")
        for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "shop"]):
            subprocess.run(["git", *command], cwd=shop, env=self.environ, check=True)
        return f"file://{shop}"

    def start(self, name: str) -> None:
        """Start a worker; what it says is in a file."""
        command = [sys.executable, "-m", "notyet", "worker", "--queue", "agents", "--at-once", "3"]
        command += ["--trust", f"file://{self.folder}/*", "--work", str(self.folder / name)]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.workers[name] = subprocess.Popen(
                command, env=self.environ, stdout=log, stderr=log, start_new_session=True
            )

    async def run(self) -> bool:
        """Return True if every result was delivered, and passed its gates."""
        from notyet.fleet import Fleet, Queue

        queue = Queue("agents", per_worker=3, limits={"big": "2 at once"})
        async with Fleet(self.cluster.url(), queues=[queue]) as fleet:
            self.say("PostgreSQL runs, and the queue agents is defined: big models 2 at once")
            await self.submit(fleet)
            for name in ("worker-1", "worker-2"):
                self.start(name)
            self.say("worker-1 and worker-2 start, 3 tasks at once on each")
            taking = asyncio.ensure_future(fleet.deliver(self.take))
            failing = asyncio.ensure_future(self.fail())
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    while len(self.results) < AGENTS and not taking.done():  # noqa: ASYNC110
                        await asyncio.sleep(0.1)
            for one in (taking, failing):
                one.cancel()
            await asyncio.gather(taking, failing, return_exceptions=True)
        self.drain()
        return [one.result.outcome for one in self.results.values()] == ["passed"] * AGENTS

    async def submit(self, fleet: Fleet) -> None:
        """Submit the tasks of all agents."""
        address, kinds = self.make_project(), list(SCRIPTS)
        for number in range(1, AGENTS + 1):
            await fleet.submit(
                f"Do job {number}.",
                agent=f"scripted:{kinds[number % len(kinds)]}.toml",
                queue="agents",
                cwd=address,
                model="big" if number % 4 == 0 else "small",
                key=f"job-{number}",
                label=f"job-{number}",
                retries=3,
            )
        self.say(f"{AGENTS} tasks are queued")

    async def take(self, announcement: Announcement) -> None:
        """Take a result."""
        result = announcement.result
        self.deliveries += 1
        self.results[str(result.label)] = announcement
        times = {0: "", 1: " after 1 send-back"}.get(
            result.steers, f" after {result.steers} send-backs"
        )
        said = result.outcome if result.ending == "done" else f"{result.ending}: {result.error}"
        self.say(f"{len(self.results):>2} of {AGENTS}  {result.label} {said}{times}")

    async def fail(self) -> None:
        """Kill a worker, and crash the database."""
        while len(self.results) < KILLED_AFTER:  # noqa: ASYNC110  # several things change it
            await asyncio.sleep(0.05)
        worker = self.workers["worker-1"]
        worker.kill()
        worker.wait()
        self.say("KILLED worker-1 (kill -9), with tasks at work")
        await asyncio.sleep(1.0)
        self.start("worker-1")
        self.say("worker-1 is started again, and goes on with what it finds")
        while len(self.results) < CRASHED_AFTER:  # noqa: ASYNC110  # as above
            await asyncio.sleep(0.05)
        self.say("CRASHED the database (immediate shutdown)")
        await asyncio.to_thread(self.cluster.crash)
        self.say("PostgreSQL runs again")

    def drain(self) -> None:
        """Let the workers end."""
        for worker in self.workers.values():
            worker.send_signal(signal.SIGTERM)
        for worker in self.workers.values():
            try:
                worker.wait(20)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        self.say("the workers are drained")

    def table(self) -> str:
        """Return what became of the tasks."""
        rows = collections.Counter(
            (one.result.ending, one.result.outcome, one.result.steers)
            for one in self.results.values()
        )
        lines = [f"{'ENDING':<12} {'OUTCOME':<12} {'SENT BACK':>9}  {'TASKS':>5}"]
        for (ending, outcome, steers), count in sorted(rows.items()):
            lines.append(f"{ending:<12} {outcome:<12} {steers:>9}  {count:>5}")
        again = self.deliveries - len(self.results)
        lines.append(f"\n{len(self.results)} of {AGENTS} results delivered, {again} of them again")
        return "\n".join(lines)


def main() -> int:
    """Run the demo; exit 1 if a result is missing or did not pass."""
    if reason := missing():
        print(f"{reason}; the demo of a fleet needs it")
        return 0
    cluster = postgres_server.Cluster()
    with tempfile.TemporaryDirectory(prefix="notyet-demo-") as folder:
        demo = Demo(Path(folder), cluster)
        try:
            is_whole = asyncio.run(demo.run())
        finally:
            for worker in demo.workers.values():
                if worker.poll() is None:
                    worker.kill()
                    worker.wait()
            cluster.close()
        print(f"\n{demo.table()}")
        if not is_whole:
            logs = [f"{path.name}:\n{path.read_text()}" for path in Path(folder).glob("*.log")]
            print("\n".join(["", "results are missing, or did not pass; the workers said:", *logs]))
    return 0 if is_whole else 1


def missing() -> str:
    """Return what is not installed; empty if nothing."""
    if importlib.util.find_spec("dbos") is None:
        return "dbos is not installed"
    return postgres_server.missing()


if __name__ == "__main__":
    sys.exit(main())
