"""Shapes of numbers and time spans."""

from __future__ import annotations

import re

from notyet.config.scalars import BROKEN, HUGE, Shape, name_of, said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.config.document import Path
    from notyet.config.scalars import Found, Schema


class Whole(Shape, kw_only=True):
    """A whole number. `never` is one in the range that would make no sense, `because`."""

    least: int = 0
    most: int | None = None
    never: int | None = None
    because: str = ""

    def takes(self, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        too_much = self.takes(value) and self.most is not None and value > self.most
        if not self.takes(value) or value < self.least or too_much:
            return self.refuse(value, path, found)
        if value == self.never:
            found.append((path, f"{name_of(path)} cannot be {value}: {self.because}", ""))
            return BROKEN
        return value

    def schema(self) -> Schema:
        schema: Schema = {"type": "integer", "minimum": self.least}
        if self.most is not None:
            schema["maximum"] = self.most
        if self.never is not None:
            schema["not"] = {"const": self.never}
        return schema

    def words(self) -> str:
        return f"a whole number {self._range()}"

    def many(self) -> str:
        return f"whole numbers {self._range()}"

    def _range(self) -> str:
        return f"from {self.least} " + ("up" if self.most is None else f"to {self.most}")


class Number(Shape, kw_only=True):
    """A number, whole or not, from 0 up."""

    most: int = HUGE

    def takes(self, value: object) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        if not self.takes(value) or not 0 <= value <= self.most:  # which NaN is not, either
            return self.refuse(value, path, found)
        return value

    def schema(self) -> Schema:
        return {"type": "number", "minimum": 0, "maximum": self.most}

    def words(self) -> str:
        return "a number from 0 up"


_SECONDS = (
    r"(?=[0-9])(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?"
    r"(?:([0-9]{1,9}(?:\.[0-9]{1,9})?)s)?(?:([0-9]{1,9})ms)?"
)
_UNITS = (3600.0, 60.0, 1.0, 0.001)


class Seconds(Shape, kw_only=True):
    """A time span: a number of seconds, or text such as "1h30m". Cleaned, it is a float."""

    most: int = 86400

    def takes(self, value: object) -> bool:
        return isinstance(value, int | float | str) and not isinstance(value, bool)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        seconds = self._seconds(value)
        if seconds is None:
            found.append(
                (
                    path,
                    f"{name_of(path)} is a number of seconds, not {said(value)}",
                    'write it like 90, "90s", "10m", "1h30m" or "500ms"',
                )
            )
            return BROKEN
        if not 0 < seconds <= self.most:  # which NaN is not, either
            limits = f"above 0 and at most {self.most} seconds"
            found.append((path, f"{name_of(path)} is {limits}, not {said(value)}", ""))
            return BROKEN
        return float(seconds)

    def _seconds(self, value: object) -> float | None:
        if isinstance(value, str):
            match = re.fullmatch(_SECONDS, value)
            if not match:
                return None
            return sum(float(n) * unit for n, unit in zip(match.groups(), _UNITS, strict=True) if n)
        return value if isinstance(value, int | float) and self.takes(value) else None

    def schema(self) -> Schema:
        return {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "maximum": self.most},
                {"type": "string", "pattern": f"^{_SECONDS}$"},
            ]
        }

    def words(self) -> str:
        return 'seconds, or text like "10m"'
