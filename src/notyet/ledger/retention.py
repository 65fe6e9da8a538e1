"""How much the ledger keeps. Loaded on the hook's way, so it is light."""

from __future__ import annotations

from notyet.core.record import Record

_DAY = 86_400.0
_MB = 1_000_000


class Retention(Record, kw_only=True):
    """How long stops and tasks are kept, and how large the ledger and its logs may become."""

    keep: float = 90 * _DAY  # seconds
    max_size: int = 256 * _MB  # bytes of the ledger that are in use
    logs: int = 64 * _MB  # bytes of all logs
