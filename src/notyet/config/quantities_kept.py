"""Shapes of how much is kept: days, and bytes."""

from __future__ import annotations

import re

from notyet.config.scalars import BROKEN, Shape, name_of, said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.config.document import Path
    from notyet.config.scalars import Found, Schema

_SPAN = r"([0-9]{1,6})(h|d|w)"
_SECONDS = {"h": 3_600.0, "d": 86_400.0, "w": 7 * 86_400.0}
_SIZE = r"([0-9]{1,9})(kB|KB|MB|GB)"
_BYTES = {"kB": 1_000, "KB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}


class Span(Shape, kw_only=True):
    """A long time span: text such as "90d". Cleaned, it is seconds."""

    most: int = 36_500  # days

    def takes(self, value: object) -> bool:
        return isinstance(value, str)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        match = re.fullmatch(_SPAN, value) if isinstance(value, str) else None
        seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
        if not 0 < seconds <= self.most * _SECONDS["d"]:
            message = f"{name_of(path)} is a time span, not {said(value)}"
            found.append((path, message, 'write it like "90d", "12w" or "36h"'))
            return BROKEN
        return seconds

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^{_SPAN}$"}

    def words(self) -> str:
        return 'text like "90d"'


class Size(Shape, kw_only=True):
    """A size: a number of bytes, or text such as "256MB". Cleaned, it is bytes."""

    least: int = 0
    most: int = 1_000_000_000_000

    def takes(self, value: object) -> bool:
        return isinstance(value, int | str) and not isinstance(value, bool)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        size = value if self.takes(value) else None
        if isinstance(value, str):
            match = re.fullmatch(_SIZE, value)
            size = int(match[1]) * _BYTES[match[2]] if match else None
        if size is None:
            message = f"{name_of(path)} is a size, not {said(value)}"
            found.append((path, message, 'write it like "256MB", "1GB", or in bytes'))
            return BROKEN
        if not self.least <= size <= self.most:
            limits = f"from {self.least} to {self.most} bytes"
            found.append((path, f"{name_of(path)} is {limits}, not {said(value)}", ""))
            return BROKEN
        return size

    def schema(self) -> Schema:
        return {
            "anyOf": [
                {"type": "integer", "minimum": self.least, "maximum": self.most},
                {"type": "string", "pattern": f"^{_SIZE}$"},
            ]
        }

    def words(self) -> str:
        return 'a size like "256MB"'
