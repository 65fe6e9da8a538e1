"""What the benchmark is at, on standard error: the tables are for standard output."""

from __future__ import annotations

import os
import sys
import time

_VARIABLE = "BENCH_STARTED"  # areas run in processes of their own, and count the same seconds
_STARTED = float(os.environ.setdefault(_VARIABLE, str(time.monotonic())))


def say(words: str) -> None:
    """Say what comes now."""
    print(f"[{time.monotonic() - _STARTED:5.0f} s] {words}", file=sys.stderr, flush=True)
