"""Events as plugins written for other hosts know them: the same field in snake and camel case."""

from __future__ import annotations

from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class View(Record, kw_only=True):
    """A record whose fields can also be read by the camel-case names of the host's documents."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__[snake(name)]
        except KeyError:
            known = ", ".join(self._fields)
            kind = type(self).__name__
            raise AttributeError(f"{kind} has no field {name!r}; it has {known}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are known, under camel-case names, ready for `json.dumps`."""
        return {
            camel(name): value.to_dict() if isinstance(value, View) else value
            for name in self._fields
            if (value := self.__dict__[name]) is not None
        }


def snake(name: str) -> str:
    """`lastAssistantMessage` -> `last_assistant_message`."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def camel(name: str) -> str:
    """`last_assistant_message` -> `lastAssistantMessage`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
