"""Events as the ledger stored them: bounded, so that what was huge is text, or missing."""

from __future__ import annotations

from notyet.core.event import BackgroundTask, StopEvent, Usage
from notyet.core.json_text import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def event_of(text: str) -> StopEvent:
    """Read an event; what was cut short, or comes from another version, is left out."""
    try:
        known = loads(text)
    except ValueError:  # somebody wrote into the file; one odd row must not hide the others
        known = None
    if not isinstance(known, dict):
        return StopEvent()
    fields = {name: _field(name, value) for name, value in known.items() if name in _NAMES}
    try:
        return StopEvent(**fields)
    except (TypeError, ValueError):
        return StopEvent(**{name: value for name, value in fields.items() if _fits(name, value)})


_NAMES = frozenset(StopEvent._fields)


def _fits(name: str, value: Any) -> bool:
    try:
        StopEvent(**{name: value})
    except (TypeError, ValueError):
        return False
    return True


def _field(name: str, value: Any) -> Any:
    if name == "usage" and isinstance(value, dict):
        numbers = {key: value.get(key) for key in Usage._fields}
        return Usage(**{key: number for key, number in numbers.items() if isinstance(number, int)})
    if name == "background_tasks" and isinstance(value, list):
        return tuple(_background_task(task) for task in value if isinstance(task, dict))
    return value


def _background_task(known: dict[str, Any]) -> BackgroundTask:
    return BackgroundTask(**{key: str(known.get(key, "")) for key in BackgroundTask._fields})
