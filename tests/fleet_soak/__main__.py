"""A fleet under kills and crashes, on a PostgreSQL of its own; prints counts.

    PYTHONPATH=tests python -m fleet_soak [--only PART] [--kills N] ...

Exits 1 if a promise was broken: results lost, prompts doubled, results delivered under two keys,
limits exceeded, or costs that grow with the queue.
"""

import argparse
import asyncio
import importlib.util
import sys
import time

import postgres_server

PARTS = ("kills", "suspensions", "clocks", "network", "limits", "queued", "versions")


def main(args):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument(
        "--tasks", type=int, default=1000, help="at least, while workers are killed"
    )
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--pause", type=float, default=0.8, help="seconds between two kills")
    parser.add_argument("--crashes", type=int, default=10)
    parser.add_argument("--suspensions", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=40.0, help="of clocks and network")
    parser.add_argument("--queued", type=int, default=100_000)
    parser.add_argument("--keep", action="store_true", help="keep the notes")
    options = parser.parse_args(args)
    if reason := missing():
        print(f"skipped: {reason}")
        return 0
    from fleet_soak import faults, limits, queued, versions

    calls = {
        "kills": faults.kills,
        "suspensions": faults.suspensions,
        "clocks": faults.clocks,
        "network": faults.network,
        "limits": limits.limits,
        "queued": queued.queued,
        "versions": versions.versions,
    }
    status = 0
    for name in options.only or PARTS:
        began = time.monotonic()
        print(f"{name}: {calls[name].__doc__.splitlines()[0]}", flush=True)
        figures, broken = asyncio.run(calls[name](options))
        for what, figure in (figures | {"seconds": f"{time.monotonic() - began:.0f}"}).items():
            print(f"  {what:<36} {figure}")
        print("\n".join(f"  BROKEN: {what}" for what in broken) or "  every promise was kept")
        sys.stdout.flush()
        status |= bool(broken)
    return status


def missing():
    """Return why this cannot run here; empty if it can."""
    if importlib.util.find_spec("dbos") is None:
        return "dbos is not installed"
    return postgres_server.missing()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
