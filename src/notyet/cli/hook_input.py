"""What `notyet hook` is given, and what of it cannot be used."""

from __future__ import annotations

from notyet.core.json_text import loads
from notyet.dialects import HOSTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from notyet.core.event import StartEvent, StopEvent

_MOST_BYTES = 32 * 1024 * 1024  # of a payload; real ones have a few kilobytes
_OPTIONS = ("--host", "--config", "--timeout", "--event", "--agent")
_TEXTS = (
    "hook_event_name session_id cwd transcript_path agent_transcript_path last_assistant_message"
    " agent_id agent_type prompt_id turn_id permission_mode model source"
)
# They copied Claude Code's format, and take its `decision: block` at a stop.
LIKE_CLAUDE = frozenset({"vscode", "qwen", "droid", "junie"})
_JSON_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}
_KINDS = dict.fromkeys(_TEXTS.split(), str) | {"stop_hook_active": bool, "background_tasks": list}


class Options:
    """The command line, read leniently: a wrong option must not cost an agent its answer."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.host = ""
        self.config = ""
        self.timeout = 0.0
        self.event = ""  # what a payload is about, whatever it says itself
        self.agent = ""
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

    @property
    def said(self) -> dict[str, str]:
        """What the command line says in the payload's place."""
        said = {"hook_event_name": self.event, "agent_name": self.agent}
        return {name: value for name, value in said.items() if value}

    def _take(self, name: str, value: str) -> None:
        if name in {"--config", "--event", "--agent"}:
            setattr(self, name.removeprefix("--"), value)
        elif name == "--host":
            if value in HOSTS:
                self.host = value
            else:
                self.warnings.append(f"unknown host {value!r}; there is {', '.join(HOSTS)}")
        else:
            try:
                self.timeout = float(value)
            except ValueError:
                self.timeout = 0.0
            if not self.timeout > 0:
                self.timeout = 0.0
                self.warnings.append(f"--timeout is a number of seconds, not {value!r}")


class Unreadable(Exception):  # noqa: N818  # not an error of ours
    """What came is no event; says why."""


def payload_from(content: bytes, said: list[str]) -> dict[str, Any]:
    """Read what a host sent. Raises Unreadable; `said` gets what its sender should know."""
    if len(content) > _MOST_BYTES:
        raise Unreadable(f"the payload is larger than {_MOST_BYTES // 1024 // 1024} MB")
    text = _decoded(content, said)
    if not text.strip():
        raise Unreadable("no event on stdin")
    try:
        payload = loads(text)
    except ValueError as error:
        raise Unreadable(f"the event on stdin is not JSON: {error}") from None
    if not isinstance(payload, dict):
        raise Unreadable(f"the event on stdin is {_kind(payload)}, not an object")
    return payload


def _decoded(content: bytes, said: list[str]) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        said.append(f"the payload is not UTF-8 at byte {error.start}; read as well as can be")
        text = content.decode("utf-8", "replace")
    if text.startswith("\ufeff"):
        said.append("the payload starts with a byte order mark, which was ignored")
        text = text[1:]
    return text


def unusable(payload: Mapping[str, Any], event: StopEvent | StartEvent, host: str) -> list[str]:
    """Say which fields have a type that cannot be used, so that they count as missing."""
    if host == "notyet":  # its fields are the event's own
        wrong = [
            name
            for name, default in event._defaults.items()  # noqa: SLF001  # our own record
            if name != "workspace"  # see below
            and not _is_nothing(payload.get(name), default)
            and getattr(event, name) == default
        ]
    else:
        wrong = [
            name
            for name, kind in _KINDS.items()
            if payload.get(name) is not None and not isinstance(payload[name], kind)
        ]
    return [f"the event's {name} is {_kind(payload[name])}; not used" for name in wrong]


def no_place(payload: Mapping[str, Any], event: StopEvent, host: str) -> str:
    """Say why the files that an event is about cannot be found; to look here would be wrong."""
    from notyet.core.remote import LOCAL, remote_from

    said = payload.get("workspace")
    if host != "notyet" or event.workspace or _is_nothing(said, LOCAL):
        return ""
    why = f"it is {_kind(said)}"
    try:
        if isinstance(said, str):
            remote_from(said)
    except ValueError as error:
        why = str(error)
    return f"the event's workspace cannot be used, so nothing was checked: {why}"


def _kind(value: object) -> str:
    """Return what kind of JSON a value is."""
    return _JSON_KINDS.get(type(value), "null")


def _is_nothing(value: object, default: object) -> bool:
    if isinstance(value, str) and not value.strip():
        return True
    return value is None or value in (default, [])


def is_stop(payload: Mapping[str, Any]) -> bool:
    """Tell whether a payload says, in Claude Code's words, that an agent stops."""
    return payload.get("hook_event_name") in ("Stop", "SubagentStop")
