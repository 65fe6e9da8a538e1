"""Run everything that must pass before a change lands: `.ci/run`, or `.ci/run bare soak`.

Needs only the standard library. Each part is timed and compared with its budget; a part over its
budget is reported and does not fail. The first part that fails ends the run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import NamedTuple

ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER of Linux
GRACE = 3.0  # seconds between SIGTERM and SIGKILL


class Part(NamedTuple):
    """One part of the run."""

    name: str
    minutes: float  # budget
    command: list[str]


PARTS = [
    # First, and before anything is installed: a machine with Python, make and git alone.
    Part("bare", 6, [".ci/bare", "make", "demo", "test"]),
    Part("install", 5, [".ci/install"]),
    Part("tests", 12, ["make", "test"]),
    Part("browser", 4, ["make", "test-browser"]),
    Part("postgres", 5, ["make", "test-postgres"]),
    Part("clients", 25, ["make", "test-clients"]),
    Part("frameworks", 10, ["make", "test-frameworks"]),
    Part("site", 2, ["make", "docs-site"]),
    Part("package", 2, ["make", "package"]),
    Part("bench", 3, ["make", "test-bench"]),
    Part("soak", 12, ["make", "soak"]),
]


def main(names: list[str]) -> int:
    """Run the parts with these names, or all; print how each ended and how long it took."""
    if unknown := set(names) - {part.name for part in PARTS}:
        print(f"no such part: {', '.join(sorted(unknown))}; there are:", *(p.name for p in PARTS))
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(128 + signal.SIGHUP))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    adopt_orphans()
    parts = [part for part in PARTS if part.name in names or not names]
    lines: list[str] = []
    try:
        for part in parts:
            if not run(part, lines):
                return 1
        return 0
    finally:
        end_processes()
        lines += [f"  not run  {part.name}" for part in parts[len(lines) :]]
        print("", *lines, sep="\n", flush=True)


def run(part: Part, lines: list[str]) -> bool:
    """Run one part and add a line about it; return True if it passed."""
    print(f"=== {part.name}: {' '.join(part.command)}", flush=True)
    started = time.monotonic()
    word, is_ok = "FAILED", False
    try:
        is_ok = exit_code(part.command) == 0
        word = "ok" if is_ok else "FAILED"
    finally:
        minutes = (time.monotonic() - started) / 60
        line = f"  {word:<8} {part.name:<10} {minutes:5.1f} of {part.minutes:g} min"
        if minutes > part.minutes:
            line += "  OVER BUDGET"
        if left := end_processes():
            line += f"  (ended processes left behind: {', '.join(left)})"
        lines.append(line)
    return is_ok


def exit_code(command: list[str]) -> int:
    """Run a command; meanwhile reap the orphans, which tests would take for running processes."""
    with subprocess.Popen(command) as process:
        while True:
            pid, status = os.waitpid(-1, 0)
            if pid == process.pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                return process.returncode


def adopt_orphans() -> None:
    """Become the parent of every process that a part leaves behind (Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1, 0, 0, 0)


def end_processes() -> list[str]:
    """End every process below this one; return their names."""
    names: dict[int, str] = {}
    deadline = time.monotonic() + GRACE
    while running := descendants():
        is_late = time.monotonic() > deadline
        for pid in running:
            if pid not in names or is_late:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL if is_late else signal.SIGTERM)
        names |= running
        if time.monotonic() > deadline + GRACE:
            break  # not even SIGKILL ends a process that waits for a device
        time.sleep(0.05)
    return sorted(names.values())


def descendants() -> dict[int, str]:
    """Return the running processes below this one, with their names; reap those that ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    table: dict[int, tuple[int, str]] = {}
    for entry in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        with suppress(OSError, ValueError):
            pid = int(entry)
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                head, _, tail = file.read().rpartition(")")
            state, parent = tail.split()[:2]
            if state != "Z":
                table[pid] = (int(parent), head.partition("(")[2])
    below = {os.getpid()}
    while found := {pid for pid, (parent, _) in table.items() if parent in below} - below:
        below |= found
    return {pid: table[pid][1] for pid in below - {os.getpid()}}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
