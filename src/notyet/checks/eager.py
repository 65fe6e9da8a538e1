"""Tasks whose first step is taken at once, so that what waits for nothing takes no turn of a loop.

Python 3.12 has such tasks. For 3.11 there is one here, made of asyncio's own task in Python, which
asyncio allows for: see "Task lifetime support" in its documentation. It becomes known to asyncio
where it waits; one that ends at its first step costs a third of that.
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
    from asyncio.futures import _FINISHED  # type: ignore[attr-defined]
    from asyncio.tasks import (  # type: ignore[attr-defined]
        _current_tasks,
        _enter_task,
        _leave_task,
        _PyTask,
        _register_task,
    )
    from contextvars import copy_context

    class _Task(_PyTask):  # type: ignore[misc]  # 3.11 gets no new features
        """A task that takes its first step when it is told to, and not in the loop's next turn."""

        _num_cancels_requested = 0
        _must_cancel = False
        _fut_waiter = None

        def __init__(
            self, coro: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop, name: str
        ) -> None:
            self._loop = loop
            self._callbacks: list[object] = []
            self._coro: Any = coro
            self._name = name
            self._context = copy_context()

        def take_first_step(self) -> None:
            """Run until the coroutine waits for something, or ends, as most do."""
            try:
                then = _FirstStep(self, self._context.run(self._coro.send, None))
            except StopIteration as end:
                if not self._callbacks and not self._must_cancel:
                    self._state = _FINISHED
                    return
                then = _FirstStep(self, error=end)
            except BaseException as error:  # noqa: BLE001  # raised again in the next lines
                then = _FirstStep(self, error=error)
            _leave_task(self._loop, self)
            try:
                self._go_on(then)
            finally:
                _enter_task(self._loop, self)

        def _go_on(self, then: _FirstStep) -> None:
            """Let asyncio see what came of the first step, and take the others."""
            _register_task(self)
            self._must_cancel = False
            coro, self._coro = self._coro, then
            try:
                self.__step()
            finally:
                self._coro = coro

        def __del__(self) -> None:
            if self._state != _FINISHED or self._exception is not None:
                super().__del__()

    class _FirstStep:
        """What came of a step that was taken; stands for the coroutine while asyncio takes it."""

        def __init__(
            self, task: _Task, waits_for: object = None, error: BaseException | None = None
        ) -> None:
            self._task = task
            self._waits_for = waits_for
            self._error = error
            self._is_cancelled = task._must_cancel  # noqa: SLF001  # by itself, and meanwhile

        def send(self, _nothing: None) -> object:
            self._task._must_cancel = self._is_cancelled  # noqa: SLF001  # as asyncio would see it
            if self._error is not None:
                raise self._error
            return self._waits_for

    def _start_task(
        coro: Coroutine[Any, Any, None], *, loop: asyncio.AbstractEventLoop, name: str
    ) -> asyncio.Task[None]:
        task = _Task(coro, loop, name)
        current = _current_tasks.get(loop)  # which is at work, and goes on afterwards
        if current is not None:
            _leave_task(loop, current)
        _enter_task(loop, task)
        try:
            task.take_first_step()
        finally:
            _leave_task(loop, task)
            if current is not None:
                _enter_task(loop, current)
        return task

    start_task = _start_task
