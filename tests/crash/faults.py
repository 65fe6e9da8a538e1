"""Where a process can be ended: every write of the ledger, and whatever else calls `point`.

Nothing in the product knows of this. A process that is to die counts the points that it passes
and sends itself SIGKILL at one of them, so that no handler and no `finally` runs; or SIGSTOP, to
be continued after others took it for dead.
"""

import itertools
import os
import signal

from notyet.ledger.connection import Connection

_passed = itertools.count()
_names = []
_target = None
_signal = signal.SIGKILL


def arm(target=None, number=signal.SIGKILL):
    """Die at this point; with None, only write down which points there are."""
    global _passed, _target, _signal  # noqa: PLW0603  # of a process that was forked for this
    _passed = itertools.count()
    _names.clear()
    _target, _signal = target, number
    original = Connection._attempt

    def attempt(self, begin, work, *, flush):
        if begin == "BEGIN":
            return original(self, begin, work, flush=flush)
        name = work.__qualname__.replace(".<locals>", "").replace(".<lambda>", "")

        def written(db):
            result = work(db)
            point(f"{name}, before its commit")
            return result

        result = original(self, begin, written, flush=flush)
        point(f"{name}, after its commit")
        return result

    Connection._attempt = attempt


def point(name):
    """Pass a point at which the process may end."""
    number = next(_passed)
    _names.append(name)
    if number == _target:
        os.kill(os.getpid(), _signal)


def names():
    return list(_names)
