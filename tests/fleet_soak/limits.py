"""The limits of models, as the agents themselves saw them, while workers die and are suspended."""

import asyncio
import collections
import random
import time

from fleet_soak.agents import notes
from fleet_soak.faults import crew_of_four
from fleet_soak.processes import QUEUE
from fleet_soak.world import world
from notyet.fleet import Queue

AT_ONCE = {"opus": 3, "sonnet": 2, "gemini": 2}  # the last two by the limit of all others
RATE, PERIOD = 30, 60.0
LATENESS = 5.0  # seconds from the begin of a task to the first prompt, at most
TASKS = {"opus": 120, "sonnet": 60, "gemini": 60, "haiku": 75}
LIMITS = {"opus": "3 at once", "haiku": f"{RATE}/min", "*": "2 at once"}
BETWEEN_SUSPENSIONS = 5  # kills


async def limits(options):
    """Exceed no limit of a model, at once and per period, as its agents measure it."""
    async with world(Queue(QUEUE, limits=LIMITS), keep=options.keep) as here:
        names, suspended = crew_of_four(here), 0
        for number in range(max(TASKS.values())):
            for model, count in TASKS.items():
                if number < count:
                    await here.submit(f"{model}-{number}", model)
        began = time.monotonic()
        kills = 0
        while len(here.delivered()) < len(here.submitted) and time.monotonic() - began < 300:
            await asyncio.sleep(random.uniform(1, 4))
            here.crew.revive()
            here.crew.kill(random.choice(names))
            kills += 1
            if kills % BETWEEN_SUSPENSIONS == 0:
                name = random.choice(names)
                here.crew.suspend(name)
                await asyncio.sleep(2 * here.lease)
                here.crew.resume(name)
                suspended += 1
        await here.all_delivered()
        figures, broken = here.judge()
        lines, journal = here.prompts(), notes(here.path("journal"))
        figures["suspended"] = suspended
        measured = at_once(lines, journal)
        for model, most in AT_ONCE.items():
            strict, all_of_them = measured[model]
            figures[f"{model} at once (limit {most})"] = (
                f"{strict}; {all_of_them} with agents of suspended workers"
            )
            if strict > most:
                broken.append(f"{strict} {model} at once, {most} allowed")
        begun = most_within(await begins(here, "haiku"), PERIOD)
        prompted = [line["at"] for line in firsts(lines) if line["model"] == "haiku"]
        prompts = most_within(prompted, PERIOD - LATENESS)
        figures[f"haiku in {PERIOD:g} s (limit {RATE})"] = (
            f"{begun} begun; {prompts} first prompts in {PERIOD - LATENESS:g} s"
        )
        if max(begun, prompts) > RATE:
            broken.append(f"{max(begun, prompts)} haiku in {PERIOD:g} s, {RATE} allowed")
        if begun < RATE:
            broken.append(f"only {begun} haiku in a period: the limit was not reached")
        return figures, broken


def firsts(lines):
    """Return the first prompt of each session."""
    found = {}
    for line in lines:
        if line["what"] == "prompt":
            found.setdefault(line["id"], line)
    return list(found.values())


def at_once(lines, journal):
    """Return for each model how many sessions overlapped: without, and with suspended workers.

    A session lasts from its first prompt to the end of its last turn. A turn that was cut off ends
    when its worker was killed. A suspended worker loses its tasks to others, and its agent does not
    know it until it is woken up: these sessions overlap with their successors.
    """
    killed = {one["pid"]: one["at"] for one in journal if one["what"] == "killed"}
    ends = {line["key"]: line["at"] for line in lines if line["what"] == "end"}
    spans = {}  # begin, end, model
    drivers = collections.defaultdict(set)
    for line in lines:
        if line["what"] != "prompt":
            continue
        drivers[line["id"]].add(line["pid"])
        end = ends.get(line["key"], killed.get(line["pid"], line["at"]))
        first, last, _ = spans.get(line["id"], (line["at"], end, ""))
        spans[line["id"]] = (first, max(last, end), line["model"])
    fenced = {
        session
        for session, (first, last, _) in spans.items()
        for pid, since, until in suspensions(journal)
        if pid in drivers[session] and first < until and last > since
    }
    found = {}
    for model in {model for _, _, model in spans.values()}:
        ours = {s: span[:2] for s, span in spans.items() if span[2] == model}
        strict = most_overlapping([span for s, span in ours.items() if s not in fenced])
        found[model] = (strict, most_overlapping(list(ours.values())))
    return found


def suspensions(journal):
    """Yield the process ids that were suspended, from when to when."""
    since = {}
    for one in journal:
        if one["what"] == "suspended":
            since[one["pid"]] = one["at"]
        elif one["what"] == "resumed":
            yield one["pid"], since[one["pid"]], one["at"]


def most_overlapping(spans):
    """Return how many spans overlap at most."""
    changes = sorted([(end, -1) for _, end in spans] + [(begin, 1) for begin, _ in spans])
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def most_within(times, period):
    """Return how many times there are in any period, at most."""
    times, first, most = sorted(times), 0, 0
    for last, at in enumerate(times):
        while at - times[first] >= period:
            first += 1
        most = max(most, last - first + 1)
    return most


async def begins(here, model):
    """Return when tasks of a model began, by the database's clock."""
    sql = "SELECT at FROM begins WHERE model = ?"
    rows = await asyncio.to_thread(here.fleet.ledger.connection.rows, sql, (model,))
    return [at for (at,) in rows]
