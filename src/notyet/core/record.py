"""`Record`: immutable values with named fields, without the import cost of `dataclasses`.

Every stop is a cold start, and `dataclasses` alone costs more than twice a bare interpreter.
A record keeps its values in its `__dict__`, so making one is two C-speed dict updates.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

    R = TypeVar("R", bound="Record")
else:

    def dataclass_transform(**_options: object) -> object:
        return lambda cls: cls


@dataclass_transform(frozen_default=True, eq_default=True)
class Record:
    """Base of all our values: declare fields as annotations, with defaults where they have one."""

    _fields: ClassVar[tuple[str, ...]] = ()
    _names: ClassVar[frozenset[str]] = frozenset()
    _defaults: ClassVar[dict[str, Any]] = {}
    _positional: ClassVar[bool] = True

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        declared = cls.__dict__.get("__annotations__", {})  # noqa: RUF063  # inspect is heavy
        own = tuple(name for name in declared if not name.startswith("_"))
        cls._fields = (*(name for name in cls._fields if name not in own), *own)
        cls._names = frozenset(cls._fields)
        cls._defaults = cls._defaults | {n: cls.__dict__[n] for n in own if n in cls.__dict__}
        cls._positional = not kw_only

    def __init__(self, *args: Any, **values: Any) -> None:
        if args:
            values = self._named(args, values)
        mine = self.__dict__
        mine.update(self._defaults)
        mine.update(values)
        if len(mine) != len(self._fields) or not self._names.issuperset(values):
            self._complain(values)
        self._validate()

    def _validate(self) -> None:
        """Refuse values that cannot mean anything; overridden where that is possible."""

    def _named(self, args: tuple[Any, ...], values: dict[str, Any]) -> dict[str, Any]:
        kind = type(self).__name__
        if not self._positional:
            raise TypeError(f"{kind} takes named values only, like {kind}({self._fields[0]}=...)")
        if len(args) > len(self._fields):
            raise TypeError(f"{kind} takes {len(self._fields)} values, got {len(args)}")
        named = dict(zip(self._fields, args, strict=False))
        twice = named.keys() & values.keys()
        if twice:
            raise TypeError(f"{kind} got {min(twice)!r} twice")
        return named | values

    def _complain(self, values: dict[str, Any]) -> None:
        kind = type(self).__name__
        unknown = [name for name in values if name not in self._names]
        if unknown:
            raise TypeError(f"{kind} has no field {unknown[0]!r}; it has {', '.join(self._fields)}")
        missing = [name for name in self._fields if name not in self.__dict__]
        raise TypeError(f"{kind} needs {', '.join(missing)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is read-only; make a new one with replace()")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is read-only")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *(self.__dict__[name] for name in self._fields)))

    def __repr__(self) -> str:
        shown = (
            f"{name}={self.__dict__[name]!r}"
            for name in self._fields
            if name not in self._defaults or self.__dict__[name] != self._defaults[name]
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __copy__(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __replace__(self, /, **changes: Any) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.__dict__.update(changes)
        if not self._names.issuperset(changes):
            self._complain(changes)
        twin._validate()
        return twin


def replace(record: R, **changes: Any) -> R:
    """Return a record like this one, with some fields changed."""
    return record.__replace__(**changes)


def as_dict(record: Record) -> dict[str, Any]:
    """Return the fields as a plain dict in declared order, records inside included."""
    return {name: _plain(record.__dict__[name]) for name in record._fields}


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return as_dict(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
