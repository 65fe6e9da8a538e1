"""JSON for what an embedding program put into an event, whatever that is."""

from __future__ import annotations

import json

from notyet.core.record import plain
from notyet.core.text import bounded
from notyet.light import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def json_of_foreign(value: Any, longest: int) -> str:
    """Return JSON; what has none is described, in at most so many characters."""

    def described(value: object) -> str:
        return _described(value, longest)

    try:
        return json.dumps(plain(value), default=described, skipkeys=True)
    except (TypeError, ValueError, RecursionError):
        return dumps(described(value))


def _described(value: object, longest: int) -> str:
    try:
        return bounded(repr(value), longest)
    except Exception:  # noqa: BLE001  # a foreign object whose own __repr__ raises
        return f"<{type(value).__name__}>"
