"""What handlers of plugin systems (OpenClaw, Neovate) get: records readable in two spellings.

A `session_start` or `subagent_start` handler gets `(Start, Context)` and may return words for the
agent (C8, F13).
"""

from __future__ import annotations

from notyet.core.record import Record
from notyet.core.text import clean
from notyet.core.verdict import Allow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, TypeVar

    from notyet.core.event import Scope, StartEvent

    V = TypeVar("V", bound="View")

# Names of start handlers, and the scope of each.
STARTING: dict[str, Scope] = {"session_start": "agent", "subagent_start": "subagent"}
DIALECT = "openclaw"  # of start handlers
_KEY = "additional_context"
_camel: dict[str, str] = {}  # the names of fields, by their names in snake case


class View(Record, dict, kw_only=True):  # type: ignore[misc, type-arg]  # hashed as a record
    """A record whose fields can also be read by their camel-case names.

    As a dict it has the fields that have a value, so that `json.dumps(event)` works as
    `JSON.stringify(event)` does.
    """

    def _validate(self) -> None:
        self.update(_by_camel_case(self.__dict__))

    def __setitem__(self, key: str, value: object) -> None:
        raise TypeError(f"{type(self).__name__} is read-only")

    def __delitem__(self, key: str) -> None:
        raise TypeError(f"{type(self).__name__} is read-only")

    def __copy__(self) -> Self:
        return view(type(self), self.__dict__.copy())

    def __replace__(self, /, **changes: Any) -> Self:
        return type(self)(**{**self.__dict__, **changes})

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__[snake(name)]
        except KeyError:
            known = ", ".join(self._fields)
            kind = type(self).__name__
            raise AttributeError(f"{kind} has no field {name!r}; it has {known}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that have a value, by camel-case names, for `json.dumps`."""
        return {
            name: value.to_dict() if isinstance(value, View) else value
            for name, value in self.items()
        }


def view(kind: type[V], values: dict[str, Any]) -> V:
    """Return a view of these values, unchecked; they are all of its fields."""
    made: V = dict.__new__(kind)
    object.__setattr__(made, "__dict__", values)
    made.update(_by_camel_case(values))
    return made


def _by_camel_case(values: dict[str, Any]) -> dict[str, Any]:
    return {
        _camel.get(name) or camel(name): value
        for name, value in values.items()
        if value is not None
    }


def snake(name: str) -> str:
    """`lastAssistantMessage` -> `last_assistant_message`."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def camel(name: str) -> str:
    """`last_assistant_message` -> `lastAssistantMessage`."""
    first, *rest = name.split("_")
    _camel[name] = first + "".join(word.capitalize() for word in rest)
    return _camel[name]


class Start(View, kw_only=True):
    """The agent that starts."""

    session_id: str
    agent_id: str | None
    agent_type: str | None
    source: str | None  # of a session: "startup", "resume", ...
    model: str | None
    transcript_path: str | None


class Context(View, kw_only=True):
    """Where it happens."""

    host: str
    session_id: str
    cwd: str


def write_start(event: StartEvent) -> tuple[Start, Context]:
    """Return the arguments of a handler."""
    is_main = event.scope == "agent"
    start = Start(
        session_id=event.session_id,
        agent_id=event.agent_id,
        agent_type=event.agent_type,
        source=(event.source or "startup") if is_main else None,
        model=event.model,
        transcript_path=event.transcript_path,
    )
    return start, Context(host=event.host, session_id=event.session_id, cwd=event.cwd)


def read_return(returned: object) -> tuple[Allow, str]:
    """Return a handler's words as a note, and a warning for its author."""
    if isinstance(returned, dict):
        fields = {snake(str(key)): value for key, value in returned.items()}
        returned = fields.get(_KEY)
        if returned is not None and not isinstance(returned, str):
            return Allow(), f"{_KEY} is text, not {type(returned).__name__}; ignored"
    return Allow(note=clean(returned).strip() if isinstance(returned, str) else ""), ""
