"""Tasks whose first step is taken at once, so that what waits for nothing takes no turn of a loop.

Python 3.12 has such tasks. For 3.11 there is one here, made of asyncio's own task in Python, which
asyncio allows for: see "Task lifetime support" in its documentation.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

start_task: Callable[..., asyncio.Task[None]]
if sys.version_info >= (3, 12):
    # Not loop.create_task: it costs as much again.
    start_task = partial(asyncio.Task, eager_start=True)
else:
    from asyncio.futures import _PyFuture  # type: ignore[attr-defined]
    from asyncio.tasks import (  # type: ignore[attr-defined]
        _enter_task,
        _leave_task,
        _PyTask,
        _register_task,
    )
    from contextvars import copy_context

    class _Task(_PyTask):  # type: ignore[misc]  # 3.11 gets no new features
        """A task that takes its first step when it is told to, and not in the loop's next turn."""

        def __init__(
            self, coro: Coroutine[Any, Any, None], *, loop: asyncio.AbstractEventLoop, name: str
        ) -> None:
            _PyFuture.__init__(self, loop=loop)
            self._name = name
            self._num_cancels_requested = 0
            self._must_cancel = False
            self._fut_waiter = None
            self._coro = coro
            self._context = copy_context()
            _register_task(self)

        def begin(self) -> None:
            """Take the first step, instead of the task that is at work now."""
            current = asyncio.current_task(self._loop)
            if current is not None:
                _leave_task(self._loop, current)
            try:
                self._context.run(self._Task__step)
            finally:
                if current is not None:
                    _enter_task(self._loop, current)

    def _start_task(coro: Coroutine[Any, Any, None], **fields: Any) -> asyncio.Task[None]:
        task = _Task(coro, **fields)
        task.begin()
        return task

    start_task = _start_task
