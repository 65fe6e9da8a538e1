"""Ends a supervisor at every point of a scenario, recovers, and judges what is left.

    PYTHONPATH=tests python -m crash.harness [SCENARIO ...] [--every N] [--then N] [--jobs N]

`--every N` takes every Nth point. `--then N` also ends the *recovery* at every Nth point of its
own. `--suspend` only suspends the supervisor (SIGSTOP), until its lease has run out and another
machine has recovered its tasks; then it goes on. `--only SCENARIO:KNOWING:POINT[:POINT]` repeats
one case and prints its journal. `--store postgresql` has the ledgers on a PostgreSQL server.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from contextlib import contextmanager, nullcontext, suppress

import stores
from crash import faults
from crash.judge import judge, snapshot
from crash.scenarios import SCENARIOS, recovery
from crash.world import World
from notyet import Ledger
from notyet.errors import LedgerBusy
from notyet.ledger import leases
from postgres_server import missing

KNOWING = ("knows", "cannot know", "cannot be reopened")
PATIENCE = 30.0
LEASE = 0.4  # of a supervisor that is suspended for longer


def in_child(work, world, target):
    """Run a coroutine in a fork of this process; return its points, None if it was killed."""
    status = ended(begun(work, world, target))
    if os.WIFSIGNALED(status):
        return None
    if status:
        raise AssertionError("it failed")
    with open(os.path.join(world.folder, "points"), encoding="utf-8") as file:
        return json.load(file)


def begun(work, world, target, number=signal.SIGKILL):
    """Start a coroutine in a fork of this process, which sends itself a signal at a point."""
    report = os.path.join(world.folder, "points")
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setpgid(0, 0)
            leases.own_machine = lambda: world.machine
            faults.arm(type(world.ledger.connection), target, number)
            asyncio.run(work(world))
            with open(report, "w", encoding="utf-8") as file:
                json.dump(faults.names(), file)
            status = 0
        except BaseException:  # noqa: BLE001  # a forked child must not become a second parent
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    return pid


def ended(pid):
    """Wait until a child has ended, or is suspended; return its status."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if found:
            return status
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError("it hangs")


def suspended(scenario, knowing, first):
    """Suspend a supervisor for longer than its lease; return what is wrong when it went on."""
    function, script = SCENARIOS[scenario]
    with folder() as place:
        world = World(place, script, knowing, lease=LEASE)
        pid = begun(function, world, first, signal.SIGSTOP)
        try:
            is_suspended = os.WIFSTOPPED(ended(pid))
            if is_suspended and not expired(world):
                os.kill(pid, signal.SIGCONT)
                is_suspended = os.WIFSTOPPED(ended(pid))
            time.sleep(LEASE)  # the supervisor's own clock has to say it, too
            before = snapshot(world)
            after = World(place, script, knowing, is_recovering=True, machine="another")
            after.prompts_before = world.read("got")
            in_child(recovery, after, None)
            if is_suspended:
                os.kill(pid, signal.SIGCONT)
                ended(pid)  # however: its tasks are not its own any more
            return judge(after, before, snapshot(world)), world.read()
        except AssertionError as error:
            with suppress(ProcessLookupError, ChildProcessError):  # it was ended already
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            return [str(error)], world.read()


def expired(world):
    """End all leases; False if a thread of the suspended process holds the ledger's lock."""
    end = "UPDATE owners SET lease_until = 1 WHERE lease_until > 0"
    try:
        Ledger(world.ledger.path).connection.execute(end, (), patience=0.2)
    except LedgerBusy:
        return False
    return True


@contextmanager
def folder():
    """Make a folder in memory, if there is such a place."""
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108  # a folder of our own in it
    with tempfile.TemporaryDirectory(
        prefix="notyet-crash-", dir=place, ignore_cleanup_errors=True
    ) as name:
        yield name


def case(scenario, knowing, first=None, second=None):
    """Live through one crash, or two; return (what is wrong, the points that were passed)."""
    function, script = SCENARIOS[scenario]
    with folder() as place:
        world = World(place, script, knowing)
        try:
            points = in_child(function, world, first)
            after = World(place, script, knowing, is_recovering=True)
            if second is not None:
                points = in_child(recovery, after, second)
                after = World(place, script, knowing, is_recovering=True)
            before = snapshot(world)
            after.prompts_before = world.read("got")
            again = in_child(recovery, after, None)
            wrong = judge(after, before, snapshot(world))
            return wrong, points, again, world.read()
        except AssertionError as error:
            return [str(error)], None, None, world.read()


def cases(scenarios, every, then):
    """Yield every case; how many points there are is found out by passing them all."""
    for scenario in scenarios:
        for knowing in KNOWING:
            _, points, _, _ = case(scenario, knowing)
            if points is None:
                yield scenario, knowing, None, None
                continue
            for first in range(0, len(points), every):
                yield scenario, knowing, first, None
                if then and first % then == 0:
                    _, _, again, _ = case(scenario, knowing, first)
                    for second in range(first // then % then, len(again or ()), then):
                        yield scenario, knowing, first, second


def suspensions(scenarios, every):
    """Suspend at every point that holds no lock; return how many there were, and what was wrong."""
    count, broken = 0, {}
    for scenario in scenarios:
        for knowing in KNOWING:
            _, points, _, _ = case(scenario, knowing)
            free = [n for n, name in enumerate(points) if not name.endswith("before its commit")]
            for first in free[::every]:
                wrong, _ = suspended(scenario, knowing, first)
                count += 1
                if wrong:
                    broken[f"{scenario}:{knowing}:{first} ({points[first]})"] = wrong
    return count, broken


def run(scenarios, every, then):
    """Run cases; return how many there were, and what was wrong in which."""
    count, broken = 0, {}
    for scenario, knowing, first, second in cases(scenarios, every, then):
        wrong, _, _, _ = case(scenario, knowing, first, second)
        count += 1
        if wrong:
            broken[":".join(str(p) for p in (scenario, knowing, first, second))] = wrong
    return count, broken


def in_parallel(scenarios, every, then, jobs, *, suspend=False):
    """Share the scenarios among forks of this process."""
    read, write = os.pipe()
    waiting = sorted(scenarios)
    for number in range(jobs):
        if os.fork() == 0:
            os.close(read)
            for scenario in waiting[number::jobs]:
                work = suspensions([scenario], every) if suspend else run([scenario], every, then)
                count, broken = work
                line = json.dumps({"scenario": scenario, "count": count, "broken": broken})
                os.write(write, line.encode() + b"\n")
            os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as reports:
        for line in reports:
            yield json.loads(line)
    for _ in range(jobs):
        os.wait()


def main(args):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", default=[])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--then", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--suspend", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--store", choices=["file", "postgresql"], default="file")
    options = parser.parse_args(args)
    if options.store == "postgresql" and (reason := missing()):
        say(f"skipped: {reason}")
        return 0
    with stores.cluster() if options.store == "postgresql" else nullcontext():
        return repeat(options.only) if options.only else crashes(options)


def crashes(options):
    """Run the cases that were asked for; print how many there were, and what was wrong."""
    total, broken, started = 0, {}, time.monotonic()
    scenarios = options.scenarios or list(SCENARIOS)
    how = {"suspend": options.suspend}
    for report in in_parallel(scenarios, options.every, options.then, options.jobs, **how):
        total += report["count"]
        broken |= report["broken"]
        say(f"  {report['scenario']:<40} {report['count']:>6} crashes")
    for which, wrong in broken.items():
        say(f"{which}\n    " + "\n    ".join(wrong))
    seconds = time.monotonic() - started
    say(f"{total} crashes, {len(broken)} with something wrong ({seconds:.0f} s)")
    return 1 if broken or not total else 0


def say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def repeat(which):
    scenario, knowing, *points = which.split(":")
    first, second = ([int(p) if p != "None" else None for p in points] + [None, None])[:2]
    wrong, _, _, lines = case(scenario, knowing, first, second)
    _, names, _, _ = case(scenario, knowing)
    if first is not None:
        say(f"died: {names[first]}")
    say("\n".join(json.dumps(line) for line in lines))
    say("\n".join(wrong) or "all is well")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
