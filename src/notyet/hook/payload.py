"""What `notyet hook` is given: its command line, and what the host sent."""

from __future__ import annotations

from time import monotonic

from notyet.hook.process import OutOfTime, host_waits
from notyet.hosts import HOSTS, LEAST_TIMEOUT, host_named
from notyet.light import LOCAL, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from notyet.core.event import StartEvent, StopEvent
    from notyet.hosts.host import Host
    from notyet.ledger.ledger import Ledger

_MOST_BYTES = 32 * 1024 * 1024  # of a payload; real ones have a few kilobytes
_OPTIONS = ("--host", "--config", "--timeout", "--event", "--agent", "--via")
_KINDS = {"stop_hook_active": bool, "background_tasks": list}  # of fields that are no texts
_JSON_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}


class Options:
    """The command line, read leniently: a wrong option must not cost an agent its answer."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.host = ""
        self.config = ""
        self.timeout = 0.0
        self.event = ""  # what a payload is about, whatever it says itself
        self.agent = ""
        self.via = ""  # "plugin": the line is that of a plugin, and settings come first (B12)
        self.warnings: list[str] = []
        words = list(argv)
        while words:
            name, has_value, value = words.pop(0).partition("=")
            if name not in _OPTIONS:
                self.warnings.append(f"unknown option {name!r}; see notyet hook --help")
                continue
            if not has_value and not words:
                self.warnings.append(f"{name} needs a value")
                continue
            self._take(name, value if has_value else words.pop(0))

    def fields_for(self, host: Host) -> dict[str, str]:
        """Return what the command line says in the payload's place, by the host's field names."""
        given = {"event": self.event, "agent_name": self.agent}
        return {
            name: given[of] for of in given if given[of] for name in host.fields.get(of, ())[:1]
        }

    def _take(self, name: str, value: str) -> None:
        if name in {"--config", "--event", "--agent", "--via"}:
            setattr(self, name.removeprefix("--"), value)
        elif name == "--host":
            if value in HOSTS:
                self.host = value
            else:
                self.warnings.append(f"unknown host {value!r}; choose one of {', '.join(HOSTS)}")
        else:
            try:
                self.timeout = float(value)
            except ValueError:
                self.timeout = 0.0
            if not self.timeout > 0:
                self.timeout = 0.0
                self.warnings.append(f"--timeout is a number of seconds, not {value!r}")


class Unreadable(Exception):  # noqa: N818  # not an error of ours
    """The payload is no event; the message says why."""


class HostCall:
    """One call by a host: its options, when it came, and the payload, which is read once."""

    def __init__(
        self, options: Options, environ: Mapping[str, str], read: Callable[[], bytes]
    ) -> None:
        self.options = options
        self.environ = environ
        self.started = monotonic()
        self.host = options.host  # or, once it is read, who wrote the payload
        self.warnings: list[str] = []  # for stderr, where hosts show or log it
        self.is_out_of_time = False
        self.ledger: Ledger | None = None  # once it is opened
        self.shares = False  # whether the user's stops are copied to a team's database
        self._started_in: dict[str, str] = {}  # by session
        self._read = read
        self._payload: dict[str, Any] | Exception | OutOfTime | None = None

    def payload(self) -> dict[str, Any]:
        """Return what the host sent. Raises Unreadable, or OutOfTime, each time.

        An error of reading is raised again too: stdin cannot be read twice.
        """
        if self._payload is None:
            host_waits(self.patience)
            try:
                self._payload = payload_from(self._read(), self.warnings)
            except (Unreadable, OSError, ValueError, RecursionError, OutOfTime) as error:
                self._payload = error
        if isinstance(self._payload, dict):
            return self._payload
        raise self._payload

    @property
    def known(self) -> dict[str, Any]:
        """What was read of the host so far."""
        return self._payload if isinstance(self._payload, dict) else {}

    def started_in(self, host: Host, session: object) -> str:
        """Return the folder that a session was started in; empty if unknown.

        The host says it, or else our note of that session.
        """
        named = self.environ.get(host.project_variable, "")
        if named or not isinstance(session, str):
            return named
        if session not in self._started_in:
            from notyet.config.sessions import started_in

            self._started_in[session] = started_in(self.environ, host.name, session)
        return self._started_in[session]

    def is_from(self, host: str) -> None:
        """Set which host calls; it may wait for longer than others."""
        self.host = host
        host_waits(self.patience)

    def waits(self, seconds: float) -> None:
        """Set how long the host waits, where its settings say so."""
        self.options.timeout = seconds
        host_waits(seconds)

    @property
    def patience(self) -> float:
        """How many seconds the host waits; until we know who it is, as the least patient does."""
        if self.options.timeout or self.host not in HOSTS:
            return self.options.timeout or LEAST_TIMEOUT
        return host_named(self.host).timeout


def payload_from(content: bytes, warnings: list[str]) -> dict[str, Any]:
    """Read what a host sent. Raises Unreadable; `warnings` gets what its sender should know."""
    if len(content) > _MOST_BYTES:
        raise Unreadable(f"the payload is larger than {_MOST_BYTES // 1024 // 1024} MB")
    text = _decoded(content, warnings)
    if not text.strip():
        raise Unreadable("no event on stdin")
    try:
        payload = loads(text)
    except ValueError as error:
        raise Unreadable(f"the event on stdin is not JSON: {error}") from None
    if not isinstance(payload, dict):
        raise Unreadable(f"the event on stdin is {kind_of(payload)}, not an object")
    return payload


def _decoded(content: bytes, warnings: list[str]) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        warnings.append(
            f"the payload is not UTF-8 at byte {error.start}; undecodable bytes were replaced"
        )
        text = content.decode("utf-8", "replace")
    if text.startswith("\ufeff"):
        warnings.append("the payload starts with a byte order mark, which was ignored")
        text = text[1:]
    return text


def kind_of(value: object) -> str:
    """Return what kind of JSON a value is."""
    return _JSON_KINDS.get(type(value), "null")


def of_wrong_kind(payload: Mapping[str, Any], host: Host) -> list[str]:
    """Return the fields of a type that cannot be used, which count as missing."""
    return [
        name
        for field, names in host.fields.items()
        for name in names
        if payload.get(name) is not None and not isinstance(payload[name], _KINDS.get(field, str))
    ]


def unusable(payload: Mapping[str, Any], event: StopEvent | StartEvent, host: Host) -> list[str]:
    """Return which fields have a type that cannot be used, so that they count as missing."""
    if host.name == "notyet":  # its fields are the event's own
        wrong = [
            name
            for name, default in event._defaults.items()  # noqa: SLF001  # our own record
            if name != "workspace"  # see `no_workspace`
            and not _is_nothing(payload.get(name), default)
            and getattr(event, name) == default
        ]
    else:
        wrong = of_wrong_kind(payload, host)
    return [f"the event's {name} is {kind_of(payload[name])}; not used" for name in wrong]


def no_workspace(payload: Mapping[str, Any], event: StopEvent) -> str:
    """Return why an event's workspace cannot be used; empty where it can.

    To look here for what is on another machine would be wrong.
    """
    from notyet.core.remote import remote_from

    value = payload.get("workspace")
    if event.workspace or _is_nothing(value, LOCAL):
        return ""
    why = f"it is {kind_of(value)}"
    try:
        if isinstance(value, str):
            remote_from(value)
    except ValueError as error:
        why = str(error)
    return f"the event's workspace cannot be used, so nothing was checked: {why}"


def _is_nothing(value: object, default: object) -> bool:
    if isinstance(value, str) and not value.strip():
        return True
    return value is None or value in (default, [])
