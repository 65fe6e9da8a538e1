"""The durable memory: the outcome of every stop, and how often each agent was sent back."""

from __future__ import annotations

from notyet.core.limits import History
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from notyet.ledger.ledger import Ledger
    from notyet.ledger.memory import MemoryLedger

    AnyLedger: TypeAlias = Ledger | MemoryLedger


class Begun(Record, kw_only=True):
    """A stop that is being decided; with `repeats`, one that an equal stop answers (B12)."""

    stop: int
    token: bytes = b""  # the number may be another stop's, if the file was replaced
    history: History = History()
    repeats: int = 0
    overridden: int = 0  # the stop before, if the agent did not come again (B11)
    warnings: tuple[str, ...] = ()


# An equal stop with `stop_hook_active` still false is a repetition for this many seconds and times;
# later, the agent has worked in between, and the stop counts (B12).
REPEATED_WITHIN = 10.0
REPEATED_AT_MOST = 3
REPEATED = ("blocked", "capped", "stuck")  # outcomes; a pass is never inherited
