"""Reusable daemon threads for functions that may never return.

Not a ThreadPoolExecutor: the interpreter joins its threads at exit, so one hung gate would
hang the whole program; and a bounded pool would fill up with abandoned calls.
"""

from __future__ import annotations

import os
import threading
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    Job = Callable[[], None]

_MOST_IDLE = 32


class _Worker:
    """One thread that runs jobs until nobody needs it any more."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[Job] = SimpleQueue()
        threading.Thread(target=self._work, name="notyet-gate", daemon=True).start()

    def _work(self) -> None:
        while True:
            self.jobs.get()()
            with _lock:
                if len(_idle) >= _MOST_IDLE:
                    return
                _idle.append(self)


_lock = threading.Lock()
_idle: list[_Worker] = []


def run_in_thread(job: Job) -> None:
    """Run a job that never raises in a thread of its own; nobody waits for it at exit."""
    with _lock:
        worker = _idle.pop() if _idle else None
    if worker is None:
        worker = _Worker()  # RuntimeError: the system has no thread left
    # The job sees the context variables of whoever asked, as with asyncio.to_thread.
    worker.jobs.put(partial(copy_context().run, job))


def run_or_do(job: Job) -> None:
    """Run a job in a thread of its own; or here and now, where the system has no thread left."""
    try:
        run_in_thread(job)
    except RuntimeError:
        job()


def tell(loop: AbstractEventLoop, callback: Callable[..., None], *args: object) -> bool:
    """Call something in a loop's thread; False when the loop is closed and nobody listens."""
    try:
        loop.call_soon_threadsafe(callback, *args)
    except RuntimeError:
        return False
    return True


def _forget_in_child() -> None:
    global _lock  # noqa: PLW0603  # a lock another thread held at the fork stays locked for ever
    _lock = threading.Lock()
    _idle.clear()


os.register_at_fork(after_in_child=_forget_in_child)
