"""Where a process can be ended: every write of the ledger, and whatever else calls `point`.

Nothing in the product knows of this. A process that is to die counts the points that it passes
and sends itself SIGKILL at one of them, so that no handler and no `finally` runs; or SIGSTOP, to
be continued after others took it for dead.
"""

import itertools
import os
import signal

_passed = itertools.count()
_names = []
_target = None
_signal = signal.SIGKILL


def arm(connection, target=None, number=signal.SIGKILL):
    """Die at this point; with None, only write down which points there are.

    `connection` is the class whose writes are counted.
    """
    global _passed, _target, _signal  # noqa: PLW0603  # of a process that was forked for this
    _passed = itertools.count()
    _names.clear()
    _target, _signal = target, number
    original = connection._attempt

    def attempt(self, begin, work, **how):
        if begin == "BEGIN":
            return original(self, begin, work, **how)
        name = work.__qualname__.replace(".<locals>", "").replace(".<lambda>", "")

        def written(db):
            result = work(db)
            point(f"{name}, before its commit")
            return result

        result = original(self, begin, written, **how)
        point(f"{name}, after its commit")
        return result

    connection._attempt = attempt


def point(name):
    """Pass a point at which the process may end."""
    number = next(_passed)
    _names.append(name)
    if number == _target:
        os.kill(os.getpid(), _signal)


def names():
    return list(_names)
