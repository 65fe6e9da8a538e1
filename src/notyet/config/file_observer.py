"""`FileObserver`: an observer as a file has it; loaded where a file has one."""

from __future__ import annotations

from notyet.core.record import Record
from notyet.core.verdict import OUTCOMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.command import Command
    from notyet.core.gate import Source


class FileObserver(Record, kw_only=True):
    """A command that is told of decisions with the outcomes in `on`, and cannot change them."""

    name: str
    check: Command
    timeout: float = 10.0
    on: tuple[str, ...] = OUTCOMES
    source: Source | None = None
