"""What a file compiled to that is as it was trusted: so it is at nearly every stop.

A record is JSON on several lines, so that only what a stop needs of it is read: whose it is; the
text that was trusted; its settings; and then its gates, in runs of neighbours that are for the
same agents.
"""

from __future__ import annotations

from notyet.config.find import record_path, state_folder, text_of
from notyet.light import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import StopEvent

FORMAT = 1  # of compiled settings; to be raised with every change that an older reader misreads
_QUIET = frozenset({"format", "file", "limits", "reply", "start_tell"})  # without gates, no news
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
        if event is not None and event.agent_id:  # one without is told that patterns miss it
            found = [gate for gate in found if "match" not in gate or _fits(gate["match"], event)]
        return found

    def is_silent(self, scope: str) -> bool:
        """Tell whether this says nothing that counts when such an agent stops."""
        is_for = any(scope in scopes for scopes in self._runs)
        return not is_for and self.settings["format"] == FORMAT and _QUIET.issuperset(self.settings)


def _fits(match: dict[str, Any], event: StopEvent) -> bool:
    """Tell whether a gate's patterns may mean the subagent of an event (D2)."""
    if event.scope != "subagent" or "agents" not in match:
        return True
    from notyet.core.matcher import fits

    return bool(fits(match.get("kind", "glob"), tuple(match["agents"]), event))


def unchanged(state: str, path: str, text: str, *, own: bool = False) -> Unchanged | None:
    """Return the record about a file with this text; None where it is of another, or damaged.

    None too where more is to be said of it: the user's own file was looked at by nobody, so it
    must be `own` still.
    """
    if not state:
        return None
    try:
        lines = text_of(record_path(state, path), MOST_RECORD).split("\n")
        if len(lines) < _LEAST_LINES or lines[1] != dumps(text):
            return None
        about = loads(lines[0] + "0}")
        is_trusted = isinstance(about["at"], int | float) and (about["at"] or own)
        is_whole = len(lines) == _LEAST_LINES + len(about["runs"])
        if about["path"] != path or not is_trusted or not is_whole:
            return None
        settings = loads("{" + lines[2].removeprefix(NEXT) + "}}")["compiled"]
        return Unchanged(settings, about["runs"], lines[3:-1])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def are_silent(paths: list[str], scope: str, environ: Mapping[str, str]) -> bool:
    """Tell whether files of projects are as they were trusted, and say nothing for such an agent.

    `scope` is "agent" or "subagent", as in a StopEvent.
    """
    state = state_folder(environ)
    try:
        found = [unchanged(state, path, text_of(path)) for path in paths]
        return all(one is not None and one.is_silent(scope) for one in found)
    except (OSError, ValueError, KeyError, TypeError):
        return False
