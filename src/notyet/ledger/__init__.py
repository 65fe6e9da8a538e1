"""Our durable memory: what every stop came to, and how often each agent was sent back."""

from __future__ import annotations

from notyet.core.limits import History
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.ledger.protocol import AnyLedger as AnyLedger  # for annotations


class Begun(Record, kw_only=True):
    """A stop that is being decided; or, with `repeats`, one that another stop answers (B12)."""

    stop: int
    token: bytes = b""  # a stop's number alone may mean another stop, in another file
    history: History = History()
    repeats: int = 0
    overridden: int = 0  # the stop before, if the host let the agent go against it (B11)
    warnings: tuple[str, ...] = ()


# The same stop again, with its flag still false, is a repetition for so many seconds and so many
# times; an agent that says the same thing later has been at work, and must be counted (B12).
REPEATED_WITHIN = 10.0
REPEATED_AT_MOST = 3
