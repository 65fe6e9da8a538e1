"""Settings as plain JSON types; `notyet.config.compiled` reads them back."""

from __future__ import annotations

from notyet.config.unchanged import FORMAT
from notyet.core.command import Command
from notyet.core.record import Record, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.config.settings import Settings


def freeze(settings: Settings) -> dict[str, Any]:
    """Return settings as plain JSON types; mistakes are left out. Raises ValueError."""
    frozen = _said(settings)
    # What was said when the file was read; and starters, which no hook asks for: a supervisor
    # reads them from the trusted text, so that hooks need not carry them.
    for said in ("mistakes", "warnings", "starters"):
        frozen.pop(said, None)
    for gate in settings.gates:
        if not isinstance(gate.check, Command):
            raise ValueError(f"gate {gate.name} calls a function, which no file can hold")  # noqa: TRY004  # as documented
    return {"format": FORMAT} | frozen


def _said(record: Record) -> dict[str, Any]:
    """Return the fields that are not at their defaults, as plain types."""
    values, defaults = record.__dict__, record._defaults  # noqa: SLF001  # our own
    return {
        name: _plain(values[name])
        for name in record._fields
        if name not in defaults or defaults[name] != values[name]
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return _said(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return dict(value) if hasattr(value, "items") else plain(value)
