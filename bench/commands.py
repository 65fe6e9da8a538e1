"""The runner of commands, in multiples of spawning and reaping the same with nothing around."""

from __future__ import annotations

import os

from bench.measure import Effort, Row, interleaved
from notyet.checks.command import Job, run_together

TRUE = "/bin/true"
MANY = 100


def measure(effort: Effort) -> list[Row]:
    """Run one command, and a hundred at once."""
    environ = {"PATH": os.environ["PATH"]}
    job = Job(argv=(TRUE,), dir=os.getcwd(), environ=environ)

    def bare(count: int) -> None:
        pids = [os.posix_spawn(TRUE, [TRUE], environ) for _ in range(count)]
        for pid in pids:
            os.waitpid(pid, 0)

    one = interleaved(60, 1, bare=lambda: bare(1), ours=lambda: run_together([job]))
    many = interleaved(20, 1, bare=lambda: bare(MANY), ours=lambda: run_together([job] * MANY))
    floor = "posix_spawn and waitpid"
    return [
        Row("one command", floor, one["bare"], one["ours"], float("inf")),
        Row("100 commands at once", floor, many["bare"], many["ours"], 1.2),
    ]
