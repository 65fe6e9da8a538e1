"""`Record`: immutable values with named fields, without the import cost of `dataclasses`.

Every stop is a cold start, and `dataclasses` alone costs more than twice a bare interpreter.
A record keeps its values in its `__dict__`, so making one is to merge two dicts at C speed. A class
that is made often, as in a long-lived process, gets an `__init__` of its own: twice as fast,
but to compile one costs as much as making a hundred records the slow way.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self, TypeVar

if TYPE_CHECKING:
    from typing import dataclass_transform

    R = TypeVar("R", bound="Record")
else:

    def dataclass_transform(**_options: object) -> object:
        return lambda cls: cls


# A `__dict__` that is made in one piece costs half of one that is filled; ours refuses to be set.
_new, _set = object.__new__, object.__setattr__
_COLD = 50  # so many of a kind are made before its `__init__` is compiled
_made: dict[type, int] = {}  # how many were; kept off the class, which would lose what it cached


@dataclass_transform(frozen_default=True, eq_default=True)
class Record:
    """Base of all our values: declare fields as annotations, with defaults where they have one."""

    _fields: ClassVar[tuple[str, ...]] = ()
    _defaults: ClassVar[dict[str, Any]] = {}
    _positional: ClassVar[bool] = True

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        space = cls.__dict__
        own = [name for name in space.get("__annotations__", ()) if name[0] != "_"]
        cls._defaults = cls._defaults | {name: space[name] for name in own if name in space}
        if cls._fields:
            own = [*[name for name in cls._fields if name not in own], *own]
            cls.__init__ = Record.__init__  # type: ignore[method-assign]  # its base's is compiled
        cls._fields = tuple(own)
        if cls._positional is kw_only:
            cls._positional = not kw_only

    def __init__(self, *args: Any, **values: Any) -> None:
        cls = type(self)
        made = _made[cls] = _made.get(cls, 0) + 1
        if made == _COLD:
            compile_init(cls)
        given = values
        if args:
            given = dict(zip(cls._fields, args, strict=False)) | values
        mine = {**cls._defaults, **given}
        if (
            len(mine) != len(cls._fields)
            or not set(cls._fields).issuperset(values)
            or (args and (not cls._positional or len(given) != len(args) + len(values)))
        ):
            compile_init(cls)
            cls.__init__(self, *args, **values)  # which says what is wrong, as Python says it
        _set(self, "__dict__", mine)
        self._validate()

    def _validate(self) -> None:
        """Refuse wrong values; for classes that override it."""

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
        twin = _new(type(self))
        _set(twin, "__dict__", self.__dict__.copy())
        return twin

    def __replace__(self, /, **changes: Any) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.__dict__.update(changes)
        if len(twin.__dict__) != len(self._fields):
            unknown = min(changes.keys() - set(self._fields))
            raise TypeError(f"{type(self).__name__} has no field {unknown!r}")
        twin._validate()
        return twin


def replace(record: R, **changes: Any) -> R:
    """Return a record like this one, with some fields changed."""
    return record.__replace__(**changes)


def made(kind: type[R], values: dict[str, Any]) -> R:
    """Return a record of these values, unchecked; they are all of its fields."""
    record = _new(kind)
    _set(record, "__dict__", values)
    return record


def variant(record: R, changes: dict[str, Any]) -> R:
    """Do what `replace` does, unchecked and faster, for our own changes."""
    twin = _new(type(record))
    _set(twin, "__dict__", {**record.__dict__, **changes})
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


_NONE = type(None)
# The types of values that annotations stand for; other annotations are not checked.
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "text"),
    "StopReason": ((str,), "text"),
    "str | None": ((str, _NONE), "text or None"),
    "int": ((int,), "a whole number"),
    "int | None": ((int, float, _NONE), "a number or None"),
    "float": ((int, float), "a number"),
    "float | None": ((int, float, _NONE), "a number or None"),
    "bool | None": ((bool, _NONE), "a truth value or None"),
}
_checks: dict[type, list[tuple[str, tuple[type, ...], str]]] = {}


def check_types(record: Record) -> None:
    """Check values by the annotations of their fields; turn lists into tuples. Raises TypeError.

    A value of a wrong type would be found much later, in other code.
    """
    cls, values = type(record), record.__dict__
    if cls not in _checks:
        known = {name: str(kind) for name, kind in cls.__annotations__.items()}
        _checks[cls] = [(name, *_TYPES[kind]) for name, kind in known.items() if kind in _TYPES]
        tuples = [name for name, kind in known.items() if kind.startswith("tuple[")]
        _checks[cls] += [(name, (tuple, list), "a tuple") for name in tuples]
    for name, types, words in _checks[cls]:
        value = values[name]
        if not isinstance(value, types):
            raise TypeError(f"{name} is {words}, not {type(value).__name__}")
        if isinstance(value, list):
            values[name] = tuple(value)


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
