"""What a stop may tell besides: the tokens that were spent, and work that still runs."""

from __future__ import annotations

from notyet.core.event import kind_of
from notyet.core.record import Record


class Usage(Record, kw_only=True):
    """Tokens spent in this run."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total: int = 0

    def _validate(self) -> None:
        for name, value in self.__dict__.items():
            if not isinstance(value, int):
                raise TypeError(f"usage.{name} is a number of tokens, not {kind_of(value)}")


class BackgroundTask(Record, kw_only=True):
    """Work of the same session that is still running while the agent stops."""

    id: str
    type: str  # "subagent", "workflow", "teammate", "shell", "monitor", ...
    status: str = "running"


def check_parts(usage: object, tasks: tuple[object, ...]) -> None:
    """Refuse what is neither of them in an event. Raises TypeError."""
    if usage is not None and not isinstance(usage, Usage):
        raise TypeError(f"usage is a Usage or None, not {kind_of(usage)}")
    if not all(isinstance(task, BackgroundTask) for task in tasks):
        raise TypeError("background_tasks holds BackgroundTask only")
