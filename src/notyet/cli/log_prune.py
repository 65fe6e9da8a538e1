"""`notyet log --prune`: what is older than its user keeps goes now, and its space with it."""

from __future__ import annotations

import os

from notyet.cli.waiting import waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.ledger.sqlite import Ledger

_UNITS = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))


def prune(ledger: Ledger) -> int:
    """Remove what is too old or too much, and say what that was. Raises NotyetError."""
    from notyet.config.retention import retention
    from notyet.ledger.prune import prune, shrink

    wanted = retention(os.environ)
    if not os.path.exists(ledger.path):
        print("nothing to remove: there is no ledger yet")
        return 0
    with waiting("removing what is old ..."):
        removed = prune(ledger, wanted)
        freed = shrink(ledger)
    parts = [
        f"{count} {name if count == 1 else name + 's'}"
        for count, name in ((removed.stops, "stop"), (removed.tasks, "task"), (removed.logs, "log"))
        if count
    ]
    size = size_of(os.path.getsize(ledger.path))
    if not parts:
        print(f"nothing to remove; {ledger.path} has {size}")
        return 0
    print(f"removed {', '.join(parts)}; {ledger.path} has {size} now, {size_of(freed)} less")
    return 0


def size_of(count: int) -> str:
    """Return a number of bytes as people say it."""
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"
