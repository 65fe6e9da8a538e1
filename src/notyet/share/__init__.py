"""A team's stops: copying what this machine's ledger has to PostgreSQL and OpenTelemetry.

A hook only starts `notyet ship`, at most once a minute; nothing of this is loaded in a stop.
"""

from __future__ import annotations

from notyet.errors import NotyetError


class ShareError(NotyetError):
    """Stops cannot be copied to a place; the message says why, and what to do."""

    def __init__(self, place: str, detail: str) -> None:
        super().__init__(f"{place}: {detail}")


class Unreachable(ShareError):  # noqa: N818  # named after what happened
    """A place cannot be reached, or did not answer: another try may help."""
