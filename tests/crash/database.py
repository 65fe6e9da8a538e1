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
from notyet import Ledger, LedgerError
from postgres_server import missing

ENDED = "SELECT count(*) FROM tasks WHERE ended_at IS NOT NULL"


def main(args):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=600)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--crashes", type=int, default=10)
    options = parser.parse_args(args)
    if reason := missing():
        sys.stdout.write(f"skipped: {reason}\n")
        return 0
    command = [sys.executable, "-m", "bench.soak_supervised"]
    command += ["--tasks", str(options.tasks), "--at-once", str(options.at_once)]
    with stores.cluster() as cluster:
        ledger = Ledger(cluster.url(), repair=False)
        soak = subprocess.Popen([*command, "--ledger", cluster.url()])
        crashes = 0
        while crashes < options.crashes and soak.poll() is None:
            if ended(ledger) > (crashes + 1) * options.tasks // (options.crashes + 1):
                cluster.crash()
                crashes += 1
            time.sleep(0.02)
        status = soak.wait()
        ledger.close()
    sys.stdout.write(f"  crashes of the database            {crashes}\n")
    return status or crashes < options.crashes


def ended(ledger):
    try:
        return ledger.connection.rows(ENDED)[0][0]
    except LedgerError:  # it starts
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
