"""The world of one part of the soak: a database, a folder of notes, processes, and the judge."""

import asyncio
import collections
import json
import os
import shutil
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path

from fleet_soak.agents import note, notes
from fleet_soak.processes import QUEUE, Crew, Job, consume, work
from notyet.errors import LedgerError
from notyet.fleet import Fleet, Queue
from postgres_server import Cluster

PATIENCE = 240.0  # seconds until every result has arrived, after all faults
_LOOK = 0.1
CONSUMER = "consumer"
ALLOWED_ENDINGS = {"done", "interrupted"}


class World:
    """Tasks that were submitted, and what became of them."""

    def __init__(self, folder, cluster, fleet, url, lease):
        self.folder, self.cluster, self.fleet, self.url = folder, cluster, fleet, url
        self.lease = lease
        self.crew = Crew(self.journal)
        self.submitted = {}  # the task of each key
        self.crashes = 0
        self.resubmitted = 0
        self._read = 0
        self._delivered = set()

    def path(self, name):
        return os.path.join(self.folder, name)

    def journal(self, what, pid):
        note(self.path("journal"), what=what, pid=pid, at=time.monotonic())

    # -- processes

    def job(self, machine, **options):
        return Job(
            **({"folder": self.folder, "url": self.url, "lease": self.lease} | options),
            machine=machine,
        )

    def start(self, name, machine="", **options):
        self.crew.start(name, work, self.job(machine or name, **options))

    def start_consumer(self, **options):
        self.crew.start(CONSUMER, consume, self.job("consumers", **options))

    async def crash(self):
        """Crash the database, and start it again."""
        await asyncio.to_thread(self.cluster.crash)
        self.crashes += 1

    # -- tasks

    async def submit(self, name, model="", *, retries=2):
        """Submit a task under its name, as often as it takes."""
        ends = time.monotonic() + PATIENCE
        while name not in self.submitted:
            try:
                self.submitted[name] = await self.fleet.submit(
                    f"do {name}",
                    agent="scripted",
                    queue=QUEUE,
                    args=(name,),
                    model=model,
                    key=name,
                    retries=retries,
                    label=name,
                )
            except LedgerError:
                if time.monotonic() > ends:
                    raise
                self.resubmitted += 1
                await asyncio.sleep(_LOOK)

    def delivered(self):
        """Return the names of the tasks whose results have arrived."""
        try:
            with open(self.path("inbox"), "rb") as file:
                file.seek(self._read)
                new = file.read()
        except FileNotFoundError:
            return self._delivered
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        self._delivered.update(line["label"] for line in _parsed(whole))
        return self._delivered

    async def until(self, condition, patience=PATIENCE):
        """Wait for a condition; False if it takes too long. Processes that end are revived."""
        ends = time.monotonic() + patience
        while not condition():
            if time.monotonic() > ends:
                return False
            self.crew.revive()
            await asyncio.sleep(_LOOK)
        return True

    async def all_delivered(self, patience=PATIENCE):
        return await self.until(lambda: len(self.delivered()) >= len(self.submitted), patience)

    # -- what is true in the end

    def prompts(self):
        """Return what agents wrote down of their prompts, in the order of time."""
        found = []
        for path in Path(self.folder, "agents").iterdir():
            found += notes(path)
        return sorted(found, key=lambda line: line["at"])

    def warnings(self):
        return notes(self.path("warnings"))

    def judge(self):
        """Return figures, and promises that were broken."""
        inbox, lines = notes(self.path("inbox")), self.prompts()
        sent = [line for line in lines if line["what"] == "prompt"]
        lost = sorted(set(self.submitted) - {line["label"] for line in inbox})
        keys = collections.Counter((line["key"]) for line in sent)
        words = collections.Counter((line["id"], line["prompt"]) for line in sent)
        doubled = sum(count - 1 for count in (*keys.values(), *words.values()) if count > 1)
        given = collections.defaultdict(set)
        for line in inbox:
            given[line["label"]].add((line["key"], line["task"], line["ending"]))
        differing = [name for name, each in given.items() if len(each) > 1]
        last = {line["label"]: line for line in inbox}
        endings = collections.Counter(line["ending"] for line in last.values())
        silent = [
            name for name, line in last.items() if line["ending"] != "done" and not line["error"]
        ]
        ended = {line["key"] for line in lines if line["what"] == "end"}
        sessions = {(line["name"], line["id"]) for line in sent}
        drivers = {(line["id"], line["pid"]) for line in sent}
        figures = {
            "tasks": len(self.submitted),
            "prompts": len(sent),
            "turns cut off": len(set(keys) - ended),
            "taken over, begun again": (
                f"{len(drivers) - len(sessions)}, {len(sessions) - len({n for n, _ in sessions})}"
            ),
            "endings": ", ".join(f"{n} {ending}" for ending, n in endings.most_common()),
            "workers and consumers killed": self.crew.killed,
            "ended by themselves": self.crew.ended,
            "database crashes": self.crashes,
            "submitted again (same key)": self.resubmitted,
            "results lost": len(lost),
            "prompts doubled": doubled,
            "delivered twice (same key)": len(inbox) - len(last),
            "delivered twice (differing)": len(differing),
        }
        broken = [f"{len(lost)} results were lost: {', '.join(lost[:5])}"] if lost else []
        if doubled:
            broken.append(f"{doubled} prompts arrived twice")
        if differing:
            broken.append(f"delivered with two keys or endings: {', '.join(differing[:5])}")
        if silent:
            broken.append(f"interrupted without a reason: {', '.join(silent[:5])}")
        if set(endings) - ALLOWED_ENDINGS:
            broken.append(f"unexpected endings: {dict(endings)}")
        return figures, broken


def _parsed(text):
    return [json.loads(line) for line in text.splitlines()]


@asynccontextmanager
async def world(queue=None, lease=3.0, *, keep=False):
    """Yield a world with a database and a folder of its own."""
    cluster = await asyncio.to_thread(Cluster)
    folder = tempfile.mkdtemp(prefix="notyet-fleet-")
    os.mkdir(os.path.join(folder, "agents"))
    url = cluster.url()
    try:
        async with Fleet(url, queues=[queue or Queue(QUEUE)]) as fleet:
            made = World(folder, cluster, fleet, url, lease)
            try:
                yield made
            finally:
                made.crew.close()
    finally:
        await asyncio.to_thread(cluster.close)
        if keep:
            print(f"  notes are in {folder}")
        else:
            shutil.rmtree(folder)
