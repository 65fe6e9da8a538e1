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
    from notyet.ledger.prune import prune
    from notyet.ledger.shrink import shrink

    wanted = retention(os.environ)
    if not os.path.exists(ledger.path):
        print("nothing to remove: there is no ledger yet")
        return 0
    with waiting("removing what is old ..."):
        _bring_up_to_date(ledger)
        removed = prune(ledger, wanted)
        shrunk = shrink(ledger)
    counts = {
        "stop": removed.stops,
        "task": removed.tasks,
        "agent": removed.agents,
        "log": removed.logs,
    }
    parts = [
        f"{count} {name if count == 1 else name + 's'}" for name, count in counts.items() if count
    ]
    done = f"removed {', '.join(parts)}" if parts else "nothing to remove"
    size = f"{ledger.path} has {size_of(os.path.getsize(ledger.path))}"
    if parts or shrunk.freed:
        size += f" now, {size_of(shrunk.freed)} less"
    print(f"{done}; {size}")
    if shrunk.is_new:
        print("it was written anew: an earlier notyet began it, and it could not shrink otherwise")
    if shrunk.why_not:
        print(f"an earlier notyet began it; to shrink, it has to be written anew: {shrunk.why_not}")
    return 0


def _bring_up_to_date(ledger: Ledger) -> None:
    """Let a ledger of an older notyet become one of ours; a damaged one is left to a stop."""
    from notyet.errors import LedgerBusy, LedgerError, LedgerUnmended

    try:
        ledger.file.read(lambda _: None)
    except LedgerUnmended as unmended:
        newer = type(ledger)(ledger.path)
        try:
            newer.file.checkpoint()  # which opens it, and sets nothing aside
        except LedgerBusy:
            raise
        except LedgerError:
            raise unmended from None
        finally:
            newer.close()


def size_of(count: int) -> str:
    """Return a number of bytes as people say it."""
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"
