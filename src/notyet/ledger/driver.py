"""SQLite without the `sqlite3` package, which brings `datetime` and its adapters.

Only the C module behind it is needed here, and a hook starts anew at every stop.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import Any

__all__ = ["sqlite3"]


def _load() -> Any:
    """Load the C module; it wants `functools.lru_cache` for its statements, and nothing more.

    `functools` and what it imports cost a quarter of a bare interpreter. In a process that has
    loaded hardly anything, `_sqlite3` is given the same cache without the rest.
    """
    if "functools" in sys.modules or "threading" in sys.modules:
        import _sqlite3

        return _sqlite3
    from _functools import (  # type: ignore[import-not-found]  # it has no stubs
        _lru_cache_wrapper,
    )

    def lru_cache(size: int) -> Callable[[Callable[..., Any]], Any]:
        return lambda call: _lru_cache_wrapper(call, size, False, tuple)

    functools = type(sys)("functools")
    functools.lru_cache = lru_cache  # type: ignore[attr-defined]
    sys.modules["functools"] = functools  # for the next line only
    try:
        import _sqlite3
    finally:
        del sys.modules["functools"]
    return _sqlite3


if not TYPE_CHECKING:
    try:
        sqlite3 = _load()
    except ImportError:  # an unusual interpreter
        import sqlite3
