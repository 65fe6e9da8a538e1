"""The runner of commands, in multiples of spawning and reaping the same with nothing around.

A gate `true` is `/bin/sh -c true`, so that is what both run. The floor is the least that anybody can
do: `posix_spawn` with the same variables, and `waitpid`; without pipes, sessions, time limits, and without anybody who ends it if we are killed.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import Amount, Curve, Effort, Figure, Point, Result, Row, interleaved
from bench.progress import say
from notyet.run.command_runner import run_together
from notyet.run.spawn import Job, shell_argv

TRUE = shell_argv("true", "/bin/sh")
MANY = 100
GATES = (1, 10, 100, 1000)
FLOOR = "posix_spawn and waitpid"
SOURCE = str(Path(__file__).parents[1] / "src")
# Each leaves a process that nothing but a signal ends.
# The first ones are over before we can do anything more, and what they leave has lost our mark.
ESCAPES = (
    *["env -i BENCH_LEFT=$BENCH_LEFT setsid sleep 1000 >/dev/null 2>&1 &"] * 8,
    "sleep 1000",
    "sleep 1000 &",
    "setsid sleep 1000 &",
    "(setsid sleep 1000 &) &",
    "trap '' TERM; while :; do sleep 0.1; done",
    "setsid sh -c 'trap \"\" TERM; while :; do sleep 0.1; done' & wait",
)
ROUNDS = 3  # it is luck who is first
# What a hook does, in a process of its own: only such a one may adopt orphans.
ASKED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from notyet.run.spawn import Job
from notyet.run.command_runner import run_together
from notyet.run.groups import adopt_orphans, sweep
adopt_orphans()
environ = {"PATH": os.environ["PATH"], "BENCH_LEFT": sys.argv[2]}
run_together([Job(argv=("/bin/sh", "-c", text), dir="/", environ=environ, timeout=0.3)
              for text in sys.argv[3:]])
sweep()
"""
RUNAWAY = """
import os, resource, sys
sys.path.insert(0, sys.argv[1])
from notyet.run.spawn import Job
from notyet.run.command_runner import run_together
text = f"head -c {sys.argv[2]} /dev/zero"
run_together([Job(argv=("/bin/sh", "-c", text), dir="/", environ={"PATH": os.environ["PATH"]})])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def measure(effort: Effort) -> list[Result]:
    """Measure each promise about commands."""
    say("commands: one and many")
    rows: list[Result] = [one(effort), five(effort), hundred(effort)]
    say("commands: what is left behind")
    rows += [end(effort), background(effort), stubborn(effort), survivors(), memory(effort)]
    say("commands: 1 to 1,000")
    return [*rows, growth(effort), descriptors(effort)]


def one(effort: Effort) -> Row:
    """Run one command."""
    return _beside(1, effort.rounds(100), "one command")


def five(effort: Effort) -> Row:
    """Run five."""
    return _beside(5, effort.rounds(60), "5 commands at once")


def hundred(effort: Effort) -> Row:
    """Run a hundred."""
    row = _beside(MANY, effort.rounds(20), f"{MANY} commands at once")
    return row._replace(goal="commands.hundred")


def _beside(count: int, rounds: int, what: str) -> Row:
    taken = interleaved(rounds, 1, bare=lambda: _bare(count), ours=lambda: _run(count))
    return Row(what, FLOOR, taken["bare"], taken["ours"])


def _run(count: int) -> None:
    job = Job(argv=TRUE, dir=os.getcwd(), environ=_environ())
    run_together([job] * count)


def _bare(count: int) -> None:
    environ = _environ()
    for pid in [os.posix_spawn(TRUE[0], TRUE, environ) for _ in range(count)]:
        os.waitpid(pid, 0)


def _environ() -> dict[str, str]:
    return {"PATH": os.environ["PATH"]}


def end(effort: Effort) -> Amount:
    """Measure from the last gate's own exit to the end of the run."""
    return Amount(
        "the run is over after the last gate's exit",
        _late(effort.rounds(30), ""),
        "ms",
        "commands.end",
    )


def background(effort: Effort) -> Amount:
    """Do the same where something in the background holds the gate's output."""
    return Amount(
        "the same, with a background child that holds its output",
        _late(effort.rounds(15), "sleep 1000 &"),
        "ms",
        "commands.background",
    )


def stubborn(effort: Effort) -> Amount:
    """Do the same where that also ignores SIGTERM."""
    return Amount(
        "the same, with one that ignores SIGTERM as well",
        _late(effort.rounds(15), "(trap '' TERM; while :; do sleep 1000; done) &"),
        "ms",
        "commands.background",
    )


def _late(rounds: int, leaves: str) -> Figure:
    """Return the milliseconds between a gate's last word, which says when it was, and the end."""
    text = f"{leaves} exec date +%s.%N"
    job = Job(argv=shell_argv(text, "/bin/sh"), dir="/", environ=_environ())
    taken = []
    for _ in range(rounds):
        (ended,) = run_together([job])
        taken.append((time.time() - float(ended.stdout)) * 1000)
    return Figure.of(taken)


def survivors() -> Amount:
    """Count what outlives gates and what they leave, in a process that adopts orphans."""
    what = "processes that survive, setsid and a cleared environment included"
    if sys.platform != "linux":
        return Amount(what, float("nan"), "", note="only Linux can adopt orphans")
    mark = f"{os.getpid()}.{time.monotonic_ns()}"
    for _ in range(ROUNDS):
        subprocess.run([sys.executable, "-c", ASKED, SOURCE, mark, *ESCAPES], check=True)
    left = sum(f"BENCH_LEFT={mark}".encode() in _variables(pid) for pid in Path("/proc").iterdir())
    note = f"{ROUNDS} stops of {len(ESCAPES)} gates, of which each leaves something running"
    return Amount(what, left, "", "commands.survivors", note=note)


def _variables(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""


def memory(effort: Effort) -> Amount:
    """Measure the most memory that we ever take while a gate prints very much."""
    size = {"full": 1 << 30, "quick": 1 << 28}.get(effort.name, 1 << 24)
    words = [sys.executable, "-c", RUNAWAY, SOURCE, str(size)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    what = f"memory while a gate prints {size >> 20} MB"
    return Amount(what, int(done.stdout) / unit, "MB", "commands.memory")


def growth(effort: Effort) -> Curve:
    """Run ever more commands, and the same bare."""
    points = []
    for count in effort.sizes(GATES):
        rounds = effort.rounds(max(3, 40 // count))
        row = _beside(count, rounds, "")
        points.append(Point(count, row.ours_us, row.floor_us))
    return Curve("commands of one stage", "commands", tuple(points), "linear", FLOOR)


def descriptors(effort: Effort) -> Amount:
    """Count the files that are open at most while very many commands run."""
    count = effort.largest(GATES)
    with tempfile.TemporaryDirectory() as folder:
        # Each one looks how many its parent has.
        text = f"ls /proc/$PPID/fd | wc -l > {folder}/$$"
        job = Job(argv=shell_argv(text, "/bin/sh"), dir="/", environ=_environ())
        run_together([job] * count)
        most = max(int(path.read_text()) for path in Path(folder).iterdir())
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    what = f"files open at most while {count} commands run"
    return Amount(what, most, "", note=f"of {limit} that this process may open")
