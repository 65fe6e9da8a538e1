"""`Handle`: how whoever started a task waits for its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from typing import Any

    from notyet.core.task import Result

    Waiting = Callable[[], Coroutine[Any, Any, Result]]


class Handle:
    """A task that was started. `await handle` gives its result."""

    def __init__(self, task_id: str, wait: Waiting) -> None:
        self.task_id = task_id
        self._wait = wait

    async def result(self) -> Result:
        """Wait for the result; taking it is what acknowledges it, where nobody else delivers."""
        return await self._wait()

    def __await__(self) -> Generator[Any, None, Result]:
        return self._wait().__await__()

    def __repr__(self) -> str:
        return f"Handle({self.task_id!r})"
