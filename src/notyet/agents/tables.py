"""Reading the tables of a script, so that every mistake is said with its place."""

from __future__ import annotations

from notyet.core.text import bounded
from notyet.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECONDS = (int, float)
_MOST = 2**53  # above it, numbers are mistakes
_LONGEST_SHOWN = 200


class Table:
    """A table of the file: each key is taken once, and what is left over is a mistake."""

    def __init__(self, content: object, where: str) -> None:
        if not isinstance(content, dict):
            raise Refused(f"{where}: it is a table, not {type(content).__name__}")
        self.left = dict(content)
        self.where = where
        self._known: list[str] = []

    def get(self, key: str, kinds: tuple[type, ...], default: Any) -> Any:
        """Take a value of one of these kinds."""
        self._known.append(key)
        if key not in self.left:
            return default
        value = self.left.pop(key)
        is_odd = isinstance(value, bool) and bool not in kinds
        is_odd = is_odd or (isinstance(value, SECONDS) and not 0 <= value < _MOST)
        if not isinstance(value, kinds) or is_odd:
            wanted = " or ".join(_WORDS[kind] for kind in kinds)
            raise Refused(f"{self.where}: {key} is {wanted}, not {_shown(value)}")
        return value

    def one_of(self, key: str, words: tuple[str, ...], default: str) -> Any:
        """Take one of a few words."""
        value = self.get(key, (str,), default)
        if value not in words:
            raise Refused(f"{self.where}: {key} is one of {', '.join(words)}, not {value!r}")
        return value

    def close(self) -> None:
        """Refuse what nobody asked for."""
        if self.left:
            from notyet.config.mistakes import did_you_mean

            key = min(self.left)
            hint = did_you_mean(key, self._known) or f"it knows {', '.join(self._known)}"
            raise Refused(f"{self.where}: {key} is unknown; {hint}")


_WORDS = {
    str: "text",
    int: "a whole number from 0 on",
    float: "a number of seconds",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


def _shown(value: object) -> str:
    try:
        return bounded(repr(value), _LONGEST_SHOWN)
    except (ValueError, RecursionError):  # a number of thousands of digits; a deep table
        return f"this {type(value).__name__}"
