"""Crashes the database under supervisors at work, while one of them is killed, too.

    PYTHONPATH=tests python -m crash.database [--tasks N] [--at-once N] [--crashes N]

PostgreSQL is stopped as if its machine had lost power (`pg_ctl -m immediate`), and started again.
Every result must arrive, none under two keys, and no prompt twice.
"""

import argparse
import subprocess
import sys
import time

import stores
from postgres_server import missing

PAUSE = 2.0  # seconds of work between two crashes


def main(args):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--crashes", type=int, default=10)
    options = parser.parse_args(args)
    if reason := missing():
        sys.stdout.write(f"skipped: {reason}\n")
        return 0
    command = [sys.executable, "-m", "bench.soak_supervised"]
    command += ["--tasks", str(options.tasks), "--at-once", str(options.at_once)]
    with stores.cluster() as cluster:
        soak = subprocess.Popen([*command, "--ledger", cluster.url()])
        crashes = 0
        while crashes < options.crashes and is_at_work(soak):
            cluster.crash()
            crashes += 1
        status = soak.wait()
    sys.stdout.write(f"  crashes of the database            {crashes}\n")
    return status or not crashes


def is_at_work(process):
    """Wait for the next crash; False if the work has ended before."""
    ends = time.monotonic() + PAUSE
    while time.monotonic() < ends:
        if process.poll() is not None:
            return False
        time.sleep(0.05)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
