"""`Record`: immutable values with named fields, without the import cost of `dataclasses`.

Every stop is a cold start, and `dataclasses` alone costs more than twice a bare interpreter.
A record keeps its values in its `__dict__`, so making one is two C-speed dict updates. A class
that is made often, as in a long-lived process, gets an `__init__` of its own: twice as fast,
but to compile one costs as much as making a hundred records the slow way.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

    R = TypeVar("R", bound="Record")
else:

    def dataclass_transform(**_options: object) -> object:
        return lambda cls: cls


_COLD = 50  # so many of a kind are made before its `__init__` is compiled


@dataclass_transform(frozen_default=True, eq_default=True)
class Record:
    """Base of all our values: declare fields as annotations, with defaults where they have one."""

    _fields: ClassVar[tuple[str, ...]] = ()
    _names: ClassVar[frozenset[str]] = frozenset()
    _defaults: ClassVar[dict[str, Any]] = {}
    _positional: ClassVar[bool] = True
    _made: ClassVar[int] = 0

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        declared = cls.__dict__.get("__annotations__", {})  # noqa: RUF063  # inspect is heavy
        own = tuple(name for name in declared if not name.startswith("_"))
        cls._fields = (*(name for name in cls._fields if name not in own), *own)
        cls._names = frozenset(cls._fields)
        cls._defaults = cls._defaults | {n: cls.__dict__[n] for n in own if n in cls.__dict__}
        cls._positional = not kw_only
        cls._made = 0
        if cls.__base__ is not Record:  # whose base may have a compiled one
            cls.__init__ = Record.__init__  # type: ignore[method-assign]  # as it begins

    def __init__(self, *args: Any, **values: Any) -> None:
        cls = type(self)
        cls._made += 1
        if cls._made == _COLD:
            from notyet.core.record_init import compile_init

            compile_init(cls)
        given = values
        if args:
            given = dict(zip(cls._fields, args, strict=False)) | values
        mine = self.__dict__
        mine.update(cls._defaults)
        mine.update(given)
        if (
            len(mine) != len(cls._fields)
            or not cls._names.issuperset(values)
            or (args and (not cls._positional or len(given) != len(args) + len(values)))
        ):
            from notyet.core.record_init import compile_init

            compile_init(cls)
            cls.__init__(self, *args, **values)  # which says what is wrong, as Python says it
        self._validate()

    def _validate(self) -> None:
        """Refuse values that cannot mean anything; overridden where that is possible."""

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
            unknown = min(changes.keys() - self._names)
            raise TypeError(f"{type(self).__name__} has no field {unknown!r}")
        twin._validate()
        return twin


def replace(record: R, **changes: Any) -> R:
    """Return a record like this one, with some fields changed."""
    return record.__replace__(**changes)


def variant(record: R, changes: dict[str, Any]) -> R:
    """Do what `replace` does, unchecked, for our own changes where every microsecond counts."""
    twin = object.__new__(type(record))
    twin.__dict__.update(record.__dict__)
    twin.__dict__.update(changes)
    return twin


def as_dict(record: Record) -> dict[str, Any]:
    """Return the fields as a plain dict in declared order, records inside included."""
    return {name: plain(record.__dict__[name]) for name in record._fields}


def plain(value: Any) -> Any:
    """Return a value with the records in it, and in its tuples and lists, as plain dicts."""
    if isinstance(value, Record):
        return as_dict(value)
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value
