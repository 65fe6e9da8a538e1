"""Hearing how a command ended where that collects it, as on macOS before Python 3.13."""

from __future__ import annotations

from notyet import system
from notyet.checks.process import lose_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.checks.process import Process


def take_status_and_collect(process: Process) -> bool:
    """Note how the command's own process ended; its number stays taken while its group lives."""
    try:
        pid, status = system.waitpid(process.pid, system.WNOHANG)
    except ChildProcessError:
        lose_status(process)
        return True
    if not pid:
        return False
    process.reaped = True
    if system.WIFEXITED(status):
        process.code = system.WEXITSTATUS(status)
    else:
        process.signal = system.WTERMSIG(status)
    return True
