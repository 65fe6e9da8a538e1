"""The `__init__` of a record that is made often: as one would write it by hand."""

from __future__ import annotations

from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def compile_init(cls: type[Record]) -> None:
    """Give a class the `__init__` that one would write for it by hand."""
    required = [name for name in cls._fields if name not in cls._defaults]
    optional = [f"{name}=_defaults[{name!r}]" for name in cls._fields if name in cls._defaults]
    star = [] if cls._positional else ["*"]
    lines = [f"def __init__({', '.join(['self', *star, *required, *optional])}):"]
    values = ", ".join(f"{name!r}: {name}" for name in cls._fields)
    lines.append(f"    _set(self, '__dict__', {{{values}}})")
    if cls._validate is not Record._validate:  # noqa: SLF001  # our own
        lines.append("    self._validate()")
    made: dict[str, Any] = {"_defaults": cls._defaults, "_set": object.__setattr__}
    exec("\n".join(lines), made)  # noqa: S102  # nothing in it but the names of our fields
    made["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    cls.__init__ = made["__init__"]  # type: ignore[method-assign]  # the point of it all
