"""Settings as plain JSON and back. The hook reads this form only, so `thaw` is light and short."""

from __future__ import annotations

from notyet.config.settings import FileObserver, Settings
from notyet.core.command import Command
from notyet.core.gate import Gate, Match, Source
from notyet.core.record import Record, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = 1  # to be raised with every change that an older `thaw` would misread


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


def thaw(frozen: dict[str, Any]) -> Settings:
    """Return the settings that were frozen. Raises ValueError for what is none of ours."""
    if not isinstance(frozen, dict) or frozen.get("format") != FORMAT:
        raise ValueError(f"it is not compiled configuration of format {FORMAT}")
    try:
        return _settings(**frozen)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"it is damaged compiled configuration: {error}") from None


def _settings(
    *,
    format: int,  # noqa: A002, ARG001  # its key; seen by `thaw`
    gates: list[dict[str, Any]] | tuple[()] = (),
    observers: list[dict[str, Any]] | tuple[()] = (),
    read_hosts: list[str] | tuple[()] = (),
    **rest: Any,
) -> Settings:
    return Settings(
        gates=tuple([_gate(**gate) for gate in gates]),
        observers=tuple([_observer(**observer) for observer in observers]),
        read_hosts=tuple(read_hosts),
        **rest,
    )


def _gate(
    *,
    check: dict[str, Any],
    match: dict[str, Any] | None = None,
    source: dict[str, Any] | None = None,
    **rest: Any,
) -> Gate:
    # An earlier version kept these two with the command, and did not use them.
    options = dict(check.get("options", {}))
    for moved in ("when", "paths"):
        if moved in options:
            rest.setdefault(moved, options.pop(moved))
    return Gate(
        check=Command(**check | {"options": options}),
        match=Match(**match) if match else Match(),
        source=Source(**source) if source else None,
        **rest,
    )


def _observer(
    *,
    check: dict[str, Any],
    on: list[str] | None = None,
    source: dict[str, Any] | None = None,
    **rest: Any,
) -> FileObserver:
    return FileObserver(
        check=Command(**check),
        source=Source(**source) if source else None,
        **(rest if on is None else rest | {"on": tuple(on)}),
    )
