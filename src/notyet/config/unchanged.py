"""What a file compiled to that is as it was trusted: so it is at nearly every stop.

A record is JSON on several lines, so that only what a stop needs of it is read: whose it is; the
text that was trusted; its settings; and then its gates, in runs of neighbours that are for the
same agents.
"""

from __future__ import annotations

from notyet.config.places import record_path
from notyet.config.tree import text_of
from notyet.core.json_text import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.config.files import ConfigFile
    from notyet.core.event import StopEvent

MOST_RECORD = 64 * 1024 * 1024  # bytes
_LEAST_LINES = 4  # whose it is, its text, its settings, the end
GATES, NEXT = ', "gates": [', ", "  # what comes before the first run, and before every other


class Unchanged:
    """A record of a file that is as it was trusted; its gates are not read yet."""

    def __init__(self, settings: dict[str, Any], runs: list[Any], lines: list[str]) -> None:
        self.settings = settings
        self._runs = runs
        self._lines = lines

    def gates(self, event: StopEvent | None = None) -> list[dict[str, Any]]:
        """Return the gates as they were written down; only those that can be for an event.

        Raises ValueError.
        """
        found = []
        for scopes, line in zip(self._runs, self._lines, strict=True):
            if event is None or event.scope in scopes:
                found += loads(f"[{line.removeprefix(GATES).removeprefix(NEXT)}]")
        return found


def unchanged(state: str, file: ConfigFile) -> Unchanged | None:
    """Return the record about a file; None where that is not in order, or more is to be said."""
    if not state or file.is_gone:
        return None
    try:
        text = file.tree.text_of(file.path)
        lines = text_of(record_path(state, file.path), MOST_RECORD).split("\n")
        if len(lines) < _LEAST_LINES or lines[1] != dumps(text):
            return None
        about = loads(lines[0] + "0}")
        # One that was the user's own once, and is not now: nobody was asked about it.
        is_trusted = isinstance(about["at"], int | float) and (about["at"] or file.own)
        if about["path"] != file.path or not is_trusted:
            return None
        settings = loads("{" + lines[2].removeprefix(NEXT) + "}}")["compiled"]
        return Unchanged(settings, about["runs"], lines[3:-1])
    except (OSError, ValueError, KeyError, TypeError):
        return None
