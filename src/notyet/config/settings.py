"""Settings of one file, the `Setup` of a place, and their compiled form."""

from __future__ import annotations

from notyet.config.records import FORMAT
from notyet.core.record import Record, plain
from notyet.core.verdict import OUTCOMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from notyet.config.document import Mistake
    from notyet.config.files import ConfigFile
    from notyet.core.gate import Command, Gate, Source, Starter


class FileObserver(Record, kw_only=True):
    """A command that gets decisions with the outcomes in `on`, and cannot change them."""

    name: str
    check: Command
    timeout: float = 10.0
    on: tuple[str, ...] = OUTCOMES
    source: Source | None = None


class Settings(Record, kw_only=True):
    """One file's gates and settings, without defaults, so that files can be layered."""

    file: str
    gates: tuple[Gate, ...] = ()
    starters: tuple[Starter, ...] = ()  # not in the compiled form: only a supervisor runs them
    limits: Mapping[str, Any] = {}
    observers: tuple[FileObserver, ...] = ()
    ledger: Mapping[str, Any] = {}  # how much is kept; ignored but in the user's own file
    start_tell: bool | None = None
    read_hosts: tuple[str, ...] = ()
    # Where its gates run, and whose files are read: ssh://host/path, or "local" to override what
    # another file says.
    workspace: str = ""
    openclaw: str = ""  # the path of a file that sets `max_blocks` (J9)
    reply: Mapping[str, str] = {}  # by host
    notifications: Mapping[str, Any] = {}  # of a `.conclaude.yaml`
    mistakes: tuple[Mistake, ...] = ()
    warnings: tuple[Mistake, ...] = ()  # about what is right for its host, and not run by us


class Setup(Record, kw_only=True):
    """Everything that is in force for an agent, and what its user should know about it."""

    gates: tuple[Gate, ...] = ()
    starters: tuple[Starter, ...] = ()  # only where an agent is supervised
    limits: Mapping[str, Any] = {}
    limit_files: Mapping[str, str] = {}  # the file that sets each of them
    observers: tuple[FileObserver, ...] = ()
    ledger: Mapping[str, Any] = {}  # how much the user wants kept
    notifications: tuple[Mapping[str, Any], ...] = ()
    reply: Mapping[str, str] = {}
    start_tell: bool = False
    workspace: str = ""  # where the project's files are, if elsewhere: ssh://host/path
    named_by: str = ""  # the file here that names it
    unreached: str = ""  # why its files could not be read
    untrusted: tuple[ConfigFile, ...] = ()  # nothing of them applies
    unreadable: tuple[str, ...] = ()  # neither the file nor its record can be read
    # Trusted files of a machine that was not connected to, or did not answer. What was trusted
    # of them stays in force.
    unseen: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def distrust(self) -> list[str]:
        """A message for each untrusted file."""
        if not self.untrusted:
            return []
        from notyet.core.text import visible

        return [
            f"{visible(file.path)} is not trusted; run: {visible(file.command)}"
            for file in self.untrusted
        ]


def freeze(settings: Settings) -> dict[str, Any]:
    """Return settings as plain JSON types, for a record. Raises ValueError.

    Mistakes and warnings are left out, and starters: a supervisor compiles them from the trusted
    text, so that hooks need not read them.
    """
    from notyet.core.gate import Command

    frozen = _said(settings)
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
    """Return settings from their compiled form. Raises ValueError."""
    if not isinstance(frozen, dict) or frozen.get("format") != FORMAT:
        raise ValueError(f"it is not compiled configuration of format {FORMAT}")
    try:
        return _settings(**frozen)
    except (TypeError, KeyError, AttributeError) as error:
        raise _damaged(error) from None


def thaw_gates(frozen: Iterable[dict[str, Any]]) -> tuple[Gate, ...]:
    """Return gates from their compiled form. Raises ValueError."""
    try:
        return tuple([_gate(**gate) for gate in frozen])
    except (TypeError, KeyError, AttributeError) as error:
        raise _damaged(error) from None


def _damaged(error: Exception) -> ValueError:
    return ValueError(f"it is damaged compiled configuration: {error}")


def _settings(
    *,
    format: int,  # noqa: A002, ARG001  # `thaw` checks it
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
    from notyet.core.gate import Command, Gate, Match, Source

    options = check.get("options", {})
    if "when" in options or "paths" in options:
        # Records of earlier versions have these two among the options of the command.
        options = dict(options)
        for moved in ("when", "paths"):
            if moved in options:
                rest.setdefault(moved, options.pop(moved))
        check = check | {"options": options}
    if match:
        rest["match"] = Match(**match)
    return Gate(check=Command(**check), source=Source(**source) if source else None, **rest)


def _observer(
    *,
    check: dict[str, Any],
    on: list[str] | None = None,
    source: dict[str, Any] | None = None,
    **rest: Any,
) -> FileObserver:
    from notyet.core.gate import Command, Source

    return FileObserver(
        check=Command(**check),
        source=Source(**source) if source else None,
        **(rest if on is None else rest | {"on": tuple(on)}),
    )
