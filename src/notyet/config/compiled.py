"""Settings from their compiled form, which is plain JSON: all that a hook reads, so it is light."""

from __future__ import annotations

from notyet.config.settings import Settings
from notyet.config.unchanged import FORMAT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from notyet.config.file_observer import FileObserver
    from notyet.core.gate import Gate


def thaw(frozen: dict[str, Any]) -> Settings:
    """Return the settings that were frozen. Raises ValueError for what is none of ours."""
    if not isinstance(frozen, dict) or frozen.get("format") != FORMAT:
        raise ValueError(f"it is not compiled configuration of format {FORMAT}")
    try:
        return _settings(**frozen)
    except (TypeError, KeyError, AttributeError) as error:
        raise _damaged(error) from None


def thaw_gates(frozen: Iterable[dict[str, Any]]) -> tuple[Gate, ...]:
    """Return gates that were frozen. Raises ValueError for what is none of ours."""
    try:
        return tuple([_gate(**gate) for gate in frozen])
    except (TypeError, KeyError, AttributeError) as error:
        raise _damaged(error) from None


def _damaged(error: Exception) -> ValueError:
    return ValueError(f"it is damaged compiled configuration: {error}")


def _settings(
    *,
    format: int,  # noqa: A002, ARG001  # its key; seen by `thaw`
    gates: list[dict[str, Any]] | tuple[()] = (),
    observers: list[dict[str, Any]] | tuple[()] = (),
    read_hosts: list[str] | tuple[()] = (),
    **rest: Any,
) -> Settings:
    return Settings(
        gates=thaw_gates(gates),
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
    from notyet.core.command import Command
    from notyet.core.gate import Gate, Match, Source

    options = check.get("options", {})
    if "when" in options or "paths" in options:
        # An earlier version kept these two with the command, and did not use them.
        options = dict(options)
        for moved in ("when", "paths"):
            if moved in options:
                rest.setdefault(moved, options.pop(moved))
        check = check | {"options": options}
    if match:  # else it is as most are
        rest["match"] = Match(**match)
    return Gate(check=Command(**check), source=Source(**source) if source else None, **rest)


def _observer(
    *,
    check: dict[str, Any],
    on: list[str] | None = None,
    source: dict[str, Any] | None = None,
    **rest: Any,
) -> FileObserver:
    from notyet.config.file_observer import FileObserver
    from notyet.core.command import Command
    from notyet.core.gate import Source

    return FileObserver(
        check=Command(**check),
        source=Source(**source) if source else None,
        **(rest if on is None else rest | {"on": tuple(on)}),
    )
